/** The functions of MPI that Braid calls, with their names in mpi.h. `handle` is the type that the ABI says. */
import type { FunctionsOf, Prototypes } from "../cuda/bindings/native-library.ts";

export const mpiPrototypes = {
  MPI_Get_library_version: "int MPI_Get_library_version(void *text, _Out_ int *length)",
  MPI_Init_thread: "int MPI_Init_thread(uint64_t argc, uint64_t argv, int required, _Out_ int *provided)",
  MPI_Comm_rank: "int MPI_Comm_rank(handle communicator, _Out_ int *rank)",
  MPI_Comm_size: "int MPI_Comm_size(handle communicator, _Out_ int *size)",
  MPI_Isend: "int MPI_Isend(void *from, int count, handle type, int peer, int tag, handle communicator, void *request)",
  MPI_Irecv: "int MPI_Irecv(void *to, int count, handle type, int peer, int tag, handle communicator, void *request)",
  MPI_Testsome: "int MPI_Testsome(int count, void *requests, _Out_ int *completed, void *indices, uint64_t statuses)",
  MPI_Barrier: "int MPI_Barrier(handle communicator)",
  MPI_Finalize: "int MPI_Finalize()",
} as const satisfies Prototypes;

export type MpiFunctions = FunctionsOf<typeof mpiPrototypes>;

/** Of MPI_MAX_LIBRARY_VERSION_STRING the largest, which is MPICH's. */
export const mostVersionBytes = 8192;

/** MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE, which are 0 to 3 in every ABI. */
export const threadLevels = ["single", "funneled", "serialized", "multiple"] as const;

export type ThreadLevel = (typeof threadLevels)[number];
