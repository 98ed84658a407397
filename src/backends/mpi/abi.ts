/**
 * What differs between MPI libraries in binary form: file names, the width of handles, and the values of the constants
 * that Braid passes. Everything else of the functions it calls is the same in all of them.
 */
export interface MpiAbi {
  readonly name: string;
  /** Names to ask the loader for. */
  readonly files: readonly string[];
  /** The C type of MPI_Comm, MPI_Datatype and MPI_Request. */
  readonly handle: "uint64_t" | "int";
  readonly world: MpiConstant;
  readonly byte: MpiConstant;
  /** MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE. */
  readonly ignoreStatus: number;
}

/** A number of the library's mpi.h, or the address of a variable that it exports. */
export type MpiConstant =
  { readonly kind: "value"; readonly value: number } | { readonly kind: "symbol"; readonly name: string };

export const mpiAbis: readonly MpiAbi[] = [
  {
    name: "Open MPI",
    files: ["libmpi.so.40"],
    handle: "uint64_t",
    world: { kind: "symbol", name: "ompi_mpi_comm_world" },
    byte: { kind: "symbol", name: "ompi_mpi_byte" },
    ignoreStatus: 0,
  },
  {
    // Intel MPI and MVAPICH have it too.
    name: "MPICH",
    files: ["libmpi.so.12", "libmpich.so.12"],
    handle: "int",
    world: { kind: "value", value: 0x44000000 },
    byte: { kind: "value", value: 0x4c00010d },
    ignoreStatus: 1,
  },
  {
    name: "MPI 5.0",
    files: ["libmpi_abi.so.0"],
    handle: "uint64_t",
    world: { kind: "value", value: 0x101 },
    byte: { kind: "value", value: 0x247 },
    ignoreStatus: 0,
  },
];
