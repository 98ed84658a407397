/**
 * Enters MPI in a process of its own, sends a message to itself, and prints what the library says about itself: entering
 * can take a second, end the process, or never return. The argument is the number of an ABI. Prints nothing if no library
 * of that ABI loads.
 */
import process from "node:process";
import { at, invariant } from "../../support/invariant.ts";
import { mpiAbis } from "./abi.ts";
import { findMpiLibrary, type MpiLibrary } from "./mpi-library.ts";
import { enterMpi, createSharedBytes } from "./mpi-messages.ts";

const library = findMpiLibrary(at(mpiAbis, Number(process.argv[2])));
if (library !== null) process.stdout.write(`${JSON.stringify(describe(library))}\n`);

function describe(found: MpiLibrary): object {
  const mpi = enterMpi(found);
  const [from, to] = [createSharedBytes(4096), createSharedBytes(4096)];
  for (let i = 0; i < from.length; i++) from[i] = i % 251;
  mpi.receive(to, mpi.rank, 0);
  mpi.send(from, mpi.rank, 0);
  for (let left = 2; left > 0;) left -= mpi.completed().length;
  const same = from.every((value, i) => to[i] === value);
  invariant(same, "a message arrives as it was sent");
  mpi.close();
  return { version: found.version, file: found.file, threads: mpi.threads };
}
