/** A pitched copy as the driver takes it: the layout of CUDA_MEMCPY2D in cuda.h. */
import { CU_MEMORYTYPE_DEVICE, CUDA_MEMCPY2D_SIZE } from "../bindings/driver-api.ts";
import type { HostBlocks } from "../memory/host-blocks.ts";

/** The bytes of a CUDA_MEMCPY2D between device addresses, as cuda.h lays it out. */
interface PlaneCopy {
  readonly source: number;
  readonly sourcePitch: number;
  readonly destination: number;
  readonly destinationPitch: number;
  /** In bytes. */
  readonly width: number;
  readonly height: number;
}

/** The address of the struct, for cuMemcpy2DAsync. */
export function encodePlaneCopy(copy: PlaneCopy, blocks: HostBlocks): number {
  const { address, view } = blocks.take(CUDA_MEMCPY2D_SIZE);
  writePlaneCopy(view, copy);
  return address;
}

/**
 * srcMemoryType at 16, srcDevice at 32, srcPitch at 48; dst the same from 56 on; WidthInBytes at 112, Height at 120.
 */
export function writePlaneCopy(view: DataView, copy: PlaneCopy): void {
  const side = (start: number, address: number, pitch: number): void => {
    view.setUint32(start + 16, CU_MEMORYTYPE_DEVICE, true);
    view.setBigUint64(start + 32, BigInt(address), true);
    view.setBigUint64(start + 48, BigInt(pitch), true);
  };
  side(0, copy.source, copy.sourcePitch);
  side(56, copy.destination, copy.destinationPitch);
  view.setBigUint64(112, BigInt(copy.width), true);
  view.setBigUint64(120, BigInt(copy.height), true);
}
