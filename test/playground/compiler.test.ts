/** The playground's worker without a worker: builds programs, compiles them, and reports each part. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { analyse } from "../../playground/compiler/analyse.ts";
import { buildProgram } from "../../playground/compiler/build-program.ts";
import type { BuildAnswer, CompileRequest, Source, WorkPart } from "../../playground/compiler/messages.ts";
import { openModel } from "../../playground/compiler/open-model.ts";
import { replayOf } from "../../playground/compiler/replay.ts";
import { exampleRows } from "../../scripts/example-rows.ts";

const root = path.resolve(import.meta.dirname, "../..");
const examples = exampleRows(root);
const profile = readFileSync(path.join(root, "profiles/4xH200.json"), "utf8");

// oxlint-disable-next-line no-eval -- as the playground's worker does
const evaluate = (code: string): unknown => globalThis.eval(code);

function build(text: string, params: Readonly<Record<string, string>> = {}, devices = 4): BuildAnswer {
  return buildProgram({ kind: "build", text, variants: [{ devices, hosts: 1, params }] }, evaluate);
}

function sourceOf(answer: BuildAnswer): Source {
  const built = answer.kind === "built" ? (answer.variants[0] ?? null) : null;
  if (built === null) throw new Error(JSON.stringify(answer));
  // As the worker gets it.
  return { kind: "built", data: structuredClone(built.data) };
}

function example(name: string): string {
  const text = examples.find((each) => each.name === name)?.text;
  if (text === undefined) throw new Error(name);
  return text;
}

type Parts = { readonly [K in WorkPart["kind"]]?: Extract<WorkPart, { kind: K }> };

function compile(source: Source, given: Partial<CompileRequest> = {}) {
  const parts: Record<string, WorkPart> = {};
  const request = {
    kind: "compile",
    id: 1,
    source,
    devices: 4,
    options: { on: "cuda" },
    profile,
    rank: 0,
    edits: [],
  } as const;
  const analysed = analyse({ ...request, ...given }, (part) => void (parts[part.kind] = part));
  return { parts: parts as Parts, analysed };
}

// The others take seconds; test/browser has them all.
const quick = examples
  .map(({ name }) => name)
  .filter((name) => !/^transformer\/.*(attention|parallel|block)/u.test(name));

describe("examples", () => {
  it("have a sentence each", () => {
    expect(examples.length).toBeGreaterThan(15);
    for (const { sentence } of examples) expect(sentence).toMatch(/^[A-Z].{10,200}\.$/u);
    expect(examples[0]?.name).toBe("allgather-matmul");
  });

  it.each(quick)("%s compiles, verifies and is predicted", (name) => {
    const { parts } = compile(sourceOf(build(example(name))));
    expect(parts.verdict?.part.ok).toBe(true);
    expect(parts.predicted?.part.milliseconds).toBeGreaterThan(0);
    expect(parts.lowered?.part.hosts.flatMap(({ ranks }) => ranks).sort()).toEqual([0, 1, 2, 3]);
  });
});

describe("a program", () => {
  const source = sourceOf(build(example("allgather-matmul")));
  const { parts } = compile(source);

  it("has passes, of which some change nothing, up to the host program that is shown", () => {
    const passes = parts.lowered?.part.passes ?? [];
    expect(passes.some(({ changed }) => !changed)).toBe(true);
    const shown = parts.lowered?.part.hosts[0]?.lines.map(({ text }) => text).join("\n");
    expect(passes.at(-1)?.text.trim()).toBe(shown?.trim());
  });

  it("has pictures in which every device holds its part of every chunk", () => {
    const [x] = parts.lowered?.part.tensors ?? [];
    expect(x?.cells).toHaveLength(32);
    expect(x?.cells.every(({ devices }) => devices.length === 1)).toBe(true);
    const rows = x?.cells.reduce((sum, cell) => sum + cell.rows[1] - cell.rows[0], 0);
    expect(rows).toBe(x?.rows);
  });

  it("links commands to lines of the host program that it shows", () => {
    const lines = parts.lowered?.part.hosts[0]?.lines ?? [];
    const rows = parts.verdict?.part.commands[0]?.rows ?? [];
    const transfer = rows.find(({ kind }) => kind === "transfer");
    expect(lines[(transfer?.line ?? 0) - 1]?.text).toContain("Communication 0");
  });

  it("that does not verify has findings with lines of the edited text, a repair, and a replay", async () => {
    const small = sourceOf(build(example("allgather-matmul"), { M: "64", K: "32", N: "16", S: "4" }, 2));
    const given = { devices: 2, options: { on: "cuda", streams: "2" } };
    const [host] = compile(small, given).parts.lowered?.part.hosts ?? [];
    const lines = host?.lines.map(({ text }) => text) ?? [];
    const wait = lines.findIndex((line) => line.includes("Wait Communication"));
    const broken = lines.toSpliced(wait, 1);
    const { parts: found, analysed } = compile(small, { ...given, edits: [{ rank: 0, text: broken.join("\n") }] });
    expect(found.verdict?.part.ok).toBe(false);
    expect(found.predicted).toBeUndefined();
    const [first] = found.verdict?.part.findings ?? [];
    const shown = first?.finding.commands.map(({ line }) => broken[(line ?? 0) - 1]) ?? [];
    expect(shown.some((line) => line?.includes("Communication 0"))).toBe(true);
    expect(found.repair?.part.added).toMatchObject([{ ranks: [0, 1], after: wait }]);
    const repaired = found.repair?.part.hosts?.map(({ rank, text }) => ({ rank, text })) ?? [];
    expect(compile(small, { ...given, edits: repaired }).parts.verdict?.part.ok).toBe(true);
    if (analysed === null) throw new Error("not analysed");
    const replay = await replayOf(analysed, { finding: 0, seed: 0 });
    const wrong = replay?.steps.filter(({ isWrong }) => isWrong) ?? [];
    expect(wrong).toHaveLength(1);
    expect(wrong[0]?.text).toContain("launch");
    // Bytes that the collective brings, of which none are there yet.
    expect(wrong[0]?.reads.some(({ slice, writtenBy }) => slice.startsWith("T") && writtenBy.length === 0)).toBe(true);
    expect(replay?.withoutValues).toBeNull();
    expect(replay?.differences.map(({ firstWrong }) => firstWrong !== null)).toEqual([true]);
  });
});

describe("a run of a program that verifies", () => {
  it("is stepped through: each kernel reads what was written, and the output is right", async () => {
    const small = sourceOf(build(example("allgather-matmul"), { M: "64", K: "32", N: "16", S: "4" }, 2));
    const { analysed } = compile(small, { devices: 2, options: { on: "cuda" } });
    if (analysed === null) throw new Error("not analysed");
    const replay = await replayOf(analysed, { finding: null, seed: 3 });
    const kernels = replay?.steps.filter(({ isNamed, text }) => isNamed && text.startsWith("launch")) ?? [];
    expect(kernels).toHaveLength(8);
    expect(kernels.every(({ reads }) => reads.every((each) => each.isInput || each.writtenBy.length > 0))).toBe(true);
    expect(replay?.steps.some(({ isWrong }) => isWrong)).toBe(false);
    expect(replay?.differences.map(({ firstWrong }) => firstWrong)).toEqual([null]);
  });
});

describe("what is refused", () => {
  const refusal = (text: string, params = {}) => {
    const answer = build(text, params);
    return answer.kind === "refused" ? answer.diagnostics[0] : answer;
  };

  it("has the line of the syntax, of the throw, and of Braid's call", () => {
    expect(refusal("const x = 1;\nexport default (;")).toMatchObject({ place: { line: 2 }, code: "program-threw" });
    expect(refusal("\n\nthrow new Error('no');")).toMatchObject({ place: { line: 3 }, message: "Error: no" });
    const text =
      'import { Fusion, program } from "@braid-compiler/braid";\nexport default program({}, () => {\n  const f = new Fusion();\n  f.input([1.5], "float");\n  return f;\n});\n';
    expect(refusal(text)).toMatchObject({
      code: "bad-extent",
      source: expect.stringContaining("/program.ts:4:") as string,
    });
  });

  it("names what was perhaps meant: a function, a method, or a missing import", () => {
    const text = (names: string, line: string): string =>
      `import { ${names} } from "@braid-compiler/braid";\nexport default program({}, () => {\n  const f = new Fusion();\n  const x = f.input([8], "float");\n  ${line}\n  return f;\n});\n`;
    expect(refusal(text("Fusion, program, relu", "f.output(rleu(x));"))).toMatchObject({
      message: "ReferenceError: rleu is not defined",
      found: "rleu",
      help: "did you mean relu?",
    });
    expect(refusal(text("Fusion, program", "f.output(relu(x));"))).toMatchObject({
      help: 'add relu to the import from "@braid-compiler/braid"',
    });
    expect(refusal(text("Fusion, program, rleu", "f.output(rleu(x));"))).toMatchObject({
      message: '"@braid-compiler/braid" does not export rleu',
      source: expect.stringContaining("/program.ts:5:") as string,
      help: "did you mean relu?",
    });
    expect(refusal(text("Fusion, program", "x.outersplit(0, 2);"))).toMatchObject({
      found: "outersplit",
      help: "did you mean outerSplit?",
    });
  });

  it("is a file without a program, and another module", () => {
    expect(refusal("export const x = 1;")).toMatchObject({ code: "program-invalid" });
    expect(refusal('import fs from "node:fs";\nexport default fs;')).toMatchObject({ found: 'import from "node:fs"' });
  });

  it("is a parameter without a value, but not one that another program had", () => {
    expect(refusal(example("set"), { M: "x" })).toMatchObject({ code: "option-value" });
    expect(build(example("set"), { Q: "1" }).kind).toBe("built");
  });
});

describe("a dump", () => {
  it("is compiled like a program", () => {
    const file = "pasted.hir";
    const shown = compile(sourceOf(build(example("allgather"))))
      .parts.lowered?.part.hosts[0]?.lines.map(({ text }) => text)
      .join("\n");
    const { parts } = compile({ kind: "dump", file, text: shown ?? "" }, { devices: null });
    expect(parts.lowered?.part.isFusion).toBe(false);
    expect(parts.verdict?.part.ok).toBe(true);
  });
});

describe("models of frameworks", () => {
  const text = readFileSync(path.join(root, "test/import/jax/mlp-sp.mlir"), "utf8");

  it("are compiled for the devices of their mesh, verified and predicted", async () => {
    const opened = await openModel("mlp-sp.mlir", text);
    if (opened.kind === "refused") throw new Error(JSON.stringify(opened.diagnostics));
    const { parts } = compile(structuredClone(opened.source), { devices: null });
    expect(parts.lowered?.part.devices).toBe(4);
    expect([parts.verdict?.part.ok, parts.predicted === undefined]).toEqual([true, false]);
  });

  it("that cannot be read say where", async () => {
    const opened = await openModel("mlp-sp.mlir", text.replace("stablehlo.tanh", "stablehlo.erf_inv"));
    if (opened.kind === "opened") throw new Error("opened");
    expect(opened.diagnostics).toMatchObject([
      { code: "model-unsupported", place: { path: "mlp-sp.mlir", line: 14, column: 10 } },
    ]);
  });
});
