/**
 * GEMMs through cuBLASLt, as calls with their arguments bound. Each stream has its own workspace; recipes.ts chooses
 * the algorithms.
 */
import { type DType, dtypes, type FloatDType } from "../../../numerics/dtype.ts";
import { callFailed, checkedCalls, type Checked } from "../bindings/call-error.ts";
import {
  cublasLtPrototypes,
  CUBLAS_OP_N,
  CUBLAS_OP_T,
  CUBLASLT_ALGO_CONFIG_ID,
  CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
  CUBLASLT_ALGO_SIZE,
  CUBLASLT_EPILOGUE_BIAS,
  CUBLASLT_HEURISTIC_RESULT_SIZE,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER,
  CUBLASLT_MATMUL_DESC_EPILOGUE,
  CUBLASLT_MATMUL_DESC_FAST_ACCUM,
  CUBLASLT_MATMUL_DESC_SCALE_MODES,
  CUBLASLT_MATMUL_DESC_SCALE_POINTERS,
  CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET,
  CUBLASLT_MATMUL_DESC_TRANSA,
  CUBLASLT_MATMUL_DESC_TRANSB,
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
  CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
  CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
  CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
  CUBLASLT_REDUCTION_SCHEME_NONE,
  type CublasLtFunctions,
} from "../bindings/cublaslt-api.ts";
import { loadLibrary } from "../bindings/native-library.ts";
import { type Gpu, out } from "../gpu.ts";
import type { HostBlocks } from "../memory/host-blocks.ts";
import { addressAlignment } from "../memory/device-memory.ts";
import { createResources, type Resources } from "../resources.ts";
import { type GemmLayout, workspaceBytes, type MatrixLayout } from "./gemm-layout.ts";
import { createAlgorithmChooser, type ChooseAlgorithm } from "./choose-algorithm.ts";
import type { TrialTools } from "./gemm-trial.ts";
import { fail } from "../../../diagnostics/diagnostic.ts";
import type { Out } from "../bindings/driver-api.ts";
import { at } from "../../../support/invariant.ts";

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
      const { bytes } = dtypes[layout.dtype];
      // One dtype, but of operands of 8 bits, which have no offsets.
      const own = dtypes[layout.scaled?.left ?? layout.dtype].bytes;
      const calls: (() => void)[] = [];
      for (const offset of layout.offsets) {
        const a = addresses.a + offset.a * own;
        const b = addresses.b + offset.b * own;
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

/*
 * The arguments of cuBLASLt for a GEMM, except addresses: descriptors of the operation and the matrices, and an
 * algorithm. The library is queried once per shape, layout and alignment; choose-algorithm.ts picks among what it
 * proposes. half and bfloat16 accumulate in float32, also across a split of k.
 */

/** The descriptors of one shape and its algorithm. */
interface Recipe {
  readonly descriptor: number;
  readonly left: number;
  readonly right: number;
  readonly result: number;
  /** The address of a cublasLtMatmulAlgo_t. */
  readonly algorithm: number;
}

interface RecipeOptions {
  /** An address, 0 without one. */
  readonly bias: number;
  /** Addresses of the scales of the left and the right operand; none unless the GEMM is scaled. */
  readonly scales: readonly number[];
  /** Alignments of the left operand, the right operand and the result. */
  readonly alignments: readonly number[];
  /** SMs that the GEMM may run on; 0 for all. */
  readonly smCount: number;
}

/** Null if cuBLASLt has no algorithm. */
type Recipes = (layout: GemmLayout, options: RecipeOptions) => Recipe | null;

/** Where a GEMM reads and writes. */
interface GemmOperands {
  readonly left: number;
  readonly right: number;
  /** What is added to if the GEMM accumulates. */
  readonly addend: number;
  readonly result: number;
  readonly workspace: number;
  readonly stream: number;
}

interface RecipeTools {
  readonly raw: CublasLtFunctions;
  readonly call: Checked<CublasLtFunctions>;
  readonly handle: number;
  readonly blocks: HostBlocks;
  /** Owns what is created. */
  readonly resources: Resources;
  readonly choose: ChooseAlgorithm;
  /** Queues a GEMM; returns the library's status. */
  readonly queue: (layout: GemmLayout, recipe: Recipe, operands: GemmOperands) => number;
}

/** Of the first library that takes a scale per row or block on Hopper. */
const versionOfVectors = 120_900;

/** More proposals have not been faster. */
const mostAlgorithms = 8;

/** CUBLASLT_ALGO_CONFIG_ID of the kernels for Hopper. */
const hopperKernels = 66;

/** The recipes throw `gpu-call-failed`. */
function createRecipes({ raw, call, handle, blocks, resources, choose, queue }: RecipeTools): Recipes {
  const recipes = new Map<string, Recipe | null>();
  const preference = out((value) => call.cublasLtMatmulPreferenceCreate(value));
  resources.defer(() => call.cublasLtMatmulPreferenceDestroy(preference));
  const prefer = (attribute: number, value: Uint8Array): void =>
    call.cublasLtMatmulPreferenceSetAttribute(preference, attribute, value, value.length);
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64(workspaceBytes));

  const makeLayout = (dtype: FloatDType, layout: MatrixLayout, batchCount: number): number => {
    const { rows, columns, leading, batchStride } = layout;
    const made = out((value) =>
      call.cublasLtMatrixLayoutCreate(value, dtypes[dtype].cuda.data, rows, columns, leading),
    );
    resources.defer(() => call.cublasLtMatrixLayoutDestroy(made));
    if (batchCount > 1) {
      const [count, stride] = [uint32(batchCount), uint64(batchStride)];
      call.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count, count.length);
      call.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride, stride.length);
    }
    return made;
  };

  const makeDescriptor = (
    { dtype, left, right, hasBias, scaled }: GemmLayout,
    { bias, scales, smCount }: RecipeOptions,
  ): number => {
    // CUBLAS_COMPUTE_* and the type of alpha and beta: float is float32 throughout, never TF32.
    const [compute, scale] = dtype === "double" ? [70, 1] : [68, 0];
    const made = out((value) => call.cublasLtMatmulDescCreate(value, compute, scale));
    resources.defer(() => call.cublasLtMatmulDescDestroy(made));
    const set = (attribute: number, value: Uint8Array): void =>
      call.cublasLtMatmulDescSetAttribute(made, attribute, value, value.length);
    set(CUBLASLT_MATMUL_DESC_TRANSA, uint32(left.transposed ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(CUBLASLT_MATMUL_DESC_TRANSB, uint32(right.transposed ? CUBLAS_OP_T : CUBLAS_OP_N));
    if (hasBias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32(CUBLASLT_EPILOGUE_BIAS));
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, uint64(bias));
    }
    for (const [i, scale] of scales.entries()) {
      set(at(CUBLASLT_MATMUL_DESC_SCALE_POINTERS, i), uint64(scale));
      const rows = i === 0 ? scaled?.blocks?.left : scaled?.blocks?.right;
      const mode = uint32(rows === undefined ? CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F : scaleModeOfBlocks(rows));
      if (scaled?.vectors === true) set(at(CUBLASLT_MATMUL_DESC_SCALE_MODES, i), mode);
    }
    if (scaled?.fastAccumulation === true) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, Uint8Array.of(1));
    if (smCount > 0) set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, uint32(smCount));
    return made;
  };

  /** Older kernels that cut k round the sum to 16 bits, add the bias and round again: measured on an H200 with 13.1. */
  const roundsTwice = (algorithm: Uint8Array): boolean => {
    const configOf = (attribute: number): number => {
      const value = uint32(0);
      call.cublasLtMatmulAlgoConfigGetAttribute(algorithm, attribute, value, value.length, [0]);
      return new DataView(value.buffer).getUint32(0, true);
    };
    return configOf(CUBLASLT_ALGO_CONFIG_SPLITK_NUM) > 1 && configOf(CUBLASLT_ALGO_CONFIG_ID) !== hopperKernels;
  };

  const makeRecipe = (layout: GemmLayout, options: RecipeOptions): Recipe | null => {
    const { dtype, batchCount } = layout;
    const { alignments, smCount } = options;
    if (layout.scaled?.vectors === true && raw.cublasLtGetVersion() < versionOfVectors) return null;
    const descriptor = makeDescriptor(layout, options);
    const left = makeLayout(layout.scaled?.left ?? dtype, layout.left, batchCount);
    const right = makeLayout(layout.scaled?.right ?? dtype, layout.right, batchCount);
    const result = makeLayout(dtype, layout.result, batchCount);
    const [ofLeft = 1, ofRight = 1, ofResult = 1] = alignments;
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32(ofLeft));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32(ofRight));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32(ofResult));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32(ofResult));
    const proposals = (reductions: number): readonly Uint8Array[] => {
      prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32(reductions));
      const found = new Uint8Array(mostAlgorithms * CUBLASLT_HEURISTIC_RESULT_SIZE);
      const returned: Out = [0];
      const status = raw.cublasLtMatmulAlgoGetHeuristic(
        handle,
        descriptor,
        left,
        right,
        result,
        result,
        preference,
        mostAlgorithms,
        found,
        returned,
      );
      return Array.from({ length: status === 0 ? returned[0] : 0 }, (_, i) => {
        const start = i * CUBLASLT_HEURISTIC_RESULT_SIZE;
        return found.slice(start, start + CUBLASLT_ALGO_SIZE);
      });
    };
    let algorithms = proposals(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    if (layout.hasBias && dtypes[dtype].bytes < 4 && algorithms.length > 0) {
      algorithms = algorithms.filter((algorithm) => !roundsTwice(algorithm));
      if (algorithms.length === 0) algorithms = proposals(CUBLASLT_REDUCTION_SCHEME_NONE);
    }
    if (algorithms.length === 0) return null;
    const { address, view } = blocks.take(CUBLASLT_ALGO_SIZE);
    const recipe: Recipe = { descriptor, left, right, result, algorithm: address };
    const take = (algorithm: number): void => at(algorithms, algorithm).forEach((byte, i) => view.setUint8(i, byte));
    const chosen = choose({
      layout,
      alignments,
      smCount,
      algorithms,
      queueOf: (place) => {
        // A bias has no more elements than the left operand, and any values do.
        const own = { ...options, bias: place.left, scales: options.scales.map(() => place.scales) };
        const ofTrial = layout.hasBias || layout.scaled !== undefined;
        const trial = ofTrial ? { ...recipe, descriptor: makeDescriptor(layout, own) } : recipe;
        return (algorithm) => {
          take(algorithm);
          return queue(layout, trial, { ...place, addend: place.result });
        };
      },
    });
    take(chosen);
    return recipe;
  };

  return (layout, options) => {
    const key = JSON.stringify([layout, options]);
    const known = recipes.get(key);
    if (known !== undefined) return known;
    const made = makeRecipe(layout, options);
    recipes.set(key, made);
    return made;
  };
}

function scaleModeOfBlocks(rows: number): number {
  return rows === 1 ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F : CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
}

function uint32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

function uint64(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}
