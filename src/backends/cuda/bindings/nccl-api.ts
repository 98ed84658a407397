/** The functions of NCCL that Braid calls, with their names in nccl.h. */
import type { FunctionsOf, Prototypes } from "./native-library.ts";

export const ncclPrototypes = {
  ncclGetVersion: "int ncclGetVersion(_Out_ int *version)",
  ncclGetUniqueId: "int ncclGetUniqueId(void *id)",
  ncclGetErrorString: "const char *ncclGetErrorString(int status)",
  ncclGetLastError: "const char *ncclGetLastError(uint64_t communicator)",
  ncclCommInitRankConfig:
    "int ncclCommInitRankConfig(_Out_ uint64_t *communicator, int ranks, ncclUniqueId id, int rank, void *config)",
  ncclCommGetAsyncError: "int ncclCommGetAsyncError(uint64_t communicator, _Out_ int *status)",
  ncclCommFinalize: "int ncclCommFinalize(uint64_t communicator)",
  ncclCommDestroy: "int ncclCommDestroy(uint64_t communicator)",
  ncclCommAbort: "int ncclCommAbort(uint64_t communicator)",
  ncclGroupStart: "int ncclGroupStart()",
  ncclGroupEnd: "int ncclGroupEnd()",
  ncclSend: "int ncclSend(uint64_t from, size_t count, int type, int peer, uint64_t communicator, uint64_t stream)",
  ncclRecv: "int ncclRecv(uint64_t to, size_t count, int type, int peer, uint64_t communicator, uint64_t stream)",
  ncclAllGather:
    "int ncclAllGather(uint64_t from, uint64_t to, size_t sendCount, int type, uint64_t communicator, uint64_t stream)",
  ncclAllReduce:
    "int ncclAllReduce(uint64_t from, uint64_t to, size_t count, int type, int op, uint64_t communicator, uint64_t stream)",
  ncclReduceScatter:
    "int ncclReduceScatter(uint64_t from, uint64_t to, size_t recvCount, int type, int op, uint64_t communicator, \
    uint64_t stream)",
  ncclReduce:
    "int ncclReduce(uint64_t from, uint64_t to, size_t count, int type, int op, int root, uint64_t communicator, \
    uint64_t stream)",
  ncclBroadcast:
    "int ncclBroadcast(uint64_t from, uint64_t to, size_t count, int type, int root, uint64_t communicator, uint64_t stream)",
} as const satisfies Prototypes;

export type NcclFunctions = FunctionsOf<typeof ncclPrototypes>;

export const NCCL_UNIQUE_ID_BYTES = 128;
export const ncclSuccess = 0;
export const ncclInProgress = 7;
