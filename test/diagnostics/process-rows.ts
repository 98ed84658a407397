/**
 * Fixes about machines that take a process: of libraries that are missing or old, GPUs, launchers and ranks that fail.
 * Fake libraries stand for CUDA, NCCL and cuDNN.
 */
import { execFile, execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import type { DiagnosticCode } from "@braid-compiler/braid";
import type { Fakes } from "../backends/cuda/fake/build-fakes.ts";
import { runRanks } from "../launch/run-ranks.ts";
import { launchers, underMpi } from "../mpi/under-mpi.ts";

const root = path.resolve(import.meta.dirname, "../..");
const main = path.join(root, "dist/cli/main.js");
const example = path.join(root, "test/fixtures/programs/ring-allgather-matmul.ts");
const small = ["M=12", "K=4", "N=5"].flatMap((size) => ["--set", size]);

export interface ProcessRow {
  readonly code: DiagnosticCode;
  readonly help: RegExp;
  /** What the command writes to stderr; with the text of the fix, done as that says. */
  readonly err: (fix: string | null, fakes: Fakes) => Promise<string>;
  /** Why this machine cannot tell; empty if it can. */
  readonly obstacle?: string;
}

type Variables = Readonly<Record<string, string>>;

/** The command without fake libraries, unless the variables name them. */
function braid(args: readonly string[], variables: Variables, file = main): Promise<string> {
  return new Promise((resolve) => {
    // oxlint-disable-next-line node/no-process-env -- what the command inherits
    const env = { ...process.env, ...variables };
    execFile(process.execPath, [file, ...args], { env }, (_, _out, err) => resolve(err));
  });
}

const run = (...flags: readonly string[]): readonly string[] => ["run", example, "--on", "cuda", ...small, ...flags];

function onFakes(fakes: Fakes, flags: readonly string[], variables: Variables = {}): Promise<string> {
  return braid(run(...flags), { ...fakes.env, ...variables });
}

/** Both ranks under torchrun's variables. */
async function launched(fakes: Fakes, port: number, flags: readonly string[], variables: Variables): Promise<string> {
  const shared = { WORLD_SIZE: "2", LOCAL_WORLD_SIZE: "2", MASTER_ADDR: "127.0.0.1", MASTER_PORT: String(port) };
  const job = { TORCHELASTIC_RUN_ID: `fixes-${process.pid}-${port}` };
  const ends = [0, 1].map((rank) =>
    onFakes(fakes, flags, { ...shared, ...job, RANK: String(rank), LOCAL_RANK: String(rank), ...variables }),
  );
  return (await Promise.all(ends)).join("");
}

/** A library of that name without any function. */
function emptyLibrary(fakes: Fakes, name: string): string {
  const folder = path.join(fakes.folder, "old");
  mkdirSync(folder, { recursive: true });
  const source = path.join(folder, "empty.cpp");
  writeFileSync(source, "");
  execFileSync("g++", ["-shared", "-o", path.join(folder, name), source]);
  return folder;
}

/** Braid in a folder whose packages are all but this one. */
function copyWithout(fakes: Fakes, left: string): { readonly file: string; readonly install: () => void } {
  const folder = mkdtempSync(path.join(fakes.folder, "copy-"));
  const modules = path.join(folder, "node_modules");
  mkdirSync(modules, { recursive: true });
  cpSync(path.join(root, "dist"), path.join(folder, "dist"), { recursive: true });
  cpSync(path.join(root, "package.json"), path.join(folder, "package.json"));
  const link = (name: string): void => symlinkSync(path.join(root, "node_modules", name), path.join(modules, name));
  for (const name of readdirSync(path.join(root, "node_modules"))) if (name !== left) link(name);
  return { file: path.join(folder, "dist/cli/main.js"), install: () => link(left) };
}

const [openMpi] = launchers;

function overMpi(...lists: readonly (readonly string[])[]): Promise<string> {
  if (openMpi === undefined) throw new Error("no launcher");
  const args = lists.map((flags) => [path.join(root, "examples/allgather-matmul.ts"), "--on", "mpi", ...flags]);
  return underMpi(openMpi, 1, ...args).then(({ err }) => err);
}

const doubled = `func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}`;

/** A file of floats as of save_file. */
function saved(file: string, arrays: Readonly<Record<string, readonly number[]>>): string {
  const entries = Object.entries(arrays);
  const header = entries.map(([name, { length }], i) => {
    const begin = entries.slice(0, i).reduce((bytes, [, values]) => bytes + 4 * values.length, 0);
    return [name, { dtype: "F32", shape: [length], data_offsets: [begin, begin + 4 * length] }];
  });
  const text = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  const data = Buffer.from(Float32Array.from(entries.flatMap(([, values]) => values)).buffer);
  writeFileSync(file, Buffer.concat([size, text, data]));
  return file;
}

export const processRows: readonly ProcessRow[] = [
  {
    code: "backend-unavailable",
    help: /name its folder in LD_LIBRARY_PATH; `braid doctor`/u,
    err: (fix, fakes) => {
      const { LD_LIBRARY_PATH: folder = "", ...rest } = fakes.env;
      return braid(run("--devices", "2"), fix === null ? rest : { ...rest, LD_LIBRARY_PATH: folder });
    },
  },
  {
    code: "backend-unavailable",
    help: /install a newer version, or name its folder in LD_LIBRARY_PATH/u,
    err: (fix, fakes) => {
      const old = emptyLibrary(fakes, "libcuda.so.1");
      return onFakes(fakes, ["--devices", "2"], fix === null ? { LD_LIBRARY_PATH: old } : {});
    },
  },
  {
    code: "backend-unavailable",
    help: /^npm install koffi$/u,
    err: async (fix, fakes) => {
      const copy = copyWithout(fakes, (fix ?? "npm install koffi").split(" ").at(-1) ?? "");
      if (fix !== null) copy.install();
      return braid(run("--devices", "2"), fakes.env, copy.file);
    },
  },
  {
    code: "backend-unavailable",
    help: /run on the CPU \(--on cpu\)/u,
    err: (fix, fakes) => {
      const on = fix === null ? [] : (/--on \w+/u.exec(fix)?.[0].split(" ") ?? []);
      return onFakes(fakes, ["--devices", "2", ...on], { FAKE_CUDA_DEVICES: "0" });
    },
  },
  {
    code: "backend-unavailable",
    help: /use --devices 1, or check CUDA_VISIBLE_DEVICES/u,
    err: (fix, fakes) => {
      const devices = fix === null ? ["--devices", "2"] : (/--devices \d/u.exec(fix)?.[0].split(" ") ?? []);
      return onFakes(fakes, devices, { FAKE_CUDA_DEVICES: "1" });
    },
  },
  {
    code: "backend-unavailable",
    help: /let each rank see all GPUs of its host/u,
    err: (fix, fakes) => launched(fakes, 29_710, [], { FAKE_CUDA_DEVICES: fix === null ? "1" : "2" }),
  },
  {
    code: "gpu-unsupported",
    help: /run on a newer GPU, or on the CPU/u,
    err: (fix, fakes) => onFakes(fakes, ["--devices", "2"], { FAKE_CUDA_MAJOR: fix === null ? "7" : "9" }),
  },
  {
    code: "gpu-call-failed",
    help: /docs\/gpu\.md, Trouble-shooting; `braid doctor` shows driver and libraries/u,
    err: async (fix, fakes) => {
      // The fake NCCL takes no message as large as those of the example's own sizes.
      const args = ["run", example, "--on", "cuda", "--backend", "nccl", "--devices", "2"];
      if (fix === null) return braid(args, fakes.env);
      const [, page = "", section = ""] = /see (\S+), ([\w-]+);/u.exec(fix) ?? [];
      if (!readFileSync(path.join(root, page), "utf8").includes(`\n## ${section}\n`)) return "no such section";
      return (await braid(["doctor"], fakes.env)) + (await braid([...args, ...small], fakes.env));
    },
  },
  {
    code: "rank-failed",
    help: /read that rank's own message/u,
    // Of the two ranks the other one fails, with a message; without that neither does.
    err: async (fix) => (await runRanks(2, fix === null ? ["aborts", "1"] : [])).err,
  },
  {
    code: "rank-failed",
    help: /read what that process found/u,
    err: (fix) => overMpi(["--devices", "2"], ["--devices", "2", ...(fix === null ? ["--inputs", "none.npy"] : [])]),
    obstacle: openMpi?.obstacle ?? "",
  },
  {
    code: "check-failed",
    help: /pass the results of the same model with the same arguments/u,
    err: (fix, { folder }) => {
      const model = path.join(folder, "model.mlir");
      writeFileSync(model, doubled);
      const given = saved(path.join(folder, "given.safetensors"), { in0: [1, 2] });
      const results = saved(path.join(folder, "results.safetensors"), { out0: fix === null ? [2, 5] : [2, 4] });
      return braid(["run", model, "--inputs", given, "--expect", results], {});
    },
  },
];
