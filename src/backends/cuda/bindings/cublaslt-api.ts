/** The functions of cuBLASLt that Braid calls, with their names in cublasLt.h. Matrices are column-major there. */
import type { FunctionsOf, Prototypes } from "./native-library.ts";

export const cublasLtPrototypes = {
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
    "int cublasLtMatmulAlgoGetHeuristic(uint64_t handle, uint64_t descriptor, uint64_t layoutA, uint64_t layoutB, \
    uint64_t layoutC, uint64_t layoutD, uint64_t preference, int requested, void *results, _Out_ int *returned)",
  cublasLtMatmulAlgoConfigGetAttribute:
    "int cublasLtMatmulAlgoConfigGetAttribute(const void *algorithm, int attribute, void *value, size_t bytes, \
    _Out_ size_t *written)",
  cublasLtMatmul:
    "int cublasLtMatmul(uint64_t handle, uint64_t descriptor, uint64_t alpha, uint64_t a, uint64_t layoutA, \
    uint64_t b, uint64_t layoutB, uint64_t beta, uint64_t c, uint64_t layoutC, uint64_t d, uint64_t layoutD, \
    uint64_t algorithm, uint64_t workspace, size_t workspaceBytes, uint64_t stream)",
} as const satisfies Prototypes;

export type CublasLtFunctions = FunctionsOf<typeof cublasLtPrototypes>;

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
/** Of A and B: CUBLASLT_MATMUL_DESC_A_SCALE_POINTER and so on. */
export const CUBLASLT_MATMUL_DESC_SCALE_POINTERS = [17, 18];
/** int8: whether sums of 8-bit products may stay in the bits of tensor cores. */
export const CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25;
/** Since 12.8; of vectors on Hopper since 12.9. */
export const CUBLASLT_MATMUL_DESC_SCALE_MODES = [31, 32];
/** A float per row of A and per column of B. */
export const CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F = 3;
/** A float for each 128 of k in each row of A or column of B, or in each 128 of these. */
export const CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F = 4;
export const CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F = 5;
export const CUBLASLT_EPILOGUE_BIAS = 4;

export const CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1;
export const CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3;
export const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5;
export const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6;
export const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7;
export const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8;
export const CUBLASLT_REDUCTION_SCHEME_NONE = 0;
export const CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2;

/** int32: which kernels an algorithm has, and into how many parts it cuts k. */
export const CUBLASLT_ALGO_CONFIG_ID = 0;
export const CUBLASLT_ALGO_CONFIG_SPLITK_NUM = 2;

/** Bytes of a cublasLtMatmulAlgo_t, the first member of a cublasLtMatmulHeuristicResult_t. */
export const CUBLASLT_ALGO_SIZE = 64;
export const CUBLASLT_HEURISTIC_RESULT_SIZE = 96;
