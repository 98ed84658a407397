/** Large launches in parts: the board that offers them, and bits that do not depend on which worker runs a part. */
import { describe, expect, it } from "vitest";
import { Fusion, gelu, linear, lower, matmul, MultiDeviceExecutor, type TensorView } from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import {
  allPartsDone,
  boardWords,
  hasParts,
  offerParts,
  partIsDone,
  takePart,
  takePartOf,
} from "../../../src/backends/cpu/threads/part-board.ts";
import { partitionKernels } from "../../../src/backends/cpu/threads/shared-works.ts";
import { link } from "../../../src/commands/link/link.ts";
import { randomInputs } from "../../../src/oracle/random-inputs.ts";
import { record } from "../../../src/compile/record.ts";
import { createRandom } from "../../../src/support/random.ts";

describe("the board", () => {
  it("gives every part of an offer to one taker", () => {
    const board = new Int32Array(boardWords(3));
    expect(hasParts(board)).toBe(false);
    expect(takePart(board)).toBeNull();
    offerParts(board, 1, { work: 2, command: 7 }, 3);
    const taken = [takePart(board), takePartOf(board, 1), takePart(board), takePart(board)];
    expect(taken).toEqual([...[0, 1, 2].map((part) => ({ owner: 1, work: 2, command: 7, part })), null]);
    expect(hasParts(board)).toBe(false);
    for (const [i, part] of taken.slice(0, 3).entries()) {
      expect(allPartsDone(board, 1, 3)).toBe(false);
      if (part !== null) partIsDone(board, part);
      expect(allPartsDone(board, 1, 3)).toBe(i === 2);
    }
  });

  it("keeps offers of workers and of one worker apart", () => {
    const board = new Int32Array(boardWords(2));
    for (let offer = 0; offer < 5000; offer++) {
      offerParts(board, 0, { work: 5, command: offer }, 2);
      expect(takePartOf(board, 1)).toBeNull();
      for (const part of [0, 1]) {
        const taken = takePart(board);
        expect(taken).toEqual({ owner: 0, work: 5, command: offer, part });
        if (taken !== null) partIsDone(board, taken);
      }
      expect(allPartsDone(board, 0, 2)).toBe(true);
    }
  });
});

describe("one rank with one large op", () => {
  const cases: Readonly<Record<string, (f: Fusion) => TensorView>> = {
    matmul: (f) => matmul(f.input([300, 256]), f.input([256, 200])),
    linear: (f) => linear(f.input([257, 300], "bfloat16"), f.input([130, 300], "bfloat16"), f.input([130], "bfloat16")),
    gelu: (f) => gelu(f.input([2100, 1024])),
  };

  it.each(Object.keys(cases))("%s has the machine's bits on two workers", async (name) => {
    const f = new Fusion();
    f.output(cases[name]?.(f) ?? f.input([1]));
    const program = link([record(lower(f), { rank: 0 })]);
    // Otherwise the test would show nothing.
    expect(partitionKernels(program, 2).some((parts) => (parts?.length ?? 0) > 1)).toBe(true);
    const shapes = f.inputs.map((input) => ({
      dtype: input.dtype,
      shape: input.extents.map((extent) => (extent.kind === "constant" ? extent.value : 0)),
    }));
    const inputs = randomInputs(shapes, createRandom(5), "uniform");
    const digests: Buffer[] = [];
    for (const workers of [0, 2]) {
      const executor = await MultiDeviceExecutor.create(f, { devices: 1, on: createCpuBackend({ workers }) });
      for (let run = 0; run < 3; run++) {
        const [output] = await executor.run(inputs);
        if (output !== undefined && "data" in output) digests.push(Buffer.from(output.data.buffer));
      }
      await executor.close();
    }
    expect(digests).toHaveLength(6);
    for (const digest of digests) expect(digest.equals(digests[0] ?? Buffer.alloc(0))).toBe(true);
  });
});
