/**
 * A trial of cuBLASLt's algorithms for one GEMM, on operands of its sizes with random elements. It takes memory of the
 * GPU while it lasts; where there is too little, there is none.
 */
import { dtypes, type FloatDType } from "../../../numerics/dtype.ts";
import { emptyTensor, tensorBytes, elementsOf } from "../../../numerics/tensor/host-tensor.ts";
import { createRandom } from "../../../support/random.ts";
import type { Out } from "../bindings/driver-api.ts";
import type { Gpu } from "../gpu.ts";
import { streamIsIdle } from "../run/stuck/wait.ts";
import type { Staging } from "../memory/device-memory.ts";
import type { Trial } from "./fastest-algorithm.ts";
import { type GemmLayout, type MatrixLayout, scaleElements, workspaceBytes } from "./gemm-layout.ts";

/** Where a trial's GEMM reads and writes. */
export interface TrialPlace {
  readonly left: number;
  readonly right: number;
  readonly result: number;
  /** Floats for the scales of either operand; 0 unless the GEMM is scaled. */
  readonly scales: number;
  readonly workspace: number;
  readonly stream: number;
}

export interface TrialTools {
  readonly gpu: Gpu;
  readonly staging: Staging;
  /** A stream that nothing else uses meanwhile. */
  readonly stream: number;
}

const partNames = ["left", "right", "result", "scales"] as const;
const memories = [...partNames, "workspace"] as const;

/** Elements of the pattern that operands repeat; odd, so that rows differ. */
const patternElements = 2 ** 18 + 3;
/** Of a larger result, slices of this many bytes in all are compared. */
const mostCompared = 32 * 2 ** 20;
const slices = 32;

/**
 * What `use` makes of the trial; null if there is too little memory. `queueOf` makes the function that queues a GEMM by
 * the algorithm of a number and returns the library's status.
 */
export function withTrial<T>(
  { gpu, staging, stream }: TrialTools,
  layout: GemmLayout,
  count: number,
  queueOf: (place: TrialPlace) => (algorithm: number) => number,
  use: (trial: Trial) => T,
): T | null {
  const { dtype, scaled, left, right, result, batchCount } = layout;
  const parts: Readonly<Record<(typeof partNames)[number], Part>> = {
    left: { dtype: scaled?.left ?? dtype, elements: elementsIn(left, batchCount) },
    right: { dtype: scaled?.right ?? dtype, elements: elementsIn(right, batchCount) },
    result: { dtype, elements: elementsIn(result, batchCount) },
    scales: { dtype: "float", elements: scaled === undefined ? 0 : Math.max(...scaleElements(layout)) },
  };
  const place = { left: 0, right: 0, result: 0, scales: 0, workspace: 0, stream };
  try {
    for (const name of memories) {
      const bytes = name === "workspace" ? workspaceBytes : bytesOf(parts[name]);
      const address: Out = [0];
      if (bytes > 0 && gpu.raw.cuMemAlloc_v2(address, bytes) !== 0) return null;
      place[name] = address[0];
    }
    const fill = (name: (typeof partNames)[number]): void => {
      const [start, bytes] = [place[name], bytesOf(parts[name])];
      if (bytes === 0) return;
      const pattern = patternOf(parts[name].dtype);
      let filled = Math.min(bytes, pattern.length);
      staging.upload(start, pattern.subarray(0, filled));
      while (filled < bytes) {
        const more = Math.min(filled, bytes - filled);
        gpu.call.cuMemcpyDtoDAsync_v2(start + filled, start, more, stream);
        filled += more;
      }
    };
    const finish = (): void => {
      while (!streamIsIdle(gpu, stream));
    };
    fill("left");
    fill("right");
    fill("scales");
    const queue = queueOf(place);
    return use({
      count,
      resultOf: (algorithm) => {
        fill("result");
        if (queue(algorithm) !== 0) return null;
        finish();
        return sampled(bytesOf(parts.result), (offset, bytes) => staging.download(place.result + offset, bytes));
      },
      time: (algorithm, runs) => {
        const start = performance.now();
        for (let run = 0; run < runs; run++) queue(algorithm);
        finish();
        return performance.now() - start;
      },
    });
  } finally {
    for (const name of memories) if (place[name] !== 0) gpu.raw.cuMemFree_v2(place[name]);
  }
}

/** What a trial takes memory for. */
interface Part {
  readonly dtype: FloatDType;
  readonly elements: number;
}

function bytesOf({ dtype, elements }: Part): number {
  return elements * dtypes[dtype].bytes;
}

function elementsIn({ rows, columns, leading, batchStride }: MatrixLayout, batchCount: number): number {
  return (batchCount - 1) * batchStride + (columns - 1) * leading + rows;
}

/** All bytes, or slices at equal distances. */
function sampled(total: number, download: (offset: number, bytes: Uint8Array) => void): Uint8Array {
  if (total <= mostCompared) {
    const all = new Uint8Array(total);
    download(0, all);
    return all;
  }
  const bytes = new Uint8Array(mostCompared);
  const slice = mostCompared / slices;
  for (let i = 0; i < slices; i++) {
    download(Math.floor(((total - slice) * i) / (slices - 1)), bytes.subarray(i * slice, (i + 1) * slice));
  }
  return bytes;
}

/** Elements between -1 and 1. */
function patternOf(dtype: FloatDType): Uint8Array {
  const random = createRandom(1);
  const tensor = emptyTensor(dtype, [patternElements]);
  const elements = elementsOf(tensor.dtype, tensor.data);
  for (let i = 0; i < patternElements; i++) elements.set(i, 2 * random.float() - 1);
  return tensorBytes(tensor);
}
