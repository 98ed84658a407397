/** Plans: what is read back is what was written, and everything else is refused by one diagnostic. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deviceOps } from "../../src/backends/cuda/ops/device-ops.ts";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import type { PlanFiles } from "../../src/plan/make-plan.ts";
import { sha256 } from "../../src/plan/plan-document.ts";
import { planShard, putPart } from "../../src/cli/plan/run-plan.ts";
import { compile } from "../../src/compile/compile.ts";
import { unfoldLists } from "../../src/plan/blocks.ts";
import { at } from "../../src/support/invariant.ts";
import { exampleFusion } from "../support/example-program.ts";
import {
  adding,
  attention,
  breaks,
  brokenBlocks,
  changed,
  empty,
  layers,
  planOf,
  read,
  ring,
  target,
  total,
} from "./plans.ts";

/** The one diagnostic of reading it. */
async function refusal(files: PlanFiles): Promise<string> {
  const error: unknown = await read(files).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof DiagnosticError)) return `not refused: ${String(error)}`;
  expect(error.diagnostics).toHaveLength(1);
  const { code, place, found, expected, help } = at(error.diagnostics, 0);
  expect(help).toBeDefined();
  return `${code} at ${place?.kind === "file" ? place.path : "nowhere"}: ${found}; ${expected}`;
}

describe.each([
  ["a ring", () => ring(4)],
  ["sums over links", total],
  ["a kernel that reads an empty tensor", empty],
  ["attention", attention],
  ["GEMMs that add", adding],
  ["layers", () => layers()],
])("the plan of %s", (_, make) => {
  const compilation = make();
  const files = planOf(compilation);

  it("has the device operations of its Program, and what its messages need", async () => {
    const { ranks, document } = await read(files);
    const { program } = compilation;
    expect(document.world).toBe(program.ranks.length);
    for (const { rank, commands } of program.ranks) {
      const { ops, notes } = at(ranks, rank);
      const { memory, ...planned } = deviceOps(program, rank, target);
      expect(ops).toMatchObject(planned);
      expect(ops.memory).toMatchObject({ ...memory, in: {}, out: {}, copied: {} });
      expect(notes.commandCount).toBe(commands.length);
      expect(commands.map((_command, i) => notes.kindOf(i))).toEqual(commands.map(({ kind }) => kind));
    }
  });

  it("is the same text every time, with a hash of every other file", () => {
    expect([...planOf(make())]).toEqual([...files]);
    const { files: hashes } = JSON.parse(files.get("plan.json") ?? "") as { files: Record<string, string> };
    const others = [...files].filter(([file]) => file !== "plan.json");
    expect(hashes).toEqual(Object.fromEntries(others.map(([file, text]) => [file, sha256(text)])));
  });

  it("cuts tensors into parts that make up the whole again", async () => {
    const { document, ranks } = await read(files);
    const both = [
      ["input", document.inputs],
      ["output", document.outputs],
    ] as const;
    for (const [role, tensors] of both)
      for (const [position, { shape }] of tensors.entries()) {
        const parts = ranks.flatMap((rank) => rank.tensors.filter((t) => t.role === role && t.position === position));
        const bytes = shape.reduce((product, extent) => product * extent, at(parts, 0).dtype === "half" ? 2 : 4);
        const whole = Uint8Array.from({ length: bytes }, (_byte, i) => i % 251);
        const again = new Uint8Array(bytes);
        for (const part of parts) putPart(part, shape, planShard(part, shape, whole), again);
        expect(again).toEqual(whole);
      }
  });
});

describe("a plan is refused", () => {
  const files = planOf(ring());
  const [kernel = ""] = [...files.keys()].filter((file) => file.endsWith(".cu"));

  it.each([...files.keys()].filter((file) => file !== "plan.json"))("with a flipped bit in %s", async (file) => {
    const text = files.get(file) ?? "";
    await fc.assert(
      fc.asyncProperty(fc.nat(text.length - 1), fc.nat(6), async (position, bit) => {
        const flipped = String.fromCodePoint(text.charCodeAt(position) ^ (1 << bit));
        const broken = new Map(files).set(file, text.slice(0, position) + flipped + text.slice(position + 1));
        expect(await refusal(broken)).toMatch(new RegExp(`^plan-invalid at plan/${file}: SHA-256 [0-9a-f]{64}; `));
      }),
      { numRuns: 20 },
    );
  });

  it.each(breaks)("with %s", async (_, file, [before, after], expected) => {
    expect(await refusal(changed(files, file, (text) => text.replace(before, after)))).toMatch(expected);
  });

  it("with an addend behind its space, or in one that it lacks", async () => {
    const summing = planOf(adding());
    const pattern = /"addend":(?:\{[^}]*)"offset":(\d+)\}/u;
    const [text = "", offset] = pattern.exec(summing.get("rank-0.json") ?? "") ?? [];
    const behind = changed(summing, "rank-0.json", (all) =>
      all.replace(text, text.replace(`"offset":${offset}}`, '"offset":100000}')),
    );
    // 4 x 6 of half.
    expect(await refusal(behind)).toMatch(
      /operation \d+, gemm: bytes up to 100048 of symmetric of rank 0; at most \d+$/u,
    );
    const elsewhere = changed(summing, "rank-0.json", (all) =>
      all.replace(text, '"addend":{"space":"in","tensor":7,"offset":0}'),
    );
    expect(await refusal(elsewhere)).toMatch(/gemm: bytes up to 48 of in 7; a space that the plan has$/u);
    const ignored = changed(summing, "rank-0.json", (all) => all.replace('"accumulate":true', '"accumulate":false'));
    expect(await refusal(ignored)).toMatch(
      /operation \d+: a GEMM with an addend that does not accumulate; accumulate/u,
    );
  });

  it("without one of its files, or its hash", async () => {
    const { [kernel]: _, ...hashes } = (JSON.parse(files.get("plan.json") ?? "") as { files: Record<string, string> })
      .files;
    const without = changed(files, "plan.json", (text) =>
      text.replace(/"files": \{.*\}/, `"files": ${JSON.stringify(hashes)}`),
    );
    expect(await refusal(without)).toBe(`plan-invalid at plan/plan.json: no hash of ${kernel}; a hash of every file`);
  });
});

describe("layers", () => {
  const files = planOf(layers());

  it.each(brokenBlocks)("are refused with %s", async (_, [before, after], expected) => {
    const broken = changed(files, "rank-0.json", (text) => text.replace(before, after));
    expect(await refusal(broken)).toMatch(/^plan-invalid at plan\/rank-0\.json: /u);
    expect(await refusal(broken)).toMatch(expected);
  });

  it("stand there once: a plan of twice as many has as many lines, and ever fewer characters a layer", () => {
    const twice = planOf(layers(48));
    const textOf = (plan: PlanFiles): string => plan.get("rank-0.json") ?? "";
    expect(textOf(twice).split("\n")).toHaveLength(textOf(files).split("\n").length);
    expect(textOf(twice).length).toBeLessThan(1.5 * textOf(files).length);
  });
});

it("has the layers of a model once also where a schedule orders them by the memory that they share", async () => {
  const source = await exampleFusion("hosts/llama.ts", 2, { LAYERS: 24 });
  const schedule = { inPlace: true, computeStreams: 2 } as const;
  const files = planOf(compile(source, { devices: 2, on: "cuda", backend: "cuda", deviceLoops: true, schedule }));
  const text = files.get("rank-0.json") ?? "";
  const whole = JSON.stringify(unfoldLists(JSON.parse(text)));
  expect(whole.length / text.length).toBeGreaterThan(3);
});

describe("a plan is not made", () => {
  it("of transfers of NCCL", () => {
    expect(() => planOf(ring(2, "nccl"))).toThrow("a plan cannot hold transfers of NCCL");
  });

  it("of a program with findings", () => {
    const compilation = ring();
    const report = { ...compilation.report, ok: false };
    expect(() => planOf({ ...compilation, report })).toThrow("a plan is made of a verified program");
  });
});
