/**
 * The functions of cuDNN's graph API that Braid calls, and the numbers of their enumerations, with their names in
 * cudnn_graph.h. A descriptor is created, gets its attributes one by one, and is finalized.
 */
import type { FunctionsOf, Prototypes } from "./native-library.ts";

export const cudnnPrototypes = {
  cudnnGetVersion: "size_t cudnnGetVersion()",
  cudnnGetErrorString: "const char *cudnnGetErrorString(int status)",
  cudnnGetLastErrorString: "void cudnnGetLastErrorString(void *message, size_t bytes)",
  cudnnCreate: "int cudnnCreate(_Out_ uint64_t *handle)",
  cudnnDestroy: "int cudnnDestroy(uint64_t handle)",
  cudnnSetStream: "int cudnnSetStream(uint64_t handle, uint64_t stream)",
  cudnnBackendCreateDescriptor: "int cudnnBackendCreateDescriptor(int type, _Out_ uint64_t *descriptor)",
  cudnnBackendDestroyDescriptor: "int cudnnBackendDestroyDescriptor(uint64_t descriptor)",
  cudnnBackendSetAttribute:
    "int cudnnBackendSetAttribute(uint64_t descriptor, int attribute, int type, int64_t count, const void *values)",
  cudnnBackendGetAttribute:
    "int cudnnBackendGetAttribute(uint64_t descriptor, int attribute, int type, int64_t requested, \
    _Out_ int64_t *count, void *values)",
  cudnnBackendFinalize: "int cudnnBackendFinalize(uint64_t descriptor)",
  cudnnBackendExecute: "int cudnnBackendExecute(uint64_t handle, uint64_t plan, uint64_t pack)",
} as const satisfies Prototypes;

export type CudnnFunctions = FunctionsOf<typeof cudnnPrototypes>;

/** cudnnBackendDescriptorType_t. */
export const descriptorTypes = {
  CUDNN_BACKEND_POINTWISE_DESCRIPTOR: 0,
  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR: 3,
  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: 4,
  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: 5,
  CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: 13,
  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: 15,
  CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: 16,
  CUDNN_BACKEND_TENSOR_DESCRIPTOR: 17,
  CUDNN_BACKEND_MATMUL_DESCRIPTOR: 18,
  CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: 19,
  CUDNN_BACKEND_REDUCTION_DESCRIPTOR: 21,
  CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: 22,
  CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: 31,
} as const;

/** cudnnBackendAttributeName_t. */
export const attributeNames = {
  CUDNN_ATTR_POINTWISE_MODE: 0,
  CUDNN_ATTR_POINTWISE_MATH_PREC: 1,
  CUDNN_ATTR_POINTWISE_AXIS: 9,
  CUDNN_ATTR_ENGINEHEUR_MODE: 200,
  CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH: 201,
  CUDNN_ATTR_ENGINEHEUR_RESULTS: 202,
  CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG: 401,
  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: 402,
  CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR: 750,
  CUDNN_ATTR_OPERATION_POINTWISE_XDESC: 751,
  CUDNN_ATTR_OPERATION_POINTWISE_BDESC: 752,
  CUDNN_ATTR_OPERATION_POINTWISE_YDESC: 753,
  CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1: 754,
  CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2: 755,
  CUDNN_ATTR_OPERATION_POINTWISE_TDESC: 758,
  CUDNN_ATTR_OPERATIONGRAPH_HANDLE: 800,
  CUDNN_ATTR_OPERATIONGRAPH_OPS: 801,
  CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT: 900,
  CUDNN_ATTR_TENSOR_DATA_TYPE: 901,
  CUDNN_ATTR_TENSOR_DIMENSIONS: 902,
  CUDNN_ATTR_TENSOR_STRIDES: 903,
  CUDNN_ATTR_TENSOR_UNIQUE_ID: 906,
  CUDNN_ATTR_TENSOR_IS_VIRTUAL: 907,
  CUDNN_ATTR_TENSOR_IS_BY_VALUE: 908,
  CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS: 1000,
  CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS: 1001,
  CUDNN_ATTR_VARIANT_PACK_WORKSPACE: 1003,
  CUDNN_ATTR_MATMUL_COMP_TYPE: 1500,
  CUDNN_ATTR_OPERATION_MATMUL_ADESC: 1520,
  CUDNN_ATTR_OPERATION_MATMUL_BDESC: 1521,
  CUDNN_ATTR_OPERATION_MATMUL_CDESC: 1522,
  CUDNN_ATTR_OPERATION_MATMUL_DESC: 1523,
  CUDNN_ATTR_REDUCTION_OPERATOR: 1600,
  CUDNN_ATTR_REDUCTION_COMP_TYPE: 1601,
  CUDNN_ATTR_OPERATION_REDUCTION_XDESC: 1610,
  CUDNN_ATTR_OPERATION_REDUCTION_YDESC: 1611,
  CUDNN_ATTR_OPERATION_REDUCTION_DESC: 1612,
  CUDNN_ATTR_OPERATION_RESHAPE_XDESC: 2200,
  CUDNN_ATTR_OPERATION_RESHAPE_YDESC: 2201,
} as const;

/** cudnnBackendAttributeType_t. */
export const attributeTypes = {
  CUDNN_TYPE_HANDLE: 0,
  CUDNN_TYPE_DATA_TYPE: 1,
  CUDNN_TYPE_BOOLEAN: 2,
  CUDNN_TYPE_INT64: 3,
  CUDNN_TYPE_FLOAT: 4,
  CUDNN_TYPE_VOID_PTR: 6,
  CUDNN_TYPE_HEUR_MODE: 8,
  CUDNN_TYPE_POINTWISE_MODE: 14,
  CUDNN_TYPE_BACKEND_DESCRIPTOR: 15,
  CUDNN_TYPE_REDUCTION_OPERATOR_TYPE: 18,
} as const;

/** cudnnDataType_t. */
export const dataTypes = {
  CUDNN_DATA_FLOAT: 0,
  CUDNN_DATA_HALF: 2,
  CUDNN_DATA_INT32: 4,
  CUDNN_DATA_BFLOAT16: 9,
  CUDNN_DATA_BOOLEAN: 11,
} as const;

/** cudnnPointwiseMode_t. */
export const pointwiseModes = {
  CUDNN_POINTWISE_ADD: 0,
  CUDNN_POINTWISE_MUL: 1,
  CUDNN_POINTWISE_DIV: 6,
  CUDNN_POINTWISE_SUB: 9,
  CUDNN_POINTWISE_EXP: 13,
  CUDNN_POINTWISE_LOG: 15,
  CUDNN_POINTWISE_CMP_GT: 302,
  CUDNN_POINTWISE_CMP_GE: 303,
  CUDNN_POINTWISE_GEN_INDEX: 501,
  CUDNN_POINTWISE_BINARY_SELECT: 601,
} as const;

/** cudnnReduceTensorOp_t. */
export const reductionOperators = { CUDNN_REDUCE_TENSOR_ADD: 0, CUDNN_REDUCE_TENSOR_MAX: 3 } as const;

/** cudnnBackendHeurMode_t. */
export const heuristicModes = { CUDNN_HEUR_MODE_A: 3 } as const;

export const CUDNN_STATUS_SUCCESS = 0;
