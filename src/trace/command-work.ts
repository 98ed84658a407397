/** How much a command does: the bytes it reads, writes or moves and the floating-point operations it counts for. */
import { asUnit, stepShapes } from "../commands/as-unit.ts";
import { attentionFlops, isAttention } from "../commands/attention.ts";
import { allRanksOf } from "../commands/collectives.ts";
import type { Command, PointToPoint } from "../commands/command.ts";
import type { Kernel } from "../commands/kernel.ts";
import type { Program } from "../commands/program.ts";
import { accesses, regionBytes } from "../commands/region.ts";
import { type View } from "../commands/view.ts";
import { rowOf } from "../ir/ops/rows.ts";
import { dtypes } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import { elementCount } from "../numerics/tensor/host-tensor.ts";

/**
 * The bytes of the command at `index` of `rank`'s list: of a launch, the bytes of its operands, but for what a scatter
 * leaves as it is in an input that it writes over; of a copy, the copied bytes; of a collective, the larger of the
 * rank's two sides, as nccl-tests counts; of a group, the bytes sent and received. Null for commands that only order
 * streams, and for marks.
 */
export function commandBytes(program: Program, rank: number, index: number): number | null {
  const command = at(at(program.ranks, rank).commands, index);
  switch (command.kind) {
    case "launch": {
      const { reads, writes } = accesses(program, rank, index);
      const all = [...reads, ...writes].reduce((sum, region) => sum + regionBytes(region), 0);
      return all - untouchedBytes(at(program.kernels, command.kernel));
    }
    case "copy":
      return viewBytes(command.source);
    case "transfer":
      return command.operation.kind === "collective"
        ? Math.max(viewBytes(command.operation.input), viewBytes(command.operation.output))
        : groupBytes(command.operation.ops);
    case "recordEvent":
    case "waitEvent":
    case "signal":
    case "waitSignal":
    case "alloc":
    case "free":
      return null;
  }
}

/** Of operands: what scatters in place neither read nor write. An update of a cache writes its rows alone. */
function untouchedBytes(kernel: Kernel): number {
  if (kernel.kind !== "unit") return 0;
  const { steps, values, results, inPlace = [] } = kernel;
  return inPlace.reduce((sum, { output }) => {
    const step = steps.find((each) => each.output === results[output]);
    if (step?.kind !== "ScatterAdd") return sum;
    const [whole = 0, , source = 0] = step.inputs.map((value) => {
      const { dtype, shape } = at(values, value);
      return elementCount(shape) * dtypes[dtype].bytes;
    });
    return sum + 2 * whole - (step.sets === undefined ? 2 : 1) * source;
  }, 0);
}

/** Whether a command copies within its rank: a copy without a peer, or a collective over one device. */
export function isLocalCopy(program: Program, rank: number, command: Command): boolean {
  if (command.kind === "transfer")
    return command.operation.kind === "collective" && allRanksOf(command.operation).length === 1;
  return command.kind === "copy" && commandPeer(program, rank, command) === null;
}

/** The other rank of a copy from or to a peer's buffer, and the direction; null for other commands. */
export function commandPeer(
  { buffers }: Program,
  rank: number,
  command: Command,
): { readonly direction: "from" | "to"; readonly rank: number } | null {
  if (command.kind !== "copy") return null;
  const source = at(buffers, command.source.buffer).rank;
  if (source !== rank) return { direction: "from", rank: source };
  const destination = at(buffers, command.destination.buffer).rank;
  return destination === rank ? null : { direction: "to", rank: destination };
}

/**
 * Floating-point operations (for integers: operations) of a kernel, by the usual counts: 2 M N K for a GEMM, one per
 * element for an elementwise op at any cost, and one per element that a reduction or combination adds to another. Moves
 * and casts count 0.
 */
export function flopsOf(kernel: Kernel): number {
  // What an opaque kernel computes is unknown.
  if (kernel.kind === "fill" || kernel.kind === "opaque") return 0;
  // However many outputs the result goes to.
  if (kernel.kind === "combine") return kernel.inputs.slice(1).reduce((sum, { shape }) => sum + elementCount(shape), 0);
  if (isAttention(kernel)) return attentionFlops(kernel);
  const unit = asUnit(kernel);
  return unit.steps.reduce((sum, step) => sum + rowOf(step).flops(step, stepShapes(unit, step)), 0);
}

/** The bytes that sends and receives move. */
export function groupBytes(ops: readonly PointToPoint[]): number {
  return ops.reduce((sum, { view }) => sum + viewBytes(view), 0);
}

function viewBytes(view: View | null): number {
  return view === null ? 0 : elementCount(view.shape) * dtypes[view.dtype].bytes;
}
