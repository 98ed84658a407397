/** Copies of strided boxes: by the copy engines or by a kernel, as copy-plan.ts chooses. */
import type { Copy } from "../../../commands/command.ts";
import type { Operand } from "../../../commands/kernel.ts";
import { copyKernel } from "../kernels/plan/kernel-steps.ts";
import { alignmentOf, type Place, plus } from "./address.ts";
import { planCopy } from "./copy-plan.ts";
import type { DeviceOp, LaunchOp } from "./device-op.ts";
import { launchOf, type Planning } from "./planning.ts";

/** `crossesLink`: one side is in a peer's memory. `command` is its position in the list. */
export function copyOps(
  { source, destination, stream }: Copy,
  command: number,
  crossesLink: boolean,
  planning: Planning,
): readonly DeviceOp[] {
  const plan = planCopy(source, destination, crossesLink);
  const [from, to] = [planning.places.addressOf(source), planning.places.addressOf(destination)];
  const base = { stream, command };
  switch (plan.kind) {
    case "none":
      return [];
    case "run":
      return [{ kind: "copy", ...base, to, from, bytes: plan.bytes }];
    case "planes": {
      const { width, height, pitch, offsets } = plan;
      const pitches = { toPitch: pitch.destination, fromPitch: pitch.source };
      return offsets.map((offset) => ({
        kind: "copy2d",
        ...base,
        to: plus(to, offset.destination),
        from: plus(from, offset.source),
        ...pitches,
        width,
        height,
      }));
    }
    case "kernel":
      return [copyLaunch(base, [source, from], [destination, to], planning)];
  }
}

/** A box of elements, and where it begins. */
export type PlacedBox = readonly [Operand, Place];

/** The launch of a kernel that copies one box to another of its shape. */
export function copyLaunch(
  at: Pick<LaunchOp, "stream" | "command">,
  [source, from]: PlacedBox,
  [destination, to]: PlacedBox,
  planning: Planning,
): LaunchOp {
  const kernel = copyKernel(source, destination, ({ kind }) => alignmentOf(kind === "input" ? from : to));
  const parameters = kernel.parameters.map(({ kind }) => (kind === "input" ? from : to));
  return launchOf(planning, at, kernel, parameters);
}
