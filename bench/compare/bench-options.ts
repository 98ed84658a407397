/**
 * The options that only `braid bench` takes. Their flags, help and entries in configuration files are made from these
 * rows.
 */
import * as v from "valibot";
import { kindOf, listOf, oneOf, positiveWhole, text, toggle, wholeNumber } from "../../src/compile/options/kinds.ts";
import type { Target } from "../../src/compile/compile.ts";
import type { NamesOf, OptionRow, Options, ValuesOf } from "../../src/compile/options.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { blockCuts, blockPasses } from "./block/block-problem.ts";
import { type ModelName, modelNames } from "./block/models.ts";
import { type Implementation, parseImplementations } from "./implementation.ts";

export interface Size {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** What is measured where neither a flag nor a configuration file says. */
export const usual = {
  cpu: { size: { m: 256, n: 64, k: 128 }, model: "small-llama", dtypes: ["float"], iterations: 10, warmup: 2 },
  cuda: {
    size: { m: 8192, n: 8192, k: 8192 },
    model: "llama-3-8b",
    dtypes: ["bfloat16"],
    iterations: 20,
    warmup: 5,
  },
} as const satisfies Readonly<Record<Target, Usual>>;

interface Usual {
  readonly size: Size;
  readonly model: ModelName;
  readonly dtypes: readonly DType[];
  readonly iterations: number;
  readonly warmup: number;
}

function byTarget(of: (standard: (typeof usual)[Target]) => number | string): string {
  return `${of(usual.cpu)}; ${of(usual.cuda)} with --on cuda`;
}

const size = kindOf<Size>({
  schema: v.strictObject({ m: positiveWhole, n: positiveWhole, k: positiveWhole }),
  expected: "MxNxK",
  argument: "MxNxK",
  example: "8192x1024x4096",
  parse: (given) => {
    const [, m, n, k] = /^(\d+)x(\d+)x(\d+)$/.exec(given) ?? [];
    return { m: Number(m), n: Number(n), k: Number(k) };
  },
  print: ({ m, n, k }) => `${m}x${n}x${k}`,
});

/** An implementation may contain commas, so lists of them use another separator. */
const implementations = kindOf<readonly Implementation[]>({
  schema: v.custom<readonly Implementation[]>(Array.isArray),
  expected: "NAME[;option=value,...]",
  argument: "name;option=value,...",
  example: '"braid;form=rotated;protocol=get,put"',
  parse: (given) => given.split("\n").flatMap((each) => parseImplementations(each, `--impl ${each}`)),
  print: (all) => all.map(({ name, said }) => `${name} ${said}`).join("\n"),
  separator: "\n",
});

/** PyTorch's names of dtypes, which DDLB's files have. */
export const torchDtypes: ReadonlyMap<string, string> = new Map([
  ["float16", "half"],
  ["float32", "float"],
  ["float64", "double"],
]);

export const csvFile = text("file", "results.csv");
export const plotFile = kindOf<string>({
  schema: v.pipe(v.string(), v.regex(/\.(svg|html)$/)),
  expected: "a file that ends in .svg or .html",
  argument: "file",
  example: "results.svg",
});

/** At most one of each kind. */
const resultFiles = kindOf<ResultFiles>({
  schema: v.object({ csv: v.nullable(v.string()), plot: v.nullable(v.string()) }),
  expected: "a file that ends in .csv, and one that ends in .svg or .html",
  argument: "file",
  example: "results.csv",
  parse: (given) => {
    const files = given.split("\n");
    const [csv, plot] = [/\.csv$/u, /\.(?:svg|html)$/u].map((end) => files.filter((file) => end.test(file)));
    const isRead = files.length === (csv?.length ?? 0) + (plot?.length ?? 0);
    return isRead && (csv?.length ?? 0) < 2 && (plot?.length ?? 0) < 2
      ? { csv: csv?.[0] ?? null, plot: plot?.[0] ?? null }
      : undefined;
  },
  print: ({ csv, plot }) => [csv ?? [], plot ?? []].flat().join("\n"),
  separator: "\n",
});

interface ResultFiles {
  readonly csv: string | null;
  readonly plot: string | null;
}

/** Runs before the timed ones, which only a configuration file gives. */
export const warmupKind = wholeNumber(0, 5);

/** Values of --set, of which each may be several. */
const problem = { group: "program", commands: ["bench"], within: "set" } as const;
const run = { group: "run", commands: ["bench"] } as const;
const output = { group: "output", commands: ["bench"] } as const;

export const benchRows = {
  m: {
    ...problem,
    kind: listOf(wholeNumber(1, 8192), "sizes"),
    otherwise: byTarget(({ size: { m } }) => m),
    help: "rows of the result, one size or several; all combinations of m, n and k are timed",
  },
  n: {
    ...problem,
    kind: listOf(wholeNumber(1, 8192), "sizes"),
    otherwise: byTarget(({ size: { n } }) => n),
    help: "columns of the result; of each device in tp-columnwise",
  },
  k: {
    ...problem,
    kind: listOf(wholeNumber(1, 8192), "sizes"),
    otherwise: byTarget(({ size: { k } }) => k),
    help: "extent of the contraction; of each device in tp-rowwise and tp-allreduce",
  },
  sizes: {
    ...problem,
    flag: "size",
    kind: listOf(size, "MxNxK"),
    help: "sizes, in addition to all combinations of m, n and k if one of these is given",
  },
  model: {
    ...problem,
    kind: listOf(oneOf(modelNames), "names"),
    otherwise: byTarget(({ model }) => model),
    help: `of block, the models of which one block is timed: ${modelNames.join(", ")}`,
  },
  cut: {
    ...problem,
    kind: listOf(oneOf(blockCuts), "names"),
    otherwise: "both",
    help: "of block: tp, activations whole on every device; tp-sp, their tokens shared outside of the linears",
  },
  pass: {
    ...problem,
    kind: listOf(oneOf(blockPasses), "names"),
    otherwise: "both",
    help: "of block: forward, forward+backward",
  },
  dtype: {
    ...problem,
    kind: listOf(oneOf(["bfloat16", "half", "float", "double"]), "names"),
    otherwise: byTarget(({ dtypes: [dtype] }) => dtype),
    help: "dtypes of the operands: bfloat16, half, float, double",
  },
  impl: {
    ...run,
    kind: implementations,
    otherwise: "some of Braid's and, with --on cuda, PyTorch's",
    help: "what to time; values of an option are alternatives, all combinations are timed; may be repeated",
  },
  iterations: {
    ...run,
    flag: "repeat",
    kind: wholeNumber(1, 20),
    otherwise: byTarget(({ iterations }) => iterations),
    help: "timed runs of each implementation",
  },
  validate: {
    ...run,
    flag: "check",
    kind: toggle,
    help: "compare sampled elements of each result with matmuls in double precision",
  },
  config: {
    ...run,
    kind: text("file", "config.json"),
    help: "read settings that are not given as flags from a JSON file in DDLB's form",
  },
  python: { ...run, kind: text("program", "python3"), otherwise: "python3", help: "a Python that has PyTorch" },
  out: {
    ...output,
    short: "o",
    kind: resultFiles,
    help: "write the results to a .csv file with DDLB's column names, or draw them as .svg or .html, again after each size; may be repeated",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

/** The options that a configuration file may also give. */
export interface BenchOptions extends Omit<ValuesOf<typeof benchRows>, "config" | "out"> {
  readonly warmup?: number;
  readonly csv?: string;
  readonly plot?: string;
}

export type BenchFlags = ValuesOf<typeof benchRows> & Options<NamesOf<"bench">>;
