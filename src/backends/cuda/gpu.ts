/**
 * One rank's GPU: the driver, its primary context made current on this thread, and the device's properties. The rest of
 * the back end receives a Gpu.
 */
import process from "node:process";
import { DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import { callFailed, type Checked, checkedCalls } from "./bindings/call-error.ts";
import {
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
  type DriverFunctions,
  driverPrototypes,
  type Out,
} from "./bindings/driver-api.ts";
import { type FunctionsOf, loadLibrary, textAt } from "./bindings/native-library.ts";

export interface Gpu {
  readonly rank: number;
  /** Its number on this host. */
  readonly ordinal: number;
  readonly device: number;
  readonly name: string;
  /** 90 for compute capability 9.0. */
  readonly capability: number;
  readonly smCount: number;
  readonly memoryBytes: number;
  /** 13000 for 13.0. */
  readonly driverVersion: number;
  /** Unchecked functions: for calls whose status says more than success or failure, and for calls made in every run. */
  readonly raw: DriverFunctions;
  /** Functions that throw `gpu-call-failed`. */
  readonly call: Checked<DriverFunctions>;
  /** Throws `gpu-call-failed` unless the status is 0. */
  readonly check: (status: number, call: string) => void;
  /** Greatest (most urgent) and least priority of streams. */
  readonly priorities: { readonly greatest: number; readonly least: number };
  /** Makes the context current: needed once per thread, and after another library has changed it. */
  readonly makeCurrent: () => void;
}

/** Kernels use instructions of Ampere: bfloat16 conversions, and maxima that propagate NaN. */
export const oldestCapability = 80;

/** A stream that waits for a signal holds a hardware queue. The driver reads this variable when it starts. */
const hardwareQueues = "32";

/** Throws `backend-unavailable`. Every process loads the driver here, before it starts. */
export function loadDriver(): FunctionsOf<typeof driverPrototypes> {
  // Variables of the driver, not of Braid.
  // oxlint-disable-next-line node/no-process-env
  process.env["CUDA_DEVICE_MAX_CONNECTIONS"] ??= hardwareQueues;
  return loadLibrary("driver", driverPrototypes).functions;
}

/** What the driver calls the first GPU, such as `NVIDIA H200`; null without a driver or a GPU. */
export function firstGpuName(): string | null {
  try {
    const driver = loadDriver();
    if (driver.cuInit(0) !== 0 || out((value) => driver.cuDeviceGetCount(value)) === 0) return null;
    return gpuName(
      driver,
      out((value) => driver.cuDeviceGet(value, 0)),
    );
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

interface NameOfDevice {
  readonly cuDeviceGetName: (name: Uint8Array, length: number, device: number) => unknown;
}

/** `device`: a handle of the driver. */
export function gpuName(driver: NameOfDevice, device: number): string {
  const name = new Uint8Array(256);
  driver.cuDeviceGetName(name, name.length, device);
  return text(name);
}

interface AttributesOf {
  readonly cuDeviceGetAttribute: (value: Out, attribute: number, device: number) => unknown;
}

/** 90 for compute capability 9.0. */
export function capabilityOf(driver: AttributesOf, device: number): number {
  const attribute = (number: number): number => out((value) => driver.cuDeviceGetAttribute(value, number, device));
  const major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  return 10 * major + attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

/** Opens GPU `ordinal` for `rank`. Throws `backend-unavailable`, `gpu-unsupported`, `gpu-call-failed`. */
export function openGpu(rank: number, ordinal: number): Gpu {
  const raw = loadDriver();
  const failed = (call: string, status: number): never => {
    const [name, text]: [Out, Out] = [[0], [0]];
    raw.cuGetErrorName(status, name);
    raw.cuGetErrorString(status, text);
    return callFailed({ rank, call, status, name: textAt(name[0]), text: textAt(text[0]) });
  };
  const call = checkedCalls(raw, failed);
  call.cuInit(0);
  const count = out((value) => call.cuDeviceGetCount(value));
  if (ordinal >= count) tooFewGpus(rank, ordinal, count);
  const device = out((value) => call.cuDeviceGet(value, ordinal));
  const attribute = (number: number): number => out((value) => call.cuDeviceGetAttribute(value, number, device));
  const name = gpuName(call, device);
  const capability = capabilityOf(call, device);
  if (capability < oldestCapability) tooOld(rank, name, capability);
  // Never released: cuBLASLt and NCCL keep state in the context for the life of the process.
  const context = out((value) => call.cuDevicePrimaryCtxRetain(value, device));
  // Called in every run, so it uses the raw function.
  const makeCurrent = (): void => {
    const status = raw.cuCtxSetCurrent(context);
    if (status !== 0) failed("cuCtxSetCurrent", status);
  };
  makeCurrent();
  const [least, greatest]: [Out, Out] = [[0], [0]];
  call.cuCtxGetStreamPriorityRange(least, greatest);
  return {
    rank,
    ordinal,
    device,
    name,
    capability,
    smCount: attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
    memoryBytes: out((value) => call.cuDeviceTotalMem_v2(value, device)),
    driverVersion: out((value) => call.cuDriverGetVersion(value)),
    raw,
    call,
    check: (status, fn) => {
      if (status !== 0) failed(fn, status);
    },
    priorities: { greatest: greatest[0], least: least[0] },
    makeCurrent,
  };
}

/** The value that `call` writes into its out-parameter. */
export function out(call: (value: Out) => void): number {
  const value: Out = [0];
  call(value);
  return Number(value[0]);
}

function text(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(bytes.subarray(0, end < 0 ? bytes.length : end));
}

function tooFewGpus(rank: number, ordinal: number, count: number): never {
  return fail("backend-unavailable", "this machine has too few GPUs", {
    place: { kind: "option", text: "--on cuda --devices" },
    found: `${count} GPUs; rank ${rank} needs GPU ${ordinal}`,
    expected: `at least ${ordinal + 1}`,
    help: "use fewer devices, or let each rank see all GPUs of its host: CUDA_VISIBLE_DEVICES, srun --gpus-per-node",
  });
}

function tooOld(rank: number, name: string, capability: number): never {
  return fail("gpu-unsupported", "this GPU is too old for the CUDA back end", {
    place: { kind: "option", text: "--on cuda" },
    found: `rank ${rank}: ${name}, compute capability ${(capability / 10).toFixed(1)}`,
    expected: `compute capability ${(oldestCapability / 10).toFixed(1)} (Ampere) or newer`,
    help: "run on a newer GPU, or on the CPU",
  });
}
