/** The functions of NCCL that Braid calls, with their names in nccl.h. */
import type { Out } from "./driver-api.ts";
import type { Prototypes } from "./native-library.ts";

export interface NcclFunctions {
  ncclGetVersion(version: Out): number;
  ncclGetUniqueId(id: Uint8Array): number;
  ncclGetErrorString(status: number): string;
  ncclGetLastError(communicator: number): string;
  ncclCommInitRankConfig(
    communicator: Out,
    ranks: number,
    id: { readonly bytes: Uint8Array },
    rank: number,
    config: Uint8Array,
  ): number;
  ncclCommGetAsyncError(communicator: number, status: Out): number;
  ncclCommFinalize(communicator: number): number;
  ncclCommDestroy(communicator: number): number;
  ncclCommAbort(communicator: number): number;
  ncclGroupStart(): number;
  ncclGroupEnd(): number;
  ncclSend(from: number, count: number, type: number, peer: number, communicator: number, stream: number): number;
  ncclRecv(to: number, count: number, type: number, peer: number, communicator: number, stream: number): number;
  ncclAllGather(
    from: number,
    to: number,
    sendCount: number,
    type: number,
    communicator: number,
    stream: number,
  ): number;
  ncclAllReduce(
    from: number,
    to: number,
    count: number,
    type: number,
    op: number,
    communicator: number,
    stream: number,
  ): number;
  ncclReduceScatter(
    from: number,
    to: number,
    recvCount: number,
    type: number,
    op: number,
    communicator: number,
    stream: number,
  ): number;
  ncclReduce(
    from: number,
    to: number,
    count: number,
    type: number,
    op: number,
    root: number,
    communicator: number,
    stream: number,
  ): number;
  ncclBroadcast(
    from: number,
    to: number,
    count: number,
    type: number,
    root: number,
    communicator: number,
    stream: number,
  ): number;
}

export const ncclPrototypes: Prototypes<NcclFunctions> = {
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
    "int ncclReduceScatter(uint64_t from, uint64_t to, size_t recvCount, int type, int op, uint64_t communicator, " +
    "uint64_t stream)",
  ncclReduce:
    "int ncclReduce(uint64_t from, uint64_t to, size_t count, int type, int op, int root, uint64_t communicator, " +
    "uint64_t stream)",
  ncclBroadcast:
    "int ncclBroadcast(uint64_t from, uint64_t to, size_t count, int type, int root, uint64_t communicator, uint64_t stream)",
};

export const NCCL_UNIQUE_ID_BYTES = 128;
export const ncclSuccess = 0;
export const ncclInProgress = 7;
