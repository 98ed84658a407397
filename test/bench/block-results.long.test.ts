/** `braid bench block`: Braid's implementations of transformer blocks on the CPU, with the right results. */
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { Group, Prepared } from "../../src/backends/backend.ts";
import type { BlockFusion } from "../../bench/compare/block/block-builder.ts";
import { readBenchConfig } from "../../bench/compare/bench-config.ts";
import { planBench } from "../../bench/compare/bench-plan.ts";
import { createBlockMatrices, scaleOf } from "../../bench/compare/block/block-matrices.ts";
import { type BlockProblem, blockFlops, blockReceived } from "../../bench/compare/block/block-problem.ts";
import type { Ask } from "../../bench/compare/block/block-reference.ts";
import { type BlockCheck, createBlockCheck } from "../../bench/compare/block/check-block.ts";
import { planBlock } from "../../bench/compare/block/plan-block.ts";
import { type Implementation, parseImplementations, torchPaths } from "../../bench/compare/implementation.ts";
import { numbersOf } from "../../bench/compare/torch/peer-contender.ts";
import { wholeBlock } from "../../bench/compare/block/block-fusion.ts";
import { type AnyCompilation, compile } from "../../src/compile/compile.ts";
import { createCpuBackend } from "../../src/cpu.ts";
import { unshardInto } from "../../src/executor/shard.ts";
import { emptyTensor, tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { at, isOneOf } from "../../src/support/invariant.ts";
import { roundProfile } from "../simulate/profile.ts";
import { cli } from "../cli/captured-cli.ts";

interface Document {
  readonly rows: readonly {
    readonly name: string;
    readonly option: string;
    readonly partOfBound: number | null;
    readonly problem: BlockProblem;
    readonly figures: { readonly times: readonly number[] };
  }[];
}

const quick = ["--devices", "2", "--repeat", "1", "--check"] as const;

function problemOf(model: BlockProblem["model"], given: Partial<BlockProblem> = {}): BlockProblem {
  return { primitive: "block", model, cut: "tp-sp", pass: "forward+backward", dtype: "float", devices: 2, ...given };
}

function own(text: string): Extract<Implementation, { readonly kind: "braid" }> {
  const parsed = at(parseImplementations(text, "test"), 0);
  if (parsed.kind !== "braid") throw new Error(text);
  return parsed;
}

describe("braid bench block", () => {
  it.each([
    { model: "small-llama", cut: "tp-sp", pass: "forward" },
    { model: "small-gpt", cut: "tp", pass: "forward+backward" },
  ])("times $model $cut $pass with the right results", async ({ model, cut, pass }) => {
    const impls = ["braid;chunks=4;backend=nccl,cuda", "communication-only"];
    const args = [
      "--set",
      `model=${model},cut=${cut},pass=${pass}`,
      ...quick,
      ...impls.flatMap((impl) => ["--impl", impl]),
    ];
    const { status, out, err } = await cli("bench", "block", ...args, "--json");
    expect(err).not.toContain("left out");
    expect(status, err).toBe(0);
    const { rows } = JSON.parse(out) as Document;
    expect(rows.map(({ name }) => name)).toEqual(["compute-only", "serial", "braid", "braid", "communication-only"]);
    for (const { partOfBound, figures, problem } of rows) {
      expect(problem).toMatchObject({ primitive: "block", model, cut, pass });
      expect(partOfBound).toBeLessThanOrEqual(1);
      expect(figures.times).toHaveLength(1);
    }
  });

  it("has a table for each, and the model in the CSV's columns", async () => {
    const args = ["--set", "model=small-gpt,cut=tp,pass=forward", "--impl", "braid", "--set", "dtype=bfloat16"];
    const { status, out, err } = await cli("bench", "block", ...args, ...quick);
    expect(status, err).toBe(0);
    expect(out).toMatch(/^block small-gpt tp forward bfloat16, 2 devices\nimplementation +time \[ms\]/m);
  });

  it.each([
    { args: ["--set", "m=64"], expected: ["block has no m", "at: --set m", "model, cut and pass"] },
    { args: ["--set", "model=llama-4"], expected: ["--set", "found: model=llama-4", "llama-3-70b"] },
    { args: ["--set", "cut=sp"], expected: ["--set", "where VALUE is one of tp, tp-sp"] },
    { args: ["--devices", "3"], expected: ["--devices", "a divisor of its 4 groups of heads and 16 tokens"] },
    { args: ["--impl", "braid;form=rotated"], expected: ["a block has no option form"] },
    { args: ["--impl", "braid;scheduleChoice=auto"], expected: ["bad-option", "--profile FILE"] },
  ])("refuses $args", async ({ args, expected }) => {
    const { status, out, err } = await cli("bench", "block", "--devices", "2", ...args);
    expect(status, err).toBe(2);
    for (const part of expected) expect(err).toContain(part);
    expect(err.match(/^error\[/gm)).toHaveLength(1);
    expect(out).toBe("");
  });

  it("refuses the sizes of a block for a GEMM", async () => {
    const { status, err } = await cli("bench", "tp-rowwise", "--set", "model=small-gpt");
    expect(status).toBe(2);
    expect(err).toContain("tp-rowwise has no model");
  });

  it("lets a measured machine choose the chunks and the schedule", () => {
    const forward = problemOf("small-gpt", { cut: "tp", pass: "forward" });
    const setting = { on: "cpu", profile: roundProfile } as const;
    const { reason, compilation } = planBlock(own("braid;scheduleChoice=auto"), forward, setting);
    expect(reason).toMatch(
      /^chunks [^(]+ \((?:(?:[124](?: from the start)?|of tokens over devices): [\d.]+ ms(?:, |\), )){5}.* ms/,
    );
    expect(compilation.report?.ok).toBe(true);
  });

  it("in chunks from the start, gathers what the attention reads in a loop, too", () => {
    const problem = problemOf("small-llama", { cut: "tp-sp", pass: "forward" });
    const { compilation } = planBlock(own("braid;chunks=2;backend=nccl"), problem, { on: "cpu", profile: null });
    const inLoops = at(compilation.hosts, 0).body.flatMap((statement) =>
      statement.kind === "ForLoop"
        ? [statement.body.flatMap((each) => (each.kind === "Communication" ? [each.type] : []))]
        : [],
    );
    expect(inLoops.filter((types) => types.length > 0)).toEqual([
      ["Allgather"],
      ["ReduceScatter", "Allgather", "ReduceScatter"],
    ]);
  });
});

interface Ran {
  readonly block: BlockFusion;
  readonly compilation: AnyCompilation;
  readonly prepared: Prepared;
  readonly group: Group;
}

async function run(problem: BlockProblem, implementation: string): Promise<Ran> {
  return runPlanned(planBlock(own(implementation), problem, { on: "cpu", profile: null }));
}

async function runPlanned({ block, compilation }: Pick<Ran, "block" | "compilation">): Promise<Ran> {
  const { program, signature, sizes } = compilation;
  const group = await createCpuBackend({ blas: "off" }).open({ world: 2, localRanks: [0, 1] });
  const prepared = await group.prepare(program);
  for (const { id, role, rank, position } of program.buffers) {
    if (role !== "input" || position === null) continue;
    const tensor = at(signature.tensors, at(signature.inputs, position));
    prepared.write(id, matrices.part(at(block.inputs, position), tensor, shapeOf(tensor, sizes), rank));
  }
  await prepared.execute();
  return { block, compilation, prepared, group };
}

/** What a check says of the results, of which those of rank 1 for one output are changed. */
async function checked(check: BlockCheck, ran: Ran, name: string | null, change: (values: Float32Array) => void) {
  const { block, compilation, prepared } = ran;
  const position = name === null ? -1 : block.outputs.indexOf(name);
  const wrong = compilation.program.buffers.find((each) => {
    return each.role === "output" && each.position === position && each.rank === 1;
  });
  const read: Prepared["read"] = (id) => {
    const bytes = prepared.read(id).slice();
    if (id === wrong?.id) change(new Float32Array(bytes.buffer));
    return bytes;
  };
  const found = await check({ block, compilation, prepared: { ...prepared, read }, ranks: [0, 1] });
  return found.kind === "failed" ? found.why : found.value;
}

const matrices = createBlockMatrices(0);
const noPeer: Ask = async () => ({ kind: "failed", why: "no PyTorch here" });
const unchanged = (): void => {};

it("has a configuration for all models, cuts and passes beside every path of PyTorch", async () => {
  const config = await readBenchConfig(path.resolve(import.meta.dirname, "../../bench/configs/block.json"));
  const plan = planBench(null, { ...config, on: "cuda", seed: 0, timeout: 60, profile: null }, 2);
  expect(plan.problems).toHaveLength(4 * 2 * 2);
  const names = plan.implementations.map(({ name }) => name);
  const usual = planBench("block", { on: "cuda", seed: 0, timeout: 60, profile: null }, 2).implementations;
  const paths = usual.map(({ name }) => name).filter((name) => isOneOf(torchPaths, name));
  expect(paths).toHaveLength(4);
  expect(names).toEqual(expect.arrayContaining(["compute-only", "serial", ...paths]));
  expect(usual.map(({ name }) => name)).toContain("xla");
  const withProfile = planBench("block", { on: "cuda", seed: 0, timeout: 60, profile: roundProfile }, 2);
  expect(withProfile.implementations.map(({ said }) => said)).toContain("scheduleChoice=auto");
});

describe.each(["small-llama", "small-gpt"] as const)("%s with tokens shared between the linears of tp", (model) => {
  it.each([
    ["forward", "overlapping"],
    ["forward+backward", "overlapping"],
    ["forward+backward", "serial"],
  ] as const)("%s, %s, has the right results", async (pass, form) => {
    const problem = problemOf(model, { cut: "tp", pass });
    const block = wholeBlock(problem, { chunks: 1, all: false, overDevices: true });
    const lowering = form === "serial" ? { overlap: false } : { deviceLoops: true };
    const schedule = { inPlace: true, ownLast: true, computeStreams: 1 };
    const compilation = compile(block.fusion, { devices: 2, backend: "cuda", protocol: "put", schedule, ...lowering });
    const ran = await runPlanned({ block, compilation });
    try {
      expect(await checked(createBlockCheck(problem, matrices, noPeer), ran, null, unchanged)).toBeLessThanOrEqual(1);
    } finally {
      await ran.group.close();
    }
  });
});

describe("the check of a block", () => {
  it("finds one wrong element of one output, on any rank", async () => {
    const problem = problemOf("small-llama");
    const ran = await run(problem, "braid;chunks=2");
    try {
      const check = createBlockCheck(problem, matrices, noPeer);
      expect(await checked(check, ran, null, unchanged)).toBeLessThanOrEqual(1);
      for (const name of ["z", "w_qkv gradient", "norm2 gradient"]) {
        expect(await checked(check, ran, name, (values) => values.set([7])), name).toBeGreaterThan(1);
      }
    } finally {
      await ran.group.close();
    }
  });

  it("takes samples of a large block, and PyTorch's values of them", async () => {
    const large = problemOf("llama-3-8b");
    const ran = await run(problemOf("small-llama"), "braid;chunks=2");
    const { block, compilation, prepared, group } = ran;
    try {
      const { signature, sizes, program } = compilation;
      const asked: unknown[] = [];
      const ask: Ask = async (request) => {
        asked.push(request["output"]);
        const position = block.outputs.findIndex((name) => name === request["output"]);
        const tensor = at(signature.tensors, at(signature.outputs, position));
        const whole = emptyTensor("float", shapeOf(tensor, sizes));
        for (const { id, role, rank, position: of } of program.buffers) {
          if (role === "output" && of === position) {
            unshardInto(tensor, whole.shape, prepared.read(id), rank, tensorBytes(whole));
          }
        }
        const values = numbersOf(request["indices"]).map((index) => Number(whole.data[index]));
        return { kind: "done", value: { values, error: 0.003 } };
      };
      const check = createBlockCheck(large, matrices, ask);
      expect(await checked(check, ran, null, unchanged)).toBe(0);
      expect(new Set(asked)).toEqual(new Set(block.outputs));
      for (const name of block.outputs) {
        const larger = (by: number) => (values: Float32Array) => values.set(values.map((value) => value * by));
        expect(await checked(check, ran, name, larger(1.004)), name).toBeLessThan(1);
        expect(await checked(check, ran, name, larger(1.02)), name).toBeGreaterThan(1);
        expect(await checked(check, ran, name, (values) => values.reverse()), name).toBeGreaterThan(1);
        expect(await checked(check, ran, name, (values) => values.fill(NaN)), name).toBe(Infinity);
      }
      const why = "not checked: no PyTorch here";
      expect(await checked(createBlockCheck(large, matrices, noPeer), ran, null, unchanged)).toBe(why);
      const odd: Ask = async () => ({ kind: "done", value: { values: [1], error: 0 } });
      const said = await checked(createBlockCheck(large, matrices, odd), ran, null, unchanged);
      expect(said).toContain('an answer that cannot be parsed: {"values":[1]');
    } finally {
      await group.close();
    }
  });

  it("has nothing to compare a part of a large block with", async () => {
    const ran = await run(problemOf("small-llama", { pass: "forward" }), "compute-only");
    try {
      const check = createBlockCheck(problemOf("llama-3-8b"), matrices, noPeer);
      expect(await checked(check, ran, null, unchanged)).toBeNull();
    } finally {
      await ran.group.close();
    }
  });
});

describe("a block's sizes", () => {
  it("are those of the published models: operations and bytes of a device", () => {
    const forward = problemOf("llama-3-70b", { pass: "forward", dtype: "bfloat16" });
    // 10.01 ms of GEMMs at 700 TFLOP/s on two devices, and 67 MB in each of four collectives.
    const attention = (2 * 8192 ** 3) / 2;
    expect((blockFlops(forward) - attention) / 700e9).toBeCloseTo(10.01, 1);
    expect(blockReceived(forward) / 4).toBe(8192 * 8192);
    expect(blockReceived({ ...forward, pass: "forward+backward" })).toBe(2 * blockReceived(forward));
  });

  it("scale weights by what a dot product reads, by powers of two", () => {
    expect(scaleOf("w_up", [28_672, 8192])).toBe(2 ** -6);
    expect(scaleOf("x", [1, 8192, 8192])).toBe(1);
    expect(scaleOf("b_up", [8])).toBe(1 / 8);
  });
});
