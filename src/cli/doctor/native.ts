/**
 * Findings about native code: the foreign-function interface, BLAS, and the NVIDIA stack that the CUDA back end needs.
 */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { blasFiles, findBlas } from "../../backends/cpu/blas/blas-library.ts";
import { dottedCudnn, oldestCudnn } from "../../backends/cuda/attention/availability.ts";
import { cublasLtPrototypes } from "../../backends/cuda/bindings/cublaslt-api.ts";
import { cudnnPrototypes } from "../../backends/cuda/bindings/cudnn-api.ts";
import { type DriverFunctions, driverPrototypes, type Out } from "../../backends/cuda/bindings/driver-api.ts";
import {
  cudaLibraries,
  type CudaLibrary,
  type FunctionsOf,
  libraryFolders,
  type LoadedLibrary,
  loadLibrary,
  type Prototypes,
} from "../../backends/cuda/bindings/native-library.ts";
import { ncclPrototypes } from "../../backends/cuda/bindings/nccl-api.ts";
import { nvrtcPrototypes } from "../../backends/cuda/bindings/nvrtc-api.ts";
import { capabilityOf, gpuName, oldestCapability, out } from "../../backends/cuda/gpu.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";

const gives: { readonly [L in CudaLibrary]: string } = {
  driver: "runs on NVIDIA GPUs (--on cuda)",
  nvrtc: "compiles kernels for GPUs (--on cuda)",
  cublasLt: "matmul on GPUs (--on cuda)",
  cudnn: "attention as one kernel on GPUs (--schedule attention=auto)",
  nccl: "collectives between GPUs (--on cuda)",
};

/**
 * Findings about the NVIDIA stack of the CUDA back end: each library with its version, loaded as the back end loads it,
 * every GPU that the driver sees, and whether the GPUs reach each other's memory. Nothing is allocated and no context
 * is made.
 */
function cudaFindings(): readonly DoctorFinding[] {
  const driver = tryLoad("driver", driverPrototypes);
  return [
    libraryFinding("driver", driver, (functions) => cudaVersion(out((value) => functions.cuDriverGetVersion(value)))),
    libraryFinding("nvrtc", tryLoad("nvrtc", nvrtcPrototypes), (functions) => {
      const minor: Out = [0];
      const major = out((value) => functions.nvrtcVersion(value, minor));
      return `${major}.${minor[0]}`;
    }),
    libraryFinding("cublasLt", tryLoad("cublasLt", cublasLtPrototypes), (functions) => {
      const version = Number(functions.cublasLtGetVersion());
      return `${Math.floor(version / 10_000)}.${Math.floor(version / 100) % 100}.${version % 100}`;
    }),
    libraryFinding("cudnn", tryLoad("cudnn", cudnnPrototypes), (functions) =>
      cudnnVersion(Number(functions.cudnnGetVersion())),
    ),
    libraryFinding("nccl", tryLoad("nccl", ncclPrototypes), (functions) => {
      const version = out((value) => functions.ncclGetVersion(value));
      return `${Math.floor(version / 10_000)}.${Math.floor(version / 100) % 100}.${version % 100}`;
    }),
    ...(driver instanceof DiagnosticError ? [noGpu("the driver is missing")] : gpuFindings(driver.functions)),
  ];
}

function tryLoad<T extends Prototypes>(
  library: CudaLibrary,
  prototypes: T,
): LoadedLibrary<FunctionsOf<T>> | DiagnosticError {
  try {
    return loadLibrary(library, prototypes);
  } catch (error) {
    if (error instanceof DiagnosticError) return error;
    throw error;
  }
}

function libraryFinding<F>(
  library: CudaLibrary,
  loaded: LoadedLibrary<F> | DiagnosticError,
  version: (functions: F) => string,
): DoctorFinding {
  const { title, files } = cudaLibraries[library];
  const row = { name: title, gives: gives[library] };
  if (!(loaded instanceof DiagnosticError)) {
    return { ...row, status: "ok", detail: `${version(loaded.functions)}, ${loaded.file}`, lookedIn: [] };
  }
  const [diagnostic] = loaded.diagnostics;
  const tooOld = diagnostic?.place?.kind === "file";
  const detail = tooOld ? `${diagnostic.place.path}: ${diagnostic.found ?? ""}` : `no ${files.join(", ")}`;
  const lookedIn = tooOld ? [] : ["the loader's path", ...libraryFolders()];
  return { ...row, status: tooOld ? "too-old" : "missing", detail, lookedIn };
}

function gpuFindings(driver: DriverFunctions): readonly DoctorFinding[] {
  const status = driver.cuInit(0);
  if (status !== 0) return [noGpu(`none (the driver does not start: CUDA error ${status})`)];
  const count = out((value) => driver.cuDeviceGetCount(value));
  if (count === 0) return [noGpu("none")];
  const devices = Array.from({ length: count }, (_, ordinal) => out((value) => driver.cuDeviceGet(value, ordinal)));
  return [...devices.map((device, ordinal) => gpuFinding(driver, device, ordinal)), ...peerFindings(driver, devices)];
}

function gpuFinding(driver: DriverFunctions, device: number, ordinal: number): DoctorFinding {
  const name = gpuName(driver, device);
  const capability = capabilityOf(driver, device);
  const memory = out((value) => driver.cuDeviceTotalMem_v2(value, device));
  return {
    name: `GPU ${ordinal}`,
    status: capability < oldestCapability ? "too-old" : "ok",
    detail: `${name}, compute capability ${(capability / 10).toFixed(1)}, ${(memory / 2 ** 30).toFixed(0)} GiB`,
    gives: gives.driver,
    lookedIn: [],
  };
}

/** One row: whether every GPU can map every other's memory, which the one-sided protocols need. */
function peerFindings(driver: DriverFunctions, devices: readonly number[]): readonly DoctorFinding[] {
  if (devices.length < 2) return [];
  const apart = devices.flatMap((device, i) =>
    devices.flatMap((peer, j) =>
      i === j || out((value) => driver.cuDeviceCanAccessPeer(value, device, peer)) === 1 ? [] : [`${i} -> ${j}`],
    ),
  );
  return [
    {
      name: "peer access",
      status: apart.length === 0 ? "ok" : "missing",
      detail: apart.length === 0 ? `all ${devices.length} GPUs` : `not from ${apart.join(", ")}`,
      gives: "copies between GPUs (--backend cuda)",
      lookedIn: apart.length === 0 ? [] : ["the driver's answer for each pair"],
    },
  ];
}

function noGpu(detail: string): DoctorFinding {
  return { name: "GPU", status: "missing", detail, gives: gives.driver, lookedIn: ["the driver's devices"] };
}

/** Whether it is new enough shows in the version. */
function cudnnVersion(version: number): string {
  return version < oldestCudnn
    ? `${dottedCudnn(version)} (needs ${dottedCudnn(oldestCudnn)} or newer)`
    : dottedCudnn(version);
}

/** 13000 is 13.0. */
function cudaVersion(version: number): string {
  return `CUDA ${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
}

export function nativeFindings(): readonly DoctorFinding[] {
  return [foreignFunctions(), blasFinding(), ...cudaFindings()];
}

function foreignFunctions(): DoctorFinding {
  const gives = "calls into native libraries (--on cuda, --blas auto)";
  const require = createRequire(import.meta.url);
  try {
    return { name: "FFI", status: "ok", detail: `koffi at ${require.resolve("koffi")}`, gives, lookedIn: [] };
  } catch {
    const lookedIn = (require.resolve.paths("koffi") ?? []).filter((folder) => existsSync(folder));
    return { name: "FFI", status: "missing", detail: "the package koffi is not installed", gives, lookedIn };
  }
}

function blasFinding(): DoctorFinding {
  const row = { name: "BLAS", gives: "GEMMs of floats on the CPU (--blas auto)" };
  const found = findBlas();
  if (found !== null) return { ...row, status: "ok", detail: found.file, lookedIn: [] };
  return { ...row, status: "missing", detail: `no ${blasFiles.join(", ")}`, lookedIn: ["the loader's path"] };
}

/**
 * One row of `braid doctor`'s report. For a missing thing it tells what Braid would gain and where it looked, so that
 * the reader can decide whether to install it.
 */
export interface DoctorFinding {
  readonly name: string;
  readonly status: "ok" | "missing" | "too-old";
  /** A version, a path or a size. */
  readonly detail: string;
  /** What Braid uses it for, or would use it for. */
  readonly gives: string;
  /** The places that were searched; empty if obvious. */
  readonly lookedIn: readonly string[];
}
