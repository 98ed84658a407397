/**
 * Refuses sizes that cannot run before inputs are drawn for them: on the CPU all ranks share one memory of 32-bit
 * addresses, and every element of an input lies on at least one rank.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { dtypes } from "../../numerics/dtype.ts";
import type { TensorShape } from "../../oracle/random-inputs.ts";

const addressableBytes = 2 ** 32;

/** Throws `memory-limit`. */
export function requireInputMemory(inputs: readonly TensorShape[]): void {
  const bytes = inputs.reduce(
    (sum, { dtype, shape }) => sum + shape.reduce((product, extent) => product * extent, dtypes[dtype].bytes),
    0,
  );
  if (bytes <= addressableBytes) return;
  fail({
    code: "memory-limit",
    message: "the inputs need more memory than the CPU back end can address",
    place: { kind: "option", text: "sizes (--set, --size)" },
    found: `${(bytes / 2 ** 30).toFixed(2)} GiB: ${inputs.map(({ dtype, shape }) => `${dtype} [${shape.join(", ")}]`).join(", ")}`,
    expected: "at most 4 GiB for all ranks together",
    help: "use smaller sizes",
  });
}
