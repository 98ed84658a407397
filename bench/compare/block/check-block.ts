/**
 * `--check` of a block: its outputs beside the oracle's, which computes small blocks in full. Elements have bounds;
 * where these are wide, the norm of an output's error is compared with that of rounding each op. Samples of a large
 * block are compared with PyTorch's in float32.
 */
import type { Prepared } from "../../../src/backends/backend.ts";
import type { AnyCompilation } from "../../../src/compile/compile.ts";
import { shardOf, shardShape } from "../../../src/executor/shard.ts";
import type { Tensor as IrTensor } from "../../../src/ir/domain.ts";
import { shapeOf } from "../../../src/ir/sizes.ts";
import type { Outcome } from "../../../src/launch/exchange.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../../src/numerics/tensor/host-tensor.ts";
import { areBoundsWide, compare, compareNorms, inDouble, toDouble } from "../../../src/oracle/value.ts";
import { evaluateFusion, evaluateValues, type OracleResult } from "../../../src/oracle/evaluate.ts";
import { wholeSample } from "../../../src/oracle/sample/sample.ts";
import { at } from "../../../src/support/invariant.ts";
import type { BlockForm, BlockFusion } from "./block-builder.ts";
import type { BlockMatrices } from "./block-matrices.ts";
import { blockFlops, type BlockProblem } from "./block-problem.ts";
import { type Ask, referenceValues } from "./block-reference.ts";
import { elementsAt, relativeError, samplesOf } from "./sampled-block.ts";

export interface RanBlock {
  readonly block: BlockFusion;
  readonly compilation: AnyCompilation;
  readonly prepared: Prepared;
  /** The ranks whose results this process has. */
  readonly ranks: readonly number[];
}

/** The largest error of these ranks' outputs over its bound; null for a part of a large block, without a reference. */
export type BlockCheck = (ran: RanBlock) => Promise<Outcome<number | null>>;

/** The oracle takes about a second for so many operations. */
const mostOracleFlops = 2e7;

/** `ask`: PyTorch's process, for large blocks. */
export function createBlockCheck(problem: BlockProblem, matrices: BlockMatrices, ask: Ask): BlockCheck {
  const known = new Map<BlockForm, Expected>();
  const isLarge = blockFlops(problem) * problem.devices > mostOracleFlops;
  return async (ran) => {
    if (isLarge) return ran.block.form === "whole" ? checkSamples(ran, ask) : { kind: "done", value: null };
    // Chunks change no result.
    const expected = known.get(ran.block.form) ?? expectedOf(ran, matrices);
    known.set(ran.block.form, expected);
    return checkWith(ran, expected);
  };
}

interface Expected extends Pick<OracleResult, "outputs" | "bounds"> {
  /** Without any rounding of operations to the dtype. */
  readonly exact: readonly Tensor[];
}

function expectedOf({ block, compilation: { signature, sizes } }: RanBlock, matrices: BlockMatrices): Expected {
  const fusion = block.fusion.data();
  const inputs = signature.inputs.map((id, position): Tensor => {
    const tensor = at(signature.tensors, id);
    const shape = shapeOf(tensor, sizes);
    const whole = emptyTensor(tensor.dtype, shape);
    tensorBytes(whole).set(matrices.whole(at(block.inputs, position), tensor.dtype, shape));
    return whole;
  });
  const { outputs, bounds } = evaluateFusion(fusion, inputs, sizes);
  const isWide = outputs.some((output, i) => areBoundsWide(output, at(bounds, i)));
  const samples = fusion.outputs.map((id) => wholeSample(shapeOf(at(fusion.tensors, id), sizes)));
  const exact = isWide ? evaluateValues(inDouble(fusion), inputs.map(toDouble), sizes, samples) : [];
  return { outputs, bounds, exact };
}

function checkWith({ compilation, prepared, ranks }: RanBlock, { outputs, bounds, exact }: Expected): Outcome<number> {
  const { signature, sizes, program } = compilation;
  const parts = program.buffers.flatMap(({ id, role, rank, position }) => {
    if (role !== "output" || position === null || !ranks.includes(rank)) return [];
    const tensor = at(signature.tensors, at(signature.outputs, position));
    const actual = emptyTensor(tensor.dtype, shardShape(tensor, shapeOf(tensor, sizes), rank));
    tensorBytes(actual).set(prepared.read(id));
    const wanted = at(outputs, position);
    const rounded = partOf(tensor, wanted, rank);
    if (!areBoundsWide(wanted, at(bounds, position))) {
      return [compare(actual, rounded, boundsOf(tensor, wanted, at(bounds, position), rank)).maxRatio];
    }
    const norm = compareNorms(actual, rounded, partOf(inDoubles(tensor), at(exact, position), rank));
    return norm === null ? [] : [norm.error === 0 ? 0 : norm.error / norm.limit];
  });
  if (parts.length === 0) return { kind: "failed", why: "not checked: no output has a bound" };
  return { kind: "done", value: Math.max(...parts) };
}

/** How much larger the error may be than that of PyTorch's block in the same dtype. */
const mostOfUsual = 2;

async function checkSamples({ block, compilation, prepared, ranks }: RanBlock, ask: Ask): Promise<Outcome<number>> {
  const { signature, sizes, program } = compilation;
  let most = 0;
  for (const { id, role, rank, position } of program.buffers) {
    if (role !== "output" || position === null || !ranks.includes(rank)) continue;
    const tensor = at(signature.tensors, at(signature.outputs, position));
    const { local, whole } = samplesOf(tensor, shapeOf(tensor, sizes), rank);
    const wanted = await referenceValues(ask, at(block.outputs, position), whole);
    if (wanted.kind === "failed") return { kind: "failed", why: `not checked: ${wanted.why}` };
    const error = relativeError(elementsAt(tensor, prepared.read(id), local), wanted.value.values);
    most = Math.max(most, error / (mostOfUsual * wanted.value.error));
  }
  return { kind: "done", value: most };
}

/** A rank's part of a whole tensor, in the layout of its buffer. */
function partOf(tensor: IrTensor, whole: Tensor, rank: number): Tensor {
  const part = emptyTensor(whole.dtype, shardShape(tensor, whole.shape, rank));
  tensorBytes(part).set(shardOf(tensor, whole.shape, tensorBytes(whole), rank));
  return part;
}

function boundsOf(tensor: IrTensor, { shape }: Tensor, bounds: Float64Array, rank: number): Float64Array {
  const whole = new Uint8Array(bounds.buffer, bounds.byteOffset, bounds.byteLength);
  const part = shardOf(inDoubles(tensor), shape, whole, rank);
  return new Float64Array(part.buffer, part.byteOffset, part.byteLength / Float64Array.BYTES_PER_ELEMENT);
}

/** The same layout for elements in double. */
function inDoubles(tensor: IrTensor): IrTensor {
  return { ...tensor, dtype: "double" };
}
