/** The functions of cuBLASLt that Braid calls, with their names in cublasLt.h. Matrices are column-major there. */
import type { Out } from "./driver-api.ts";
import type { Prototypes } from "./native-library.ts";

export interface CublasLtFunctions {
  cublasLtCreate(handle: Out): number;
  cublasLtDestroy(handle: number): number;
  cublasLtGetVersion(): number;
  cublasLtGetStatusName(status: number): string;
  cublasLtGetStatusString(status: number): string;
  cublasLtMatmulDescCreate(descriptor: Out, computeType: number, scaleType: number): number;
  cublasLtMatmulDescDestroy(descriptor: number): number;
  cublasLtMatmulDescSetAttribute(descriptor: number, attribute: number, value: Uint8Array, bytes: number): number;
  cublasLtMatrixLayoutCreate(layout: Out, type: number, rows: number, columns: number, leading: number): number;
  cublasLtMatrixLayoutDestroy(layout: number): number;
  cublasLtMatrixLayoutSetAttribute(layout: number, attribute: number, value: Uint8Array, bytes: number): number;
  cublasLtMatmulPreferenceCreate(preference: Out): number;
  cublasLtMatmulPreferenceDestroy(preference: number): number;
  cublasLtMatmulPreferenceSetAttribute(preference: number, attribute: number, value: Uint8Array, bytes: number): number;
  cublasLtMatmulAlgoGetHeuristic(
    handle: number,
    descriptor: number,
    layoutA: number,
    layoutB: number,
    layoutC: number,
    layoutD: number,
    preference: number,
    requested: number,
    results: Uint8Array,
    returned: Out,
  ): number;
  cublasLtMatmul(
    handle: number,
    descriptor: number,
    alpha: number,
    a: number,
    layoutA: number,
    b: number,
    layoutB: number,
    beta: number,
    c: number,
    layoutC: number,
    d: number,
    layoutD: number,
    algorithm: number,
    workspace: number,
    workspaceBytes: number,
    stream: number,
  ): number;
}

export const cublasLtPrototypes: Prototypes<CublasLtFunctions> = {
  cublasLtCreate: "int cublasLtCreate(_Out_ uint64_t *handle)",
  cublasLtDestroy: "int cublasLtDestroy(uint64_t handle)",
  cublasLtGetVersion: "size_t cublasLtGetVersion()",
  cublasLtGetStatusName: "const char *cublasLtGetStatusName(int status)",
  cublasLtGetStatusString: "const char *cublasLtGetStatusString(int status)",
  cublasLtMatmulDescCreate: "int cublasLtMatmulDescCreate(_Out_ uint64_t *descriptor, int computeType, int scaleType)",
  cublasLtMatmulDescDestroy: "int cublasLtMatmulDescDestroy(uint64_t descriptor)",
  cublasLtMatmulDescSetAttribute:
    "int cublasLtMatmulDescSetAttribute(uint64_t descriptor, int attribute, const void *value, size_t bytes)",
  cublasLtMatrixLayoutCreate:
    "int cublasLtMatrixLayoutCreate(_Out_ uint64_t *layout, int type, uint64_t rows, uint64_t columns, int64_t leading)",
  cublasLtMatrixLayoutDestroy: "int cublasLtMatrixLayoutDestroy(uint64_t layout)",
  cublasLtMatrixLayoutSetAttribute:
    "int cublasLtMatrixLayoutSetAttribute(uint64_t layout, int attribute, const void *value, size_t bytes)",
  cublasLtMatmulPreferenceCreate: "int cublasLtMatmulPreferenceCreate(_Out_ uint64_t *preference)",
  cublasLtMatmulPreferenceDestroy: "int cublasLtMatmulPreferenceDestroy(uint64_t preference)",
  cublasLtMatmulPreferenceSetAttribute:
    "int cublasLtMatmulPreferenceSetAttribute(uint64_t preference, int attribute, const void *value, size_t bytes)",
  cublasLtMatmulAlgoGetHeuristic:
    "int cublasLtMatmulAlgoGetHeuristic(uint64_t handle, uint64_t descriptor, uint64_t layoutA, uint64_t layoutB, " +
    "uint64_t layoutC, uint64_t layoutD, uint64_t preference, int requested, void *results, _Out_ int *returned)",
  cublasLtMatmul:
    "int cublasLtMatmul(uint64_t handle, uint64_t descriptor, uint64_t alpha, uint64_t a, uint64_t layoutA, uint64_t b, " +
    "uint64_t layoutB, uint64_t beta, uint64_t c, uint64_t layoutC, uint64_t d, uint64_t layoutD, uint64_t algorithm, " +
    "uint64_t workspace, size_t workspaceBytes, uint64_t stream)",
};

export const CUBLAS_OP_N = 0;
export const CUBLAS_OP_T = 1;

export const CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5;
export const CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6;

export const CUBLASLT_MATMUL_DESC_TRANSA = 3;
export const CUBLASLT_MATMUL_DESC_TRANSB = 4;
export const CUBLASLT_MATMUL_DESC_EPILOGUE = 7;
export const CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8;
/** int32: the number of SMs to choose the algorithm for; 0 for all. */
export const CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET = 15;
export const CUBLASLT_EPILOGUE_BIAS = 4;

export const CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1;
export const CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3;
export const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5;
export const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6;
export const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7;
export const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8;
export const CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2;

/** Bytes of a cublasLtMatmulAlgo_t, the first member of a cublasLtMatmulHeuristicResult_t. */
export const CUBLASLT_ALGO_SIZE = 64;
export const CUBLASLT_HEURISTIC_RESULT_SIZE = 96;
