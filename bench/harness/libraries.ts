/** The GPU, the driver and the libraries of a machine. */
import { readFileSync } from "node:fs";
import { cublasLtPrototypes } from "../../src/backends/cuda/bindings/cublaslt-api.ts";
import { cudnnPrototypes } from "../../src/backends/cuda/bindings/cudnn-api.ts";
import { loadLibrary } from "../../src/backends/cuda/bindings/native-library.ts";
import { ncclPrototypes } from "../../src/backends/cuda/bindings/nccl-api.ts";
import { nvrtcPrototypes } from "../../src/backends/cuda/bindings/nvrtc-api.ts";
import { openGpu, out } from "../../src/backends/cuda/gpu.ts";

interface Library {
  readonly version: string;
  readonly file: string;
}

/** By the names in results: throws if the library is not found. */
export const libraries = {
  cuda: () => {
    const { file, functions } = loadLibrary("nvrtc", nvrtcPrototypes);
    const minor: [number] = [0];
    const major = out((value) => functions.nvrtcVersion(value, minor));
    return { file, version: `${major}.${minor[0]}` };
  },
  cublasLt: () => {
    const { file, functions } = loadLibrary("cublasLt", cublasLtPrototypes);
    return { file, version: dotted(Number(functions.cublasLtGetVersion())) };
  },
  cudnn: () => {
    const { file, functions } = loadLibrary("cudnn", cudnnPrototypes);
    return { file, version: dotted(Number(functions.cudnnGetVersion())) };
  },
  nccl: () => {
    const { file, functions } = loadLibrary("nccl", ncclPrototypes);
    return { file, version: dotted(out((value) => functions.ncclGetVersion(value))) };
  },
} as const satisfies Readonly<Record<string, () => Library>>;

export function versions(rank: number, localRank: number): Readonly<Record<string, string>> {
  const { name, driverVersion } = openGpu(rank, localRank);
  // A machine without NCCL still has results of programs that do not need it.
  const found = Object.entries(libraries).map(([library, load]): readonly [string, string] => [
    library,
    unlessMissing(load)?.version ?? "not found",
  ]);
  return {
    gpu: name,
    driver: driverRelease() ?? `API ${driverVersion}`,
    ...Object.fromEntries<string>(found),
    node: process.version,
  };
}

function unlessMissing<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** The version of the kernel module; null if the system does not provide it. */
function driverRelease(): string | null {
  const text = unlessMissing(() => readFileSync("/proc/driver/nvidia/version", "utf8"));
  return /\d+\.\d+(\.\d+)?/.exec(text ?? "")?.[0] ?? null;
}

/** 22803 is 2.28.3. */
function dotted(version: number): string {
  return [version / 10_000, (version % 10_000) / 100, version % 100].map(Math.floor).join(".");
}
