/** Numbers the buffers of one rank's list over all ranks: buffer b becomes `base` + b. */
import { makeId } from "../../support/invariant.ts";
import type { BufferId, BufferRef } from "../buffer.ts";
import type { Collective, PointToPointGroup } from "../command.ts";
import type { View } from "../view.ts";

export function relocateBuffer(base: number, buffer: BufferId): BufferId {
  return makeId<BufferId>(base + buffer);
}

export function relocateRef(base: number, { buffer, offset }: BufferRef): BufferRef {
  return { buffer: relocateBuffer(base, buffer), offset };
}

export function relocateView(base: number, view: View): View {
  return { ...view, buffer: relocateBuffer(base, view.buffer) };
}

export function relocateCollective(base: number, collective: Collective): Collective {
  const { input, output } = collective;
  return {
    ...collective,
    input: input === null ? null : relocateView(base, input),
    output: output === null ? null : relocateView(base, output),
  };
}

/** Sends of one view to many peers keep one view. */
export function relocateGroup(base: number, { kind, ops }: PointToPointGroup): PointToPointGroup {
  const views = new Map<View, View>();
  return {
    kind,
    ops: ops.map(({ type, peer, view }) => {
      const known = views.get(view) ?? relocateView(base, view);
      views.set(view, known);
      return { type, peer, view: known };
    }),
  };
}
