/** Leaves MPI by a library whose MPI_Finalize does not return. */
import { mpiAbis } from "../../src/backends/mpi/abi.ts";
import { findMpiLibrary } from "../../src/backends/mpi/mpi-library.ts";
import { enterMpi } from "../../src/backends/mpi/mpi-messages.ts";

const library = mpiAbis.map((abi) => findMpiLibrary(abi)).find((each) => each !== null);
if (library === undefined) throw new Error("no MPI library");
const never = new Int32Array(new SharedArrayBuffer(4));
const MPI_Finalize = (): number => Number(Atomics.wait(never, 0, 0) === "ok");
const messages = enterMpi({ ...library, functions: { ...library.functions, MPI_Finalize } }, 1);
console.log("entered");
messages.close();
