/**
 * The check of full-size matmuls on GPUs, at small sizes on the CPU: it agrees with the oracle, and finds a wrong
 * number, a missing term and a misplaced row.
 */
import { describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backends/backend.ts";
import { createCpuBackend } from "../../../src/backends/cpu/cpu-backend.ts";
import { Fusion } from "../../../src/ir/api/fusion.ts";
import { matmul } from "../../../src/ir/api/ops.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { checkLarge } from "../../gpu/large/check-large.ts";
import { type LargeCase, largeCases } from "../../gpu/large/large-cases.ts";
import { type LargeMode, makeLargeInputs } from "../../gpu/large/large-inputs.ts";
import { drawMatrix, type MatrixPart, partOf } from "../../gpu/large/large-matrix.ts";
import { numbersOf } from "../../gpu/large/numbers-of.ts";
import { sampleRows } from "../../gpu/large/sampled-rows.ts";

const sizes = { m: 32, k: 48, n: 16, chunks: 4 };
const cpu = createCpuBackend({ workers: 0 });
const first = at(largeCases, 0);

/** A back end whose outputs are what `change` makes of them. */
function changing(change: (output: Uint8Array) => void): Backend {
  return {
    name: "cpu",
    open: async (options) => {
      const group = await cpu.open(options);
      return {
        close: () => group.close(),
        prepare: async (program) => {
          const prepared = await group.prepare(program);
          const read = (buffer: Parameters<typeof prepared.read>[0]): Uint8Array => {
            const bytes = prepared.read(buffer);
            change(bytes);
            return bytes;
          };
          return { ...prepared, read, view: () => null };
        },
      };
    },
  };
}

/** Drawn once: all cases multiply the same matrices. */
const inputsOf = {
  signs: await makeLargeInputs("signs", sizes, "bfloat16", cpu),
  uniform: await makeLargeInputs("uniform", sizes, "bfloat16", cpu),
} as const;

async function problemsOf(mode: LargeMode, on: Backend, each: LargeCase = first): Promise<readonly string[]> {
  const options = { devices: 1, on };
  return checkLarge(each, { sizes, dtype: "bfloat16", rank: 0, inputs: [inputsOf[mode]], options });
}

describe("a matrix that repeats a piece", () => {
  it("has rows that differ, and parts that agree with the whole", () => {
    const matrix = drawMatrix("float", [6, 10], 3, (random) => random.float());
    const columns = { start: 0, count: 10 };
    const whole = partOf(matrix, { rows: [{ start: 0, count: 6 }], columns }, [6, 10]);
    const part: MatrixPart = {
      rows: [
        { start: 4, count: 2 },
        { start: 1, count: 1 },
      ],
      columns: { start: 3, count: 4 },
    };
    const numbers = Array.from(numbersOf(whole, 0, 60));
    const rows = [4, 5, 1].flatMap((row) => numbers.slice(row * 10 + 3, row * 10 + 7));
    expect(Array.from(numbersOf(partOf(matrix, part, [3, 4]), 0, 12))).toEqual(rows);
    expect(new Set(numbers).size).toBe(60);
  });
});

describe("rows in double", () => {
  it.each([
    ["uniform", 1],
    ["uniform", 4],
    ["signs", 4],
  ] as const)("are the oracle's, %s in %i parts", (mode, parts) => {
    const random = createRandom(5);
    const draw = (): number => (mode === "signs" ? random.integer(3) - 1 : 2 * random.float() - 1);
    const [a, b] = [drawMatrix("bfloat16", [8, 48], 1, draw), drawMatrix("bfloat16", [48, 16], 2, draw)];
    const f = new Fusion();
    f.output(matmul(f.input([8, 48], "bfloat16"), f.input([48, 16], "bfloat16")));
    const all = (rows: number, columns: number): MatrixPart => ({
      rows: [{ start: 0, count: rows }],
      columns: { start: 0, count: columns },
    });
    const inputs = [partOf(a, all(8, 48), [8, 48]), partOf(b, all(48, 16), [48, 16])];
    const { outputs } = evaluateFusion(f.data(), inputs);
    const product = at(outputs, 0);
    const rows = [6, 1];
    const { exact, bounds } = sampleRows(a, b, { rows, parts, exact: mode === "signs" });
    rows.forEach((row, i) => {
      numbersOf(product, row * 16, 16).forEach((stored, j) => {
        const error = Math.abs(stored - at(exact, i * 16 + j));
        expect(error).toBeLessThanOrEqual(at(bounds, i * 16 + j));
      });
    });
    expect(bounds.every((bound) => bound < 0.3)).toBe(true);
  });
});

describe("a large case", () => {
  it.each(largeCases)("$name passes on the CPU", async (each) => {
    expect(await problemsOf("signs", cpu, each)).toEqual([]);
    expect(await problemsOf("uniform", cpu, each)).toEqual([]);
  });

  it("fails for one number that is off by its last bit", async () => {
    const lastBit = changing((output) => {
      output[output.length - 2] = at(output, output.length - 2) ^ 1;
    });
    expect(await problemsOf("signs", lastBit)).toHaveLength(1);
  });

  it("fails for a row in another's place", async () => {
    const swapped = changing((output) => output.copyWithin(2 * sizes.n, 0, 2 * sizes.n));
    expect(await problemsOf("signs", swapped)).toHaveLength(1);
    expect(await problemsOf("uniform", swapped)).toHaveLength(1);
  });

  it("fails for numbers that are none", async () => {
    const nan = changing((output) => output.fill(0xff, 0, 2));
    expect(await problemsOf("uniform", nan)).toHaveLength(1);
  });
});
