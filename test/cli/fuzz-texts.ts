/**
 * What reads a user's text, with texts from which fuzzing starts. Dumps are fuzzed by test/host/parse/fuzz-dumps.ts,
 * too.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { Command, CommanderError } from "commander";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { parseBenchConfig } from "../../bench/compare/bench-config.ts";
import { parseImplementations } from "../../bench/compare/implementation.ts";
import { npyTensor } from "../../src/cli/tensor-files/npy.ts";
import { safetensorsTensors } from "../../src/cli/tensor-files/safetensors.ts";
import type { TensorFile } from "../../src/cli/tensor-files/stored-tensor.ts";
import { addFlags } from "../../src/cli/flags/option-flags.ts";
import { usageError } from "../../src/cli/cli.ts";
import type { CommandName } from "../../src/compile/options.ts";
import { parseInterleaving } from "../../src/machine/interleaving.ts";
import { planInvalid } from "../../src/plan/plan-document.ts";
import { readPlan } from "../../src/plan/read-plan.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { at } from "../../src/support/invariant.ts";
import { mutatedDump } from "../host/parse/mutate-dump.ts";
import { planOf, ring } from "../plan/plans.ts";

interface Reader {
  readonly starts: readonly string[];
  /** Throws a DiagnosticError for a text that it refuses. */
  readonly read: (text: string) => unknown;
}

function filesOf(folder: string): readonly string[] {
  const absolute = path.resolve(import.meta.dirname, "../..", folder);
  const names = readdirSync(absolute).filter((name) => name.endsWith(".json"));
  return names.toSorted().map((name) => readFileSync(path.join(absolute, name), "utf8"));
}

const commandLines = [
  "run file.hir --devices 4 --sizes i0=8,i2=64 --scalar flag=1 --entry 0 --as nvfuser --timeout 0.5 --seed 3 --check",
  "run file.ts --set M=32 --set K=8.5e3 --backend cuda --schedule p2p=rotated,protocol=put,streams=2 --repeat 3 --print timeline",
  "verify file.ts --schedule inPlace,copyStream=dedicated --group-sizes 1-3-4 --schedule deallocate=false,shrink=false",
  "verify file.log --reference f.ts --report r.html --interleaving o.txt --json",
  "lower file.ts --rank 1 --as braid:2026-01 --print passes --schedule overlap=false --print lists",
  "bench --impl braid;form=rotated,linear --impl serial --set m=8192,n=64,128,dtype=bfloat16 --repeat 3 --out r.csv --out r.svg",
  "calibrate --devices 2 --out machine.json --on cuda",
];

const commands = ["run", "verify", "lower", "bench", "calibrate"] as const satisfies readonly CommandName[];

/** As a shell without quotes splits the line. */
function readCommandLine(line: string): void {
  const [name = "", ...words] = line.split(/\s+/);
  const command = addFlags(new Command().argument("[file]"), commands.find((each) => each === name) ?? "run");
  command.configureOutput({ writeOut: () => {}, writeErr: () => {} }).exitOverride((error) => {
    throw error.exitCode === 0 ? error : usageError(error, command, []);
  });
  try {
    command.parse(words, { from: "user" });
  } catch (error) {
    // --help ends so, with status 0.
    if (!(error instanceof CommanderError && error.exitCode === 0)) throw error;
  }
}

const plan = planOf(ring());

export const readers: Readonly<Record<string, Reader>> = {
  "command lines": { starts: commandLines, read: readCommandLine },
  "bench --impl": {
    starts: [
      "braid;form=rotated;protocol=get,put;streams=2,8",
      "braid;form=collective;chunks=4,8;backend=nccl;graph=auto;outputs=2",
      "serial;backend=cuda;copyStream=dedicated",
      "torch_async_tp",
    ],
    read: (text) => void parseImplementations(text, "--impl"),
  },
  profiles: { starts: filesOf("profiles"), read: (text) => void parseProfile(text, "profile.json") },
  "configuration files": {
    starts: filesOf("bench/configs"),
    read: (text) => void parseBenchConfig(text, "config.json"),
  },
  interleavings: {
    starts: ["seed:17", "hold:1:23", "# comment\n0:1\n1:0\n0:2\n"],
    read: (text) => void parseInterleaving(text),
  },
  "headers of npy": {
    starts: ["(2, 3)", "(6,)", "(1, 6)"].map(
      (shape) => `{'descr': '<f4', 'fortran_order': False, 'shape': ${shape}, }\n`,
    ),
    read: (text) => npyTensor(npyFile(text)),
  },
  "headers of safetensors": {
    starts: [
      '{"T0":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}',
      '{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[],"data_offsets":[20,24]},"b":{"dtype":"I32","shape":[5],"data_offsets":[0,20]}}',
    ],
    read: (text) => safetensorsTensors(safetensorsFile(text)),
  },
  plans: {
    starts: [plan.get("plan.json") ?? ""],
    read: (text) =>
      readPlan("plan", async (file) => {
        const content = file === "plan.json" ? text : plan.get(file);
        return new TextEncoder().encode(content ?? planInvalid("plan", file, "no such file", "a file of the plan"));
      }),
  },
};

/** A file in memory. */
function tensorFile(path: string, parts: readonly Uint8Array[]): TensorFile {
  const content = Buffer.concat(parts);
  return {
    path,
    bytes: content.length,
    read: (start, length) => Uint8Array.from(content.subarray(start, start + length)),
  };
}

/** An npy file of version 2 with this header and six elements of float. */
function npyFile(header: string): TensorFile {
  const text = Buffer.from(header, "latin1");
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  return tensorFile("x.npy", [Buffer.from("\u0093NUMPY\u0002\u0000", "latin1"), length, text, Buffer.alloc(24)]);
}

/** A safetensors file with this header and six elements of float. */
function safetensorsFile(header: string): TensorFile {
  const text = Buffer.from(header);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return tensorFile("x.safetensors", [length, text, Buffer.alloc(24)]);
}

export interface FuzzOutcome {
  /** The reader. */
  readonly name: string;
  readonly text: string;
  readonly refused: boolean;
  readonly milliseconds: number;
}

/** Damages one text and reads it. Rethrows anything but a DiagnosticError, with the text. */
export async function fuzzText(seed: number): Promise<FuzzOutcome> {
  const names = Object.keys(readers);
  const name = at(names, seed % names.length);
  const reader = readers[name];
  if (reader === undefined) throw new Error(`no reader ${name}`);
  const text = mutatedDump(seed, reader.starts);
  const start = performance.now();
  let refused = false;
  try {
    await reader.read(text);
  } catch (error) {
    if (!(error instanceof DiagnosticError)) {
      throw new Error(`${name}: ${JSON.stringify(text.slice(0, 2000))}`, { cause: error });
    }
    refused = true;
  }
  return { name, text, refused, milliseconds: performance.now() - start };
}
