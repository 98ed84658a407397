/**
 * The block of a large model as PyTorch's process computes it: in float32, and, for the error that is usual, in the dtype
 * of the problem.
 */
import { Buffer } from "node:buffer";
import type { Outcome } from "../../../src/launch/exchange.ts";
import { numbersOf } from "../torch/peer-contender.ts";
import type { PeerAnswer } from "../torch/torch-peer.ts";
import { parametersOf } from "./block-layers.ts";
import type { BlockMatrices } from "./block-matrices.ts";
import { type BlockProblem, isBackward, sizesOf } from "./block-problem.ts";

/** Collective: a request to the process of this rank, once it is set up for the problem. */
export type Ask = (request: Readonly<Record<string, unknown>>) => Promise<Outcome<PeerAnswer>>;

export interface ReferenceValues {
  readonly values: readonly number[];
  /** The norm of the errors of PyTorch's block in the dtype, relative to the norm of the output. */
  readonly error: number;
}

/** Elements of an output by their positions in the whole tensor. */
export async function referenceValues(
  ask: Ask,
  output: string,
  indices: readonly number[],
): Promise<Outcome<ReferenceValues>> {
  const answer = await ask({ do: "values", output, indices });
  if (answer.kind === "failed") return answer;
  const { values, error } = answer.value;
  const numbers = numbersOf(values);
  if (numbers.length !== indices.length || typeof error !== "number") {
    return { kind: "failed", why: `an answer that cannot be parsed: ${JSON.stringify(answer.value).slice(0, 200)}` };
  }
  return { kind: "done", value: { values: numbers, error } };
}

/** What the process needs to compute the same block from the same numbers. */
export function blockSetup(problem: BlockProblem, matrices: BlockMatrices): Readonly<Record<string, unknown>> {
  const { primitive, cut, dtype } = problem;
  const sizes = sizesOf(problem);
  const tokens = [sizes.B, sizes.L, sizes.H];
  const activation = (name: string) => ({ name, shape: tokens, cut: null });
  const inputs = [activation("x"), ...parametersOf(sizes), ...(isBackward(problem) ? [activation("dz")] : [])];
  return {
    primitive,
    cut,
    dtype,
    sizes,
    piece: Buffer.from(matrices.piece(dtype)).toString("base64"),
    tensors: inputs.map((each) => ({ ...each, ...matrices.startOf(each.name, dtype, each.shape) })),
  };
}
