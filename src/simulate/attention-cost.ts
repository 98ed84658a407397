/** The time that kernels of attention take: their operations at a rate that grows with the length of the sequences. */
import { type AttentionKernel, attentionFlops } from "../commands/attention.ts";
import { at, invariant } from "../support/invariant.ts";
import { dtypes, type DType } from "../numerics/dtype.ts";
import { type Assume, assumedErrors } from "./assumption.ts";
import { nearestTo, rateAlong } from "./interpolate.ts";
import type { AttentionRates, MachineProfile } from "./machine-profile.ts";

/**
 * Of the rate of the fastest GEMM of the dtype: what cuDNN's attention and its backward pass, with the same bits in
 * every run, reached on 2 x H100 with a causal mask and heads of 128 elements (bench/results/block-2xH100.txt).
 */
const usualShares = {
  lengths: [2048, 4096, 8192],
  forward: [0.5, 0.61, 0.72],
  backward: [0.38, 0.455, 0.49],
} as const satisfies Omit<AttentionRates, "dtype">;

/** Microseconds. */
export function attentionTime(kernel: AttentionKernel, profile: MachineProfile, assume: Assume): number {
  const { dtype, shape } = at(kernel.inputs, kernel.kind === "sdpa" ? 1 : 2);
  const length = at(shape, shape.length - 2);
  const rates = nearestTo(dtype, profile.attention ?? []) ?? usualRates(dtype, profile, assume);
  if (rates.dtype !== dtype) {
    const isAlike = dtypes[rates.dtype].bytes === dtypes[dtype].bytes;
    const error = isAlike ? assumedErrors.otherDType : assumedErrors.otherElementSize;
    const text = isAlike
      ? `attention in ${dtype} is timed as in ${rates.dtype}`
      : `no calibration for ${dtype}: attention is timed as in ${rates.dtype}`;
    assume({ text, of: "kernels", error });
  }
  const rate = rateAlong(rates.lengths, kernel.kind === "sdpa" ? rates.forward : rates.backward, length);
  return attentionFlops(kernel) / (rate * 1e6);
}

function usualRates(dtype: DType, { products }: MachineProfile, assume: Assume): AttentionRates {
  assume({
    text: "attention is timed at its usual share of the rate of GEMMs",
    of: "kernels",
    error: assumedErrors.otherKernel,
  });
  const grid = nearestTo(dtype, products);
  invariant(grid !== undefined, "a profile has a grid of GEMMs");
  const most = Math.max(...grid.teraflops);
  const rates = (shares: readonly number[]): readonly number[] => shares.map((share) => share * most);
  const { lengths, forward, backward } = usualShares;
  return { dtype: grid.dtype, lengths, forward: rates(forward), backward: rates(backward) };
}
