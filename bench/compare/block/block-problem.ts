/** One transformer block to time: a model, how it is cut over the devices, and which passes run. */
import { fail } from "../../../src/diagnostics/diagnostic.ts";
import { type DType, dtypes } from "../../../src/numerics/dtype.ts";
import { type BlockSizes, type ModelName, models } from "./models.ts";

/** tp: activations are whole on every device. tp-sp: outside of the linears, each device has some of the tokens. */
export const blockCuts = ["tp", "tp-sp"] as const;
export type BlockCut = (typeof blockCuts)[number];

export const blockPasses = ["forward", "forward+backward"] as const;
export type BlockPass = (typeof blockPasses)[number];

export interface BlockProblem {
  readonly primitive: "block";
  readonly model: ModelName;
  readonly cut: BlockCut;
  readonly pass: BlockPass;
  readonly dtype: DType;
  readonly devices: number;
}

export function sizesOf({ model }: BlockProblem): BlockSizes {
  return models[model];
}

export function isBackward({ pass }: BlockProblem): boolean {
  return pass === "forward+backward";
}

/** Of one device: GEMMs, and attention without the masked half. A backward pass has twice the GEMMs and 2.5 times that. */
export function blockFlops(problem: BlockProblem): number {
  const { kind, B, L, H, HEADS, GROUPS, FFN } = sizesOf(problem);
  const mixed = (2 + (2 * GROUPS) / HEADS) * H * H;
  const gemms = 2 * B * L * (mixed + (kind === "llama" ? 3 : 2) * H * FFN);
  const attention = 2 * B * L * L * H;
  const all = isBackward(problem) ? 3 * gemms + 3.5 * attention : gemms + attention;
  return all / problem.devices;
}

/**
 * The bytes that a device has to receive: two gathers and two reductions of the activations in each pass. A gathered
 * tensor that the backward pass reads again may be kept.
 */
export function blockReceived(problem: BlockProblem): number {
  const { B, L, H } = sizesOf(problem);
  const { devices, dtype } = problem;
  const one = ((devices - 1) / devices) * B * L * H * dtypes[dtype].bytes;
  return (isBackward(problem) ? 8 : 4) * one;
}

/** Throws `option-value` if the devices cannot have equal shares of the heads. */
export function requireShares(problem: BlockProblem): BlockProblem {
  const { GROUPS, L } = sizesOf(problem);
  const { devices, model } = problem;
  if (GROUPS % devices === 0 && L % devices === 0) return problem;
  return fail({
    code: "option-value",
    message: `${model} cannot be shared equally`,
    place: { kind: "option", text: "--devices" },
    found: String(devices),
    expected: `a divisor of its ${GROUPS} groups of heads and ${L} tokens`,
    help: "use another number of devices, or another model",
  });
}
