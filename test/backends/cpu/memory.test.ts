/**
 * The memory of a Program near the limit: Programs that just fit run, also above 2 and 3 GiB; larger ones are rejected
 * with their sizes.
 */
import { type Diagnostic, DiagnosticError, type Group, link, type Program } from "@braid-compiler/braid";
import { afterEach, describe, expect, it, vi } from "vitest";
import { layOutProgram } from "../../../src/backends/cpu/address-space.ts";
import { openMachineGroup } from "../../../src/backends/cpu/machine-group.ts";
import { createMemoryPool, openThreadedGroup } from "../../../src/backends/cpu/threads/threaded-group.ts";
import type { WasmMemory } from "../../../src/support/webassembly.ts";
import { buildLists } from "../../machine/list-builder.ts";

const groups: readonly (readonly [string, () => Group])[] = [
  ["the machine", () => openMachineGroup({})],
  ["two workers", () => openThreadedGroup({ workers: 2 })],
];

/** One rank that copies; its arenas have these bytes. */
function copying(inputBytes: number, outputBytes: number): Program {
  return link(
    buildLists(1, (list) => {
      const [source, destination] = [list.input([inputBytes / 4]), list.output([outputBytes / 4])];
      list.copy(0, { ...source, shape: [8] }, { ...destination, shape: [8] });
    }),
  );
}

async function refusalOf(run: () => unknown): Promise<Diagnostic | undefined> {
  try {
    await run();
  } catch (error) {
    if (error instanceof DiagnosticError) return error.diagnostics[0];
    throw error;
  }
  return undefined;
}

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("a program", () => {
  it("of exactly 4 GiB fits, with one more line it does not", async () => {
    // Address 0 stays free: 256 bytes.
    const fits = copying(2 ** 31, 2 ** 31 - 256);
    expect(layOutProgram(fits, 0, 0).bytes).toBe(2 ** 32);
    expect(await refusalOf(() => layOutProgram(fits, 256, 0))).toMatchObject({
      code: "memory-limit",
      found: "4.00 GiB for 1 rank",
      expected: "at most 4.00 GiB",
      notes: ["rank 0 alone needs 4.00 GiB; scratch and kept inputs 0.00 GiB"],
    });
    expect((await refusalOf(() => layOutProgram(copying(2 ** 31, 2 ** 31), 0, 0)))?.code).toBe("memory-limit");
  });

  it.each(groups)("beyond the limit is refused with its figures before anything runs: %s", async (_, open) => {
    const group = open();
    const program = link(buildLists(8, (list) => list.copy(0, list.input([2 ** 27]), list.output([2 ** 27]))));
    expect(await refusalOf(() => group.prepare(program))).toMatchObject({
      code: "memory-limit",
      found: "8.00 GiB for 8 ranks",
      expected: "at most 4.00 GiB",
      notes: ["rank 0 alone needs 1.00 GiB; scratch and kept inputs 0.00 GiB"],
    });
    await group.close();
  });

  it.each(groups)("for which the system has no memory is refused with its figures: %s", async (_, open) => {
    const group = open();
    vi.stubGlobal("WebAssembly", {
      Memory: function () {
        throw new RangeError("WebAssembly.Memory(): could not allocate memory");
      },
    });
    expect(await refusalOf(() => group.prepare(copying(2 ** 30, 2 ** 30)))).toMatchObject({
      code: "memory-limit",
      found: "2.00 GiB for 1 rank refused: WebAssembly.Memory(): could not allocate memory",
    });
    vi.unstubAllGlobals();
    const prepared = await group.prepare(copying(64, 64));
    await prepared.execute({ timeout: 10 });
    await group.close();
  });

  it.each(groups)("whose buffers lie above 2 and 3 GiB computes, copies and transfers there: %s", async (_, open) => {
    const group = open();
    const n = 2 ** 18;
    // What is never touched takes no memory.
    const program = link(
      buildLists(2, (list) => {
        list.input([(2 ** 31 - 2 ** 27) / 4]);
        const own = list.input([n]);
        const [doubled, total, kept] = [list.output([n]), list.output([n]), list.output([n])];
        list.binary(0, "add", own, own, doubled);
        list.collective(0, "Allreduce", { team: [0, 1], reduceOp: "sum", input: doubled, output: total });
        list.copy(0, total, kept);
      }),
    );
    expect(layOutProgram(program, 0, 0).buffers.at(-1)).toBeGreaterThan(3.5 * 2 ** 30);
    const prepared = await group.prepare(program);
    const values = Float32Array.from({ length: n }, (_, i) => i % 1000);
    for (const { id, role, bytes } of program.buffers) {
      if (role === "input" && bytes === 4 * n) prepared.write(id, new Uint8Array(values.buffer));
    }
    for (let run = 0; run < 3; run++) await prepared.execute({ timeout: 20 });
    const outputs = program.buffers.filter(({ role }) => role === "output");
    const expected = [2, 4, 4, 2, 4, 4].map((factor) => Buffer.from(values.map((value) => factor * value).buffer));
    expect(outputs.map(({ id }, i) => expected[i]?.equals(prepared.read(id)))).toEqual(Array(6).fill(true));
    await group.close();
  });
});

describe("the memories of released Programs", () => {
  it("are used again, zeroed and grown, the smallest that fits first", () => {
    const pool = createMemoryPool();
    const take = (bytes: number): WasmMemory => {
      const program = copying(bytes, bytes);
      return pool.take(program, layOutProgram(program, 0, 0));
    };
    const [small, large] = [take(1000), take(1_000_000)];
    for (const memory of [large, small]) {
      new Uint8Array(memory.buffer).fill(7);
      pool.give(memory);
    }
    const again = take(900);
    expect(again).toBe(small);
    expect(new Uint8Array(again.buffer, 0, 2000).every((byte) => byte === 0)).toBe(true);
    expect(take(4_000_000)).toBe(large);
    expect(large.buffer.byteLength).toBeGreaterThanOrEqual(8_000_000);
    expect(new Uint8Array(large.buffer, 0, 8_000_000).every((byte) => byte === 0)).toBe(true);
    expect([small, large]).not.toContain(take(100));
  });
});
