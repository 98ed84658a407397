/** The GPU, driver and libraries of a measurement. */
import { readFileSync } from "node:fs";
import { cublasLtPrototypes } from "../../src/backends/cuda/bindings/cublaslt-api.ts";
import { cudnnPrototypes } from "../../src/backends/cuda/bindings/cudnn-api.ts";
import { loadLibrary } from "../../src/backends/cuda/bindings/native-library.ts";
import { ncclPrototypes } from "../../src/backends/cuda/bindings/nccl-api.ts";
import { nvrtcPrototypes } from "../../src/backends/cuda/bindings/nvrtc-api.ts";
import { openGpu, out } from "../../src/backends/cuda/gpu.ts";

export interface Versions {
  readonly gpu: string;
  readonly driver: string;
  readonly cuda: string;
  readonly cublasLt: string;
  readonly cudnn: string;
  readonly nccl: string;
  readonly node: string;
}

export function versions(rank: number, localRank: number): Versions {
  const { name, driverVersion } = openGpu(rank, localRank);
  return {
    gpu: name,
    driver: driverRelease() ?? `API ${driverVersion}`,
    cuda: unlessMissing(() => {
      const { functions } = loadLibrary("nvrtc", nvrtcPrototypes);
      const minor: [number] = [0];
      const major = out((value) => functions.nvrtcVersion(value, minor));
      return `${major}.${minor[0]}`;
    }),
    cublasLt: unlessMissing(() => {
      const { functions } = loadLibrary("cublasLt", cublasLtPrototypes);
      return dotted(Number(functions.cublasLtGetVersion()));
    }),
    cudnn: unlessMissing(() => {
      const { functions } = loadLibrary("cudnn", cudnnPrototypes);
      return dotted(Number(functions.cudnnGetVersion()));
    }),
    nccl: unlessMissing(() => {
      const { functions } = loadLibrary("nccl", ncclPrototypes);
      return dotted(out((value) => functions.ncclGetVersion(value)));
    }),
    node: process.version,
  };
}

/** A machine without NCCL still has results of programs that do not need it. */
function unlessMissing(read: () => string): string {
  try {
    return read();
  } catch {
    return "not found";
  }
}

/** The version of the kernel module; null if the system does not provide it. */
function driverRelease(): string | null {
  try {
    return /\d+\.\d+(\.\d+)?/.exec(readFileSync("/proc/driver/nvidia/version", "utf8"))?.[0] ?? null;
  } catch {
    return null;
  }
}

/** 22803 is 2.28.3. */
function dotted(version: number): string {
  return [version / 10_000, (version % 10_000) / 100, version % 100].map(Math.floor).join(".");
}
