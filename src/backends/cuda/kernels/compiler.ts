/**
 * Compiles generated sources to machine code for this GPU, by NVRTC. Results are cached on disk, keyed by source,
 * options, architecture and the versions of compiler and driver. A cache that cannot be read or written costs time but
 * never fails a run.
 */
import { createHash } from "node:crypto";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fail } from "../../../diagnostics/diagnostic.ts";
import { callFailed } from "../bindings/call-error.ts";
import { readCached, writeCached } from "../require-gpus.ts";
import { loadLibrary } from "../bindings/native-library.ts";
import { NVRTC_ERROR_COMPILATION, NVRTC_SUCCESS, type NvrtcFunctions, nvrtcPrototypes } from "../bindings/nvrtc-api.ts";
import { out } from "../gpu.ts";

export interface Compiler {
  /** The machine code (a cubin) of a source. Throws `gpu-call-failed`. */
  readonly compile: (source: string) => Uint8Array;
  /** How many sources were compiled, and how many came from the disk cache. */
  readonly counts: () => { readonly compiled: number; readonly fromDisk: number };
}

export interface CompilerTarget {
  readonly rank: number;
  /** 90 for sm_90. */
  readonly capability: number;
  readonly driverVersion: number;
  /** Folder of the disk cache; null for none. */
  readonly cacheFolder: string | null;
}

/** NVRTC's, besides the architecture. */
export const kernelOptions = ["--fmad=false", "-default-device", "--std=c++17"] as const;

/** Hopper's with what only it has, such as wgmma. */
function architecture(capability: number): string {
  return `-arch=sm_${capability}${capability === 90 ? "a" : ""}`;
}

/** $XDG_CACHE_HOME/braid/kernels or ~/.cache/braid/kernels. */
export function defaultCacheFolder(): string {
  // oxlint-disable-next-line node/no-process-env -- the user's place for caches, as every program finds it
  const home = process.env["XDG_CACHE_HOME"];
  return path.join(home === undefined || home === "" ? path.join(os.homedir(), ".cache") : home, "braid", "kernels");
}

/** NVRTC is loaded at the first compilation, which throws `backend-unavailable` if it is missing. */
export function createCompiler(target: CompilerTarget): Compiler {
  const options = [architecture(target.capability), ...kernelOptions];
  let nvrtc: NvrtcFunctions | null = null;
  let version = "";
  const counts = { compiled: 0, fromDisk: 0 };
  const load = (): NvrtcFunctions => {
    if (nvrtc !== null) return nvrtc;
    const { functions } = loadLibrary("nvrtc", nvrtcPrototypes);
    let minor = 0;
    const major = out((value) => {
      minor = out((second) => {
        functions.nvrtcVersion(value, second);
      });
    });
    version = `${major}.${minor}`;
    nvrtc = functions;
    return functions;
  };
  return {
    counts: () => counts,
    compile: (source) => {
      const functions = load();
      const key = createHash("sha256")
        .update(JSON.stringify([source, options, version, target.driverVersion]))
        .digest("hex");
      const file = target.cacheFolder === null ? null : path.join(target.cacheFolder, `${key}.cubin`);
      const known = file === null ? null : cachedImage(file);
      if (known !== null) {
        counts.fromDisk++;
        return known;
      }
      const image = compileSource(functions, target.rank, source, options);
      counts.compiled++;
      if (file !== null) writeCached(file, image);
      return image;
    },
  };
}

function compileSource(nvrtc: NvrtcFunctions, rank: number, source: string, options: readonly string[]): Uint8Array {
  const check = (call: string, status: number): void => {
    if (status !== NVRTC_SUCCESS) {
      callFailed({ rank, call, status, name: nvrtc.nvrtcGetErrorString(status), text: "" });
    }
  };
  const program = out((value) =>
    check("nvrtcCreateProgram", nvrtc.nvrtcCreateProgram(value, source, "braid.cu", 0, 0, 0)),
  );
  try {
    const status = nvrtc.nvrtcCompileProgram(program, options.length, options);
    if (status === NVRTC_ERROR_COMPILATION) refused(rank, source, logOf(nvrtc, program));
    check("nvrtcCompileProgram", status);
    const bytes = out((value) => check("nvrtcGetCUBINSize", nvrtc.nvrtcGetCUBINSize(program, value)));
    const image = new Uint8Array(bytes);
    check("nvrtcGetCUBIN", nvrtc.nvrtcGetCUBIN(program, image));
    return image;
  } finally {
    nvrtc.nvrtcDestroyProgram([program]);
  }
}

function logOf(nvrtc: NvrtcFunctions, program: number): string {
  const log = new Uint8Array(out((value) => nvrtc.nvrtcGetProgramLogSize(program, value)));
  nvrtc.nvrtcGetProgramLog(program, log);
  return new TextDecoder().decode(log.subarray(0, Math.max(0, log.length - 1)));
}

/** A rejected source is a bug in Braid, so the error carries everything that a report needs. */
function refused(rank: number, source: string, log: string): never {
  return fail("gpu-call-failed", `NVRTC rejects a generated kernel on rank ${rank}`, {
    place: { kind: "call", text: "nvrtcCompileProgram" },
    found: log.trim(),
    expected: "a kernel that compiles",
    help: "this is a bug in Braid: please report it with this message",
    notes: source.split("\n"),
  });
}

/** An ELF file; anything else is an interrupted write. */
function cachedImage(file: string): Uint8Array | null {
  const bytes = readCached(file);
  const isElf = bytes !== null && bytes.length > 4 && new DataView(bytes.buffer).getUint32(0) === 0x7f454c46;
  return isElf ? bytes : null;
}
