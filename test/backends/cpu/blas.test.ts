/**
 * GEMMs with a BLAS: one written here, which follows the definition of cblas_?gemm and records its calls, and the
 * system's, if installed. On small integers all sums are exact, so the bits must equal those of the WebAssembly
 * kernels.
 */
import { add, Fusion, linear, matmul, MultiDeviceExecutor } from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { describe, expect, it } from "vitest";
import { type Blas, type BlasGemm, findBlas, openBlas } from "../../../src/backends/cpu/blas/blas-library.ts";
import { blasGemms } from "../../../src/backends/cpu/blas/blas-gemms.ts";
import type { Kernel } from "../../../src/commands/kernel.ts";
import { DiagnosticError } from "../../../src/diagnostics/diagnostic.ts";
import { createKernelLibrary, scratchBytes } from "../../../src/kernels/kernel-library.ts";
import type { DType } from "../../../src/numerics/dtype.ts";
import { elementsOf, storageView } from "../../../src/numerics/tensor/host-tensor.ts";
import { compare } from "../../../src/oracle/value.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { randomInputs } from "../../../src/oracle/random-inputs.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { createWasmMemory } from "../../../src/support/webassembly.ts";
import { offsetsOf, operand, spanBytes } from "../../kernels/run-kernel.ts";

/** By the definition, on whatever lies behind the first elements of the views. */
function definedBlas(calls: { count: number }): Blas {
  const gemm: BlasGemm = (order, transposeA, transposeB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) => {
    expect(order).toBe(101);
    expect([lda >= (transposeA === 111 ? k : m), ldb >= (transposeB === 111 ? n : k), ldc >= n]).toEqual([
      true,
      true,
      true,
    ]);
    calls.count++;
    const [left, right, target] = [a, b, c].map((view) =>
      view instanceof Float32Array ? new Float32Array(view.buffer) : new Float64Array(view.buffer),
    );
    if (left === undefined || right === undefined || target === undefined) throw new Error("three views");
    const [fromA, fromB, fromC] = [a, b, c].map((view) => view.byteOffset / view.BYTES_PER_ELEMENT);
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let sum = 0;
        for (let p = 0; p < k; p++) {
          const x = at(left, (fromA ?? 0) + (transposeA === 111 ? i * lda + p : p * lda + i));
          sum += x * at(right, (fromB ?? 0) + (transposeB === 111 ? p * ldb + j : j * ldb + p));
        }
        const place = (fromC ?? 0) + i * ldc + j;
        target[place] = alpha * sum + (beta === 0 ? 0 : beta * at(target, place));
      }
    }
  };
  return { file: "defined here", sgemm: gemm, dgemm: gemm };
}

/** Runs a kernel with and without the BLAS on small integers and compares every byte but the scratch. */
function check(kernel: Kernel, blas: Blas, shared: boolean): void {
  const scratch = scratchBytes(kernel);
  const start = Math.ceil(scratch / 64) * 64;
  let next = start;
  const addresses = [...kernel.inputs, ...kernel.outputs].map((each) => {
    const address = next;
    next += Math.ceil(spanBytes(each) / 64) * 64;
    return address;
  });
  const run = (use: Blas | null): Uint8Array => {
    const memory = createWasmMemory(next, { shared });
    const random = createRandom(1);
    // Outputs too: a kernel may add to them.
    for (const [i, each] of [...kernel.inputs, ...kernel.outputs].entries()) {
      const elements = elementsOf(each.dtype, storageView(each.dtype, memory.buffer, at(addresses, i)));
      for (const offset of offsetsOf(each)) elements.set(offset, random.integer(9) - 4);
    }
    const gemms = use === null ? {} : { gemms: blasGemms(use, memory.buffer) };
    const library = createKernelLibrary({ memory, scratch: { address: 0, bytes: scratch }, ...gemms });
    library.prepare(kernel)(addresses.slice(0, kernel.inputs.length), addresses.slice(kernel.inputs.length));
    return new Uint8Array(memory.buffer).slice(start);
  };
  expect(Buffer.compare(run(null), run(blas))).toBe(0);
}

const [m, n, k] = [40, 36, 33] as const;
type Shape = readonly number[];

function product(
  kind: "matmul" | "linear",
  dtype: DType,
  ...operands: readonly (readonly [shape: Shape, strides?: Shape])[]
): Kernel {
  const made = operands.map(([shape, strides]) => operand(dtype, shape, strides));
  return { kind, inputs: made.slice(0, -1), outputs: made.slice(-1) };
}

function adding(kernel: Kernel): Kernel {
  return kernel.kind === "matmul" || kernel.kind === "linear" ? { ...kernel, accumulate: true } : kernel;
}

const kernels: readonly (readonly [name: string, kernel: Kernel, calls: number])[] = [
  ["a plain product", product("matmul", "float", [[m, k]], [[k, n]], [[m, n]]), 1],
  ["doubles", product("matmul", "double", [[m, k]], [[k, n]], [[m, n]]), 1],
  [
    "transposed operands",
    product(
      "matmul",
      "float",
      [
        [m, k],
        [1, m],
      ],
      [
        [k, n],
        [1, k],
      ],
      [[m, n]],
    ),
    1,
  ],
  [
    "a transposed output",
    product(
      "matmul",
      "float",
      [[m, k]],
      [[k, n]],
      [
        [m, n],
        [1, m],
      ],
    ),
    1,
  ],
  [
    "padded rows",
    product(
      "matmul",
      "float",
      [
        [m, k],
        [k + 3, 1],
      ],
      [
        [k, n],
        [n + 5, 1],
      ],
      [
        [m, n],
        [n + 1, 1],
      ],
    ),
    1,
  ],
  [
    "batches with a broadcast operand that folds into rows",
    product(
      "matmul",
      "float",
      [[3, m, k]],
      [
        [3, k, n],
        [0, n, 1],
      ],
      [[3, m, n]],
    ),
    1,
  ],
  ["batches", product("matmul", "float", [[3, m, k]], [[3, k, n]], [[3, m, n]]), 3],
  ["a row by a matrix", product("matmul", "float", [[1, 200]], [[200, 200]], [[1, 200]]), 1],
  ["a matrix by a column", product("matmul", "float", [[200, 200]], [[200, 1]], [[200, 1]]), 1],
  ["linear", product("linear", "float", [[2, m, k]], [[n, k]], [[2, m, n]]), 1],
  ["linear with a bias", product("linear", "float", [[m, k]], [[n, k]], [[n]], [[m, n]]), 1],
  [
    "spaced elements, in WebAssembly",
    product(
      "matmul",
      "float",
      [
        [m, k],
        [2 * k, 2],
      ],
      [[k, n]],
      [[m, n]],
    ),
    0,
  ],
  [
    "repeated rows, in WebAssembly",
    product(
      "matmul",
      "float",
      [
        [m, k],
        [0, 1],
      ],
      [[k, n]],
      [[m, n]],
    ),
    0,
  ],
  ["a repeated bias, in WebAssembly", product("linear", "float", [[m, k]], [[n, k]], [[n], [0]], [[m, n]]), 0],
  ["small products, in WebAssembly", product("matmul", "float", [[8, 8]], [[8, 8]], [[8, 8]]), 0],
  ["integers, in WebAssembly", product("matmul", "int", [[m, k]], [[k, n]], [[m, n]]), 0],
  ["a product added to the output", adding(product("matmul", "float", [[m, k]], [[k, n]], [[m, n]])), 1],
  [
    "a product of transposed operands added to a transposed output",
    adding(
      product(
        "matmul",
        "double",
        [
          [m, k],
          [1, m],
        ],
        [
          [k, n],
          [1, k],
        ],
        [
          [m, n],
          [1, m + 2],
        ],
      ),
    ),
    1,
  ],
  [
    "batches added to padded rows",
    adding(
      product(
        "matmul",
        "float",
        [[3, m, k]],
        [[3, k, n]],
        [
          [3, m, n],
          [m * n + 40, n + 1, 1],
        ],
      ),
    ),
    3,
  ],
  ["a bias and a sum, in WebAssembly", adding(product("linear", "float", [[m, k]], [[n, k]], [[n]], [[m, n]])), 0],
  [
    "a product that is added to an input",
    { ...product("matmul", "float", [[m, k]], [[k, n]], [[m, n]], [[m, n]]), addend: true } as Kernel,
    1,
  ],
  ["half, cast to float", product("matmul", "half", [[m, k]], [[k, n]], [[m, n]]), 1],
  [
    "bfloat16, transposed, spaced and padded",
    product(
      "matmul",
      "bfloat16",
      [
        [m, k],
        [2, 2 * m],
      ],
      [
        [k, n],
        [1, k + 1],
      ],
      [
        [m, n],
        [1, m + 2],
      ],
    ),
    1,
  ],
  ["batches of half", product("matmul", "half", [[3, m, k]], [[3, k, n]], [[3, m, n]]), 3],
  ["linear of half with a bias", product("linear", "half", [[m, k]], [[n, k]], [[n]], [[m, n]]), 1],
  ["a product of bfloat16 added to the output", adding(product("matmul", "bfloat16", [[m, k]], [[k, n]], [[m, n]])), 1],
  ["blocks of rows of half", product("matmul", "half", [[1030, 32]], [[32, 33]], [[1030, 33]]), 2],
  ["blocks of columns of half", product("linear", "half", [[33, 32]], [[1030, 32]], [[1030]], [[33, 1030]]), 2],
  ["blocks along k of bfloat16", product("linear", "bfloat16", [[33, 1030]], [[32, 1030]], [[33, 32]]), 3],
  [
    "blocks along k of half added to the output",
    adding(product("matmul", "half", [[33, 1030]], [[1030, 32]], [[33, 32]])),
    3,
  ],
  [
    "a bias and a sum of half, in WebAssembly",
    adding(product("linear", "half", [[m, k]], [[n, k]], [[n]], [[m, n]])),
    0,
  ],
  ["thin matrices of half, in WebAssembly", product("matmul", "half", [[8, 200]], [[200, 200]], [[8, 200]]), 0],
];

const ofTheSystem = findBlas();

describe("blasGemms", () => {
  it.each(kernels)("computes %s", (_, kernel, expected) => {
    const calls = { count: 0 };
    check(kernel, definedBlas(calls), false);
    expect(calls.count).toBe(expected);
    if (ofTheSystem !== null) check(kernel, ofTheSystem, true);
  });
});

it("finds no library in a file that there is not", () => {
  expect(openBlas("libbraid-has-no-such-blas.so")).toBeNull();
});

describe("createCpuBackend({ blas })", () => {
  it.each([0, 2])("auto keeps the oracle's bounds, with %i workers", async (workers) => {
    const f = new Fusion();
    const [x, w, bias, y] = [
      f.input([64, 48], "float"),
      f.input([40, 48], "float"),
      f.input([40], "float"),
      f.input([40, 56], "float"),
    ];
    const z = matmul(add(linear(x, w, bias), linear(x, w)), y);
    f.output(z);
    const on = createCpuBackend({ workers, blas: "auto" });
    const executor = await MultiDeviceExecutor.create(f, { devices: 1, on });
    try {
      const data = f.data();
      const shapes = [[64, 48], [40, 48], [40], [40, 56]].map((shape) => ({ dtype: "float" as const, shape }));
      const inputs = randomInputs(shapes, createRandom(3), "uniform");
      const { outputs, bounds } = evaluateFusion(data, inputs);
      const results = await executor.run(inputs);
      const comparison = compare(results[0] as (typeof outputs)[number], at(outputs, 0), at(bounds, 0));
      expect(comparison.firstBad).toBeNull();
    } finally {
      await executor.close();
    }
  });

  it("refuses another word", () => {
    const blas = "on" as unknown as "off";
    expect(() => createCpuBackend({ blas })).toThrow(DiagnosticError);
  });
});
