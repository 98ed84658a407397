/**
 * The functions of libcuda.so.1 that Braid calls, under the names that the library exports: cuda.h maps `cuMemAlloc` to
 * `cuMemAlloc_v2` and so on. Constants have their names in cuda.h.
 */
import type { FunctionsOf, Out, Prototypes } from "./native-library.ts";

export type { Out };

export const driverPrototypes = {
  cuInit: "int cuInit(uint32_t flags)",
  cuDriverGetVersion: "int cuDriverGetVersion(_Out_ int *version)",
  cuGetErrorName: "int cuGetErrorName(int status, _Out_ uint64_t *text)",
  cuGetErrorString: "int cuGetErrorString(int status, _Out_ uint64_t *text)",
  cuDeviceGetCount: "int cuDeviceGetCount(_Out_ int *count)",
  cuDeviceGet: "int cuDeviceGet(_Out_ int *device, int ordinal)",
  cuDeviceGetName: "int cuDeviceGetName(void *name, int length, int device)",
  cuDeviceGetAttribute: "int cuDeviceGetAttribute(_Out_ int *value, int attribute, int device)",
  cuDeviceTotalMem_v2: "int cuDeviceTotalMem_v2(_Out_ size_t *bytes, int device)",
  cuDeviceCanAccessPeer: "int cuDeviceCanAccessPeer(_Out_ int *can, int device, int peer)",
  cuDeviceGetPCIBusId: "int cuDeviceGetPCIBusId(void *id, int length, int device)",
  cuDevicePrimaryCtxRetain: "int cuDevicePrimaryCtxRetain(_Out_ uint64_t *context, int device)",
  cuCtxSetCurrent: "int cuCtxSetCurrent(uint64_t context)",
  cuCtxGetStreamPriorityRange: "int cuCtxGetStreamPriorityRange(_Out_ int *least, _Out_ int *greatest)",
  cuMemGetInfo_v2: "int cuMemGetInfo_v2(_Out_ size_t *free, _Out_ size_t *total)",
  cuMemAlloc_v2: "int cuMemAlloc_v2(_Out_ uint64_t *address, size_t bytes)",
  cuMemFree_v2: "int cuMemFree_v2(uint64_t address)",
  cuMemHostAlloc: "int cuMemHostAlloc(_Out_ uint64_t *address, size_t bytes, uint32_t flags)",
  cuMemFreeHost: "int cuMemFreeHost(uint64_t address)",
  cuIpcGetMemHandle: "int cuIpcGetMemHandle(void *handle, uint64_t address)",
  cuIpcOpenMemHandle_v2: "int cuIpcOpenMemHandle_v2(_Out_ uint64_t *address, CUipcMemHandle handle, uint32_t flags)",
  cuIpcCloseMemHandle: "int cuIpcCloseMemHandle(uint64_t address)",
  cuMemsetD8Async: "int cuMemsetD8Async(uint64_t address, uint8_t value, size_t count, uint64_t stream)",
  cuMemcpyHtoDAsync_v2:
    "int cuMemcpyHtoDAsync_v2(uint64_t destination, uint64_t source, size_t bytes, uint64_t stream)",
  cuMemcpyDtoHAsync_v2:
    "int cuMemcpyDtoHAsync_v2(uint64_t destination, uint64_t source, size_t bytes, uint64_t stream)",
  cuMemcpyDtoDAsync_v2:
    "int cuMemcpyDtoDAsync_v2(uint64_t destination, uint64_t source, size_t bytes, uint64_t stream)",
  cuMemcpy2DAsync_v2: "int cuMemcpy2DAsync_v2(uint64_t copy, uint64_t stream)",
  cuStreamCreateWithPriority: "int cuStreamCreateWithPriority(_Out_ uint64_t *stream, uint32_t flags, int priority)",
  cuStreamDestroy_v2: "int cuStreamDestroy_v2(uint64_t stream)",
  cuStreamQuery: "int cuStreamQuery(uint64_t stream)",
  cuStreamWaitEvent: "int cuStreamWaitEvent(uint64_t stream, uint64_t event, uint32_t flags)",
  cuStreamBatchMemOp_v2:
    "int cuStreamBatchMemOp_v2(uint64_t stream, uint32_t count, uint64_t operations, uint32_t flags)",
  cuStreamBeginCapture_v2: "int cuStreamBeginCapture_v2(uint64_t stream, int mode)",
  cuStreamEndCapture: "int cuStreamEndCapture(uint64_t stream, _Out_ uint64_t *graph)",
  cuEventCreate: "int cuEventCreate(_Out_ uint64_t *event, uint32_t flags)",
  cuEventDestroy_v2: "int cuEventDestroy_v2(uint64_t event)",
  cuEventRecord: "int cuEventRecord(uint64_t event, uint64_t stream)",
  cuEventQuery: "int cuEventQuery(uint64_t event)",
  cuEventElapsedTime: "int cuEventElapsedTime(_Out_ float *milliseconds, uint64_t start, uint64_t end)",
  cuGraphInstantiateWithFlags: "int cuGraphInstantiateWithFlags(_Out_ uint64_t *exec, uint64_t graph, uint64_t flags)",
  cuGraphUpload: "int cuGraphUpload(uint64_t exec, uint64_t stream)",
  cuGraphLaunch: "int cuGraphLaunch(uint64_t exec, uint64_t stream)",
  cuGraphExecDestroy: "int cuGraphExecDestroy(uint64_t exec)",
  cuGraphDestroy: "int cuGraphDestroy(uint64_t graph)",
  cuModuleLoadData: "int cuModuleLoadData(_Out_ uint64_t *module, const void *image)",
  cuModuleUnload: "int cuModuleUnload(uint64_t module)",
  cuModuleGetFunction: "int cuModuleGetFunction(_Out_ uint64_t *fn, uint64_t module, const char *name)",
  cuFuncSetAttribute: "int cuFuncSetAttribute(uint64_t fn, int attribute, int value)",
  cuLaunchKernel:
    "int cuLaunchKernel(uint64_t fn, uint32_t gridX, uint32_t gridY, uint32_t gridZ, uint32_t blockX, uint32_t blockY, \
    uint32_t blockZ, uint32_t sharedBytes, uint64_t stream, uint64_t parameters, uint64_t extra)",
} as const satisfies Prototypes;

export type DriverFunctions = FunctionsOf<typeof driverPrototypes>;

export const CUDA_SUCCESS = 0;
export const CUDA_ERROR_OUT_OF_MEMORY = 2;
export const CUDA_ERROR_NOT_READY = 600;

export const CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16;
export const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
export const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;

export const CU_MEMHOSTALLOC_PORTABLE = 1;
export const CU_MEMHOSTALLOC_DEVICEMAP = 2;
export const CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1;
export const CU_IPC_HANDLE_SIZE = 64;

export const CU_STREAM_NON_BLOCKING = 1;
export const CU_STREAM_CAPTURE_MODE_RELAXED = 2;
export const CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8;
export const CU_EVENT_DEFAULT = 0;
export const CU_EVENT_DISABLE_TIMING = 2;

export const CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1;
export const CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2;
export const CU_STREAM_WAIT_VALUE_EQ = 1;
export const CU_STREAM_WRITE_VALUE_DEFAULT = 0;
/** Bytes of a CUstreamBatchMemOpParams. */
export const CU_STREAM_BATCH_MEM_OP_SIZE = 48;

export const CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;

export const CU_MEMORYTYPE_DEVICE = 2;
export const CUDA_MEMCPY2D_SIZE = 128;
