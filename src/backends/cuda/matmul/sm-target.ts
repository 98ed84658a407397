/** How many SMs a GEMM may use if it leaves an SM margin (schedule option `smMargin`). */
import { fail } from "../../../diagnostics/diagnostic.ts";

/** SM_COUNT_TARGET of cuBLASLt; 0 for all SMs. Throws `bad-option` if the margin leaves none. */
export function smTarget(multiprocessors: number, margin: number): number {
  if (margin === 0) return 0;
  if (margin < multiprocessors) return multiprocessors - margin;
  return fail({
    code: "bad-option",
    message: "products cannot leave as many multiprocessors free as the GPU has",
    place: { kind: "option", text: "schedule.smMargin" },
    found: String(margin),
    expected: `less than ${multiprocessors}`,
    help: "leave as many as the kernels beside products have blocks: 8",
  });
}
