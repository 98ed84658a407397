/** The addresses of a launch's operands. */
import type { Launch } from "../../../commands/command.ts";
import type { Memory } from "../../../kernels/nests/nest.ts";
import { at, invariant } from "../../../support/invariant.ts";
import type { Place } from "./address.ts";
import type { Planning } from "./planning.ts";

/** Scratch begins at `scratch`; there is none if it is omitted. */
export function operandsOf(
  { inputs, outputs, stream }: Launch,
  { places }: Planning,
  scratch = -1,
): (memory: Memory) => Place {
  const [read, written] = [inputs.map(places.addressOf), outputs.map(places.addressOf)];
  return (memory) => {
    if (memory.kind !== "scratch") return at(memory.kind === "input" ? read : written, memory.position);
    invariant(scratch >= 0, "a kernel that is one loop over elements has no scratch", { memory });
    return { space: "scratch", stream, offset: scratch + memory.offset };
  };
}
