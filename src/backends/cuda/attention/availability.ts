/** Whether this machine runs attention as one kernel: asked before a program is lowered, so no context is made. */
import { DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { cudnnPrototypes } from "../bindings/cudnn-api.ts";
import { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, driverPrototypes } from "../bindings/driver-api.ts";
import { loadLibrary } from "../bindings/native-library.ts";
import { out } from "../gpu.ts";

/** Older releases have a wrong backward pass (9.10.0, 9.10.1), or one that needs keys in multiples of 128. */
export const oldestCudnn = 91_501;

/** The compute capabilities, without their minor number, for which cuDNN's backward pass repeats its bits. */
const architectures: readonly number[] = [8, 9];

/** Before Hopper, gradients of larger heads have no kernel (cudnn-frontend, CompositeSDPABackwardNode). */
const mostGradientHeads = 128;

/** Why cuDNN cannot run attention on GPU `ordinal`, with gradients of heads of so many elements; null if it can. */
export function attentionObstacle(ordinal: number, gradientHeads = 0): string | null {
  try {
    const version = Number(loadLibrary("cudnn", cudnnPrototypes).functions.cudnnGetVersion());
    if (version < oldestCudnn) return `cuDNN ${dottedCudnn(version)} is older than ${dottedCudnn(oldestCudnn)}`;
    const { functions: driver } = loadLibrary("driver", driverPrototypes);
    driver.cuInit(0);
    const device = out((value) => driver.cuDeviceGet(value, ordinal));
    const attribute = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    const major = out((value) => driver.cuDeviceGetAttribute(value, attribute, device));
    if (!architectures.includes(major)) return `a GPU of compute capability ${major}, not 8 or 9`;
    const takesHeads = major >= 9 || gradientHeads <= mostGradientHeads;
    return takesHeads
      ? null
      : `gradients of heads of ${gradientHeads} elements on a GPU of compute capability ${major}`;
  } catch (error) {
    if (error instanceof DiagnosticError) return error.diagnostics[0]?.message ?? error.message;
    throw error;
  }
}

/** 91900 is 9.19.0. */
export function dottedCudnn(version: number): string {
  return [version / 10_000, (version % 10_000) / 100, version % 100].map(Math.floor).join(".");
}
