/** The launch of a kernel over links, with the signals and waits that it absorbs. */
import type { Launch } from "../../../../commands/command.ts";
import { touchesPeers } from "../../../../commands/barriers.ts";
import type { Memory } from "../../../../kernels/nests/nest.ts";
import { at, invariant } from "../../../../support/invariant.ts";
import { linkKernel } from "../../kernels/link-kernel.ts";
import { noBarriers } from "../../kernels/text/barrier-text.ts";
import { alignmentOf } from "../../memory/alignment.ts";
import { type ActionContext, addressIn, type LinkLaunch } from "./action-context.ts";
import { barrierValues, shapesOf } from "./barrier-operations.ts";

/** For a kernel that touches peers' memory and is one loop over elements; null for others. `index` is the command's. */
export function linkLaunch(command: Launch, index: number, context: ActionContext): LinkLaunch | null {
  const { program, rank, session, blocks } = context;
  const { kernel: id, inputs, outputs, stream } = command;
  if (!touchesPeers(program, rank, command)) return null;
  const kernel = at(program.kernels, id);
  const addresses = { input: inputs.map(addressIn(context)), output: outputs.map(addressIn(context)) };
  const operand = (memory: Memory): number => {
    invariant(memory.kind !== "scratch", "a kernel that is one loop over elements has no scratch", { index });
    return at(addresses[memory.kind], memory.position);
  };
  const alignment = (memory: Memory): number => alignmentOf(operand(memory));
  const alone = linkKernel(kernel, alignment, noBarriers);
  if (alone === null) return null;
  return {
    blocks: alone.grid[0],
    launch: (operations) => {
      const source = linkKernel(kernel, alignment, shapesOf(operations));
      invariant(source !== null, "barriers do not change what a kernel can be", { index });
      const pointers = [...source.parameters.map(operand), ...barrierValues(operations, context.gateOf(index))];
      return session.modules.prepareLaunch(source, pointers, context.streamOf(stream), blocks);
    },
  };
}
