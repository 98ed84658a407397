/**
 * GEMMs through cuBLASLt, as calls with their arguments bound. Each stream has its own workspace; recipes.ts chooses
 * the algorithms.
 */
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import { callFailed, checkedCalls } from "../bindings/call-error.ts";
import { cublasLtPrototypes } from "../bindings/cublaslt-api.ts";
import { loadLibrary } from "../bindings/native-library.ts";
import { type Gpu, out } from "../gpu.ts";
import type { HostBlocks } from "../memory/host-blocks.ts";
import { addressAlignment } from "../memory/device-memory.ts";
import { createResources } from "../resources.ts";
import { type GemmLayout, workspaceBytes } from "./gemm-layout.ts";
import { createAlgorithmChooser } from "./choose-algorithm.ts";
import { createRecipes, type GemmOperands, type Recipe } from "./recipes.ts";
import type { TrialTools } from "./gemm-trial.ts";
import { fail } from "../../../diagnostics/diagnostic.ts";

export interface GemmAddresses {
  readonly a: number;
  readonly b: number;
  /** 0 without a bias. */
  readonly bias: number;
  /** What is added to if the GEMM accumulates, in the layout of c: c itself, or other memory. */
  readonly addend: number;
  /** Of a and b, if the GEMM is scaled. */
  readonly scales: readonly number[];
  readonly c: number;
}

/** Where a GEMM runs. */
export interface GemmPlace {
  readonly stream: number;
  /** The stream's own workspace, of `workspaceBytes`. */
  readonly workspace: number;
  /** SMs left free for concurrent kernels. A GEMM that occupies all SMs holds them until it ends. */
  readonly margin: number;
}

export interface Gemms extends Disposable {
  /** Null if cuBLASLt has no algorithm for the GEMM. A run of the returned call allocates nothing. */
  readonly prepare: (layout: GemmLayout, addresses: GemmAddresses, place: GemmPlace) => (() => void) | null;
}

export interface GemmTools extends Omit<TrialTools, "gpu"> {
  /** Where chosen algorithms are kept; null for nowhere. */
  readonly cacheFolder: string | null;
}

/** Loads the library. Throws `backend-unavailable`, `gpu-call-failed`. */
export function createGemms(gpu: Gpu, blocks: HostBlocks, tools: GemmTools): Gemms {
  const { functions: raw } = loadLibrary("cublasLt", cublasLtPrototypes);
  const failed = (call: string, status: number): never =>
    callFailed({
      rank: gpu.rank,
      call,
      status,
      name: raw.cublasLtGetStatusName(status),
      text: raw.cublasLtGetStatusString(status),
    });
  const call = checkedCalls(raw, failed);
  const resources = createResources();
  const handle = out((value) => call.cublasLtCreate(value));
  resources.defer(() => call.cublasLtDestroy(handle));
  const scalars = scalarBlock(blocks);
  const choose = createAlgorithmChooser({ gpu, version: Number(raw.cublasLtGetVersion()), ...tools });
  const queue = (
    layout: GemmLayout,
    recipe: Recipe,
    { left, right, addend, result, workspace, stream }: GemmOperands,
  ): number => {
    const { one, zero } = scalars(layout.dtype);
    return raw.cublasLtMatmul(
      handle,
      recipe.descriptor,
      one,
      left,
      recipe.left,
      right,
      recipe.right,
      layout.accumulate === true ? one : zero,
      addend,
      recipe.result,
      result,
      recipe.result,
      recipe.algorithm,
      workspace,
      workspaceBytes,
      stream,
    );
  };
  const recipeOf = createRecipes({ raw, call, handle, blocks, resources, choose, queue });

  return {
    prepare: (layout, addresses, { stream, workspace, margin }) => {
      const smCount = smTarget(gpu.smCount, margin);
      // A scaled GEMM has no offsets.
      const { bytes } = dtypes[layout.dtype];
      const calls: (() => void)[] = [];
      for (const offset of layout.offsets) {
        const a = addresses.a + offset.a * bytes;
        const b = addresses.b + offset.b * bytes;
        const c = addresses.c + offset.c * bytes;
        const [left, right] = layout.swapped ? [b, a] : [a, b];
        const addend = addresses.addend + offset.c * bytes;
        const alignments = [
          addressAlignment(left),
          addressAlignment(right),
          Math.min(addressAlignment(addend), addressAlignment(c)),
        ];
        const scales = layout.swapped ? addresses.scales.toReversed() : addresses.scales;
        const recipe = recipeOf(layout, { bias: addresses.bias, scales, alignments, smCount });
        if (recipe === null) return null;
        const operands = { left, right, addend, result: c, workspace, stream };
        calls.push(() => {
          const status = queue(layout, recipe, operands);
          if (status !== 0) failed("cublasLtMatmul", status);
        });
      }
      const [first] = calls;
      if (calls.length === 1 && first !== undefined) return first;
      return () => {
        for (const each of calls) each();
      };
    },
    [Symbol.dispose]: () => resources[Symbol.dispose](),
  };
}

/** The memory that alpha and beta point to, in the accumulator's type. */
function scalarBlock(blocks: HostBlocks): (dtype: DType) => { readonly one: number; readonly zero: number } {
  const { address, view } = blocks.take(32);
  view.setFloat32(0, 1, true);
  view.setFloat32(8, 0, true);
  view.setFloat64(16, 1, true);
  view.setFloat64(24, 0, true);
  return (dtype) => {
    const start = address + (dtype === "double" ? 16 : 0);
    return { one: start, zero: start + 8 };
  };
}

/** SM_COUNT_TARGET of cuBLASLt; 0 for all SMs. Throws `bad-option` if the margin leaves none. */
export function smTarget(smCount: number, margin: number): number {
  if (margin === 0) return 0;
  if (margin < smCount) return smCount - margin;
  return fail({
    code: "bad-option",
    message: "GEMMs cannot leave all SMs of the GPU free",
    place: { kind: "option", text: "schedule.smMargin" },
    found: String(margin),
    expected: `fewer than ${smCount} SMs`,
    help: "use --schedule smMargin=8: kernels that access peers' memory have 8 thread blocks",
  });
}
