/** Addresses above 2 GiB, where a signed 32-bit number would be negative. */
import { expect, it } from "vitest";
import { createKernelLibrary, scratchBytes } from "../../src/kernels/kernel-library.ts";
import { createWasmMemory } from "../../src/support/webassembly.ts";
import { buildUnit } from "./unit-builder.ts";

const base = 0xc000_0000;

it("serve as operands and scratch of loops and matmuls", () => {
  // Untouched pages take no memory.
  const memory = createWasmMemory(base + 0x10_0000);
  const unit = buildUnit([[8, 16], [12, 16], [12]], (u, x, w, b) => [
    u.reduce("sum", u.unary("neg", u.linear(x, w, b)), [0]),
  ]);
  const [x, w, b, out] = [base, base + 0x1000, base + 0x2000, base + 0x3000];
  new Float32Array(memory.buffer, x, 8 * 16).fill(1);
  new Float32Array(memory.buffer, w, 12 * 16).fill(2);
  new Float32Array(memory.buffer, b, 12).fill(3);
  const library = createKernelLibrary({
    memory,
    scratch: { address: base + 0x4000, bytes: scratchBytes(unit) },
  });
  library.prepare(unit)([x, w, b], [out]);
  expect([...new Float32Array(memory.buffer, out, 12)]).toEqual(Array.from({ length: 12 }, () => -8 * (16 * 2 + 3)));
});
