/** Run options: where and how a Program runs, and what is checked. */
import * as v from "valibot";
import { kindOf, oneOf, seconds, text, wholeNumber } from "./kinds.ts";
import { onMachines, onPrograms, type OptionRow } from "./row.ts";

/** The file of an input; without a name, a file that has names itself. */
export interface InputFile {
  readonly name: string | null;
  readonly file: string;
}

/** `NAME=FILE` or `FILE`, one per flag. A name has no slash, so `./a=b.npy` is a file. */
const inputFiles = kindOf<readonly InputFile[]>({
  schema: v.array(v.object({ name: v.nullable(v.string()), file: v.pipe(v.string(), v.nonEmpty()) })),
  expected: "NAME=FILE, or a .safetensors or .npz file",
  argument: "name=file",
  example: "T0=x.npy",
  parse: (text) =>
    text.split("\n").map((each) => {
      const [, name = null, file = each] = /^([^=/\\]+)=(.*)$/.exec(each) ?? [];
      return { name, file };
    }),
  print: (files) => files.map(({ name, file }) => (name === null ? file : `${name}=${file}`)).join("\n"),
  separator: "\n",
});

const run = { group: "run", commands: ["run"] } as const;

export const runRows = {
  on: {
    ...run,
    commands: [...onPrograms, ...onMachines],
    kind: oneOf(["cpu", "cuda", "mpi"]),
    default: "cpu",
    defaultOf: { compile: "cuda" },
    otherwiseOf: { explain: "the machine of --profile" },
    help: "where the program runs: in this process, on GPUs, or in the processes that mpirun or srun started",
  },
  inputs: {
    ...run,
    kind: inputFiles,
    default: [],
    help: "read inputs from files: with NAME=, one from a .npy or .safetensors file; without, all that a .npz or .safetensors file names; may be repeated",
  },
  expect: {
    ...run,
    kind: text("file", "results.npz"),
    help: "compare the outputs with those of a .npz or .safetensors file (out0, out1, ... in order, or their names)",
  },
  seed: {
    ...run,
    commands: ["run", "bench"],
    kind: wholeNumber(0, 1, "s"),
    default: 0,
    help: "seed of the random inputs",
  },
  repeat: { ...run, kind: wholeNumber(1, 10), default: 1, help: "run n times" },
  check: {
    ...run,
    kind: { ...oneOf(["rows", "full"]), alone: "rows" },
    help: "compare each output with the oracle and print the largest error; of large outputs some rows, or all of them",
  },
  measured: {
    ...run,
    commands: ["explain"],
    flag: "trace",
    kind: text("file", "trace.json"),
    help: "explain this run, which braid run --trace wrote, beside the prediction if there is a --profile",
  },
  interleaving: {
    ...run,
    kind: text("order", "seed:1"),
    help: "order in which streams take turns on one thread: seed:S, hold:RANK:COMMAND, or a file of RANK:STREAM lines",
  },
  verify: {
    ...run,
    kind: oneOf(["on", "full", "off"]),
    otherwise: "on, but off with --interleaving",
    help: "refuse to run a program with findings of the verifier; full: verify every rank, even where ranks are alike",
  },
  full: {
    ...run,
    commands: ["verify"],
    flag: "verify",
    kind: oneOf(["on", "full"]),
    default: "on",
    help: "full: verify every rank and layer, even where one of each class stands for the others",
  },
  blas: {
    ...run,
    kind: oneOf(["auto", "off"]),
    default: "auto",
    help: "run GEMMs of floats by a BLAS of the system if there is one (auto), or get the same bits on every machine (off)",
  },
  graph: {
    ...run,
    kind: oneOf(["auto", "on", "off"]),
    default: "auto",
    help: "replay runs as CUDA graphs (--on cuda)",
  },
  timeout: {
    ...run,
    commands: [...onPrograms, "bench"],
    kind: seconds,
    default: 60,
    help: "end a run that takes longer than this many seconds; in commands that run nothing, the building of the program",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;
