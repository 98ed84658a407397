/** Times attention and its backward pass, by the length of a sequence. */
import type { DType } from "../../numerics/dtype.ts";
import type { AttentionRates } from "../../simulate/machine-profile.ts";
import { type Calibration, leastTime } from "./calibration-host.ts";
import { attention } from "./probe-fusions.ts";

/** Causal, one sequence. The backward pass is what a run with both takes longer. */
export async function attentionRates(
  { devices, sizes, say, took }: Pick<Calibration, "devices" | "sizes" | "say" | "took">,
  dtype: DType,
): Promise<AttentionRates> {
  const { heads, headSize, lengths } = sizes.attention;
  const [forward, backward] = [new Array<number>(), new Array<number>()];
  for (const length of lengths) {
    say(`attention in ${dtype}, sequences of ${length}`);
    const shape = { heads, length, headSize };
    const alone = await took(attention(devices, shape, dtype, "forward"), {}, "median");
    const both = await took(attention(devices, shape, dtype, "both"), {}, "median");
    // Two products for each score that the mask leaves, and five in the backward pass.
    const ofProduct = (2 * heads * headSize * length ** 2) / 2;
    forward.push((2 * ofProduct) / alone / 1e6);
    backward.push((5 * ofProduct) / Math.max(leastTime, both - alone) / 1e6);
  }
  return { dtype, lengths, forward, backward };
}
