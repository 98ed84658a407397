/**
 * One rank of an MPI world: exchanges messages of many sizes with every rank, all under way at once, and prints what it
 * saw. The argument is the number of an ABI.
 */
import process from "node:process";
import { mpiAbis } from "../../src/backends/mpi/abi.ts";
import { findMpiLibrary } from "../../src/backends/mpi/mpi-library.ts";
import { enterMpi, type SharedBytes } from "../../src/backends/mpi/mpi-messages.ts";
import { at, invariant } from "../../src/support/invariant.ts";

const sizes = [0, 1, 63, 64, 4_099, 1_048_577];
/** Messages of one size, peer and tag, which arrive in order. */
const repeats = 3;

const library = findMpiLibrary(at(mpiAbis, Number(process.argv[2])));
invariant(library !== null, "the library that the test found loads");
const mpi = enterMpi(library);

const wanted: { bytes: SharedBytes; peer: number; tag: number; turn: number }[] = [];
const numbers = new Set<number>();
for (let peer = 0; peer < mpi.size; peer++) {
  sizes.forEach((size, tag) => {
    for (let turn = 0; turn < repeats; turn++) {
      const bytes = new Uint8Array(new SharedArrayBuffer(size));
      wanted.push({ bytes, peer, tag, turn });
      numbers.add(mpi.receive(bytes, peer, tag));
      numbers.add(mpi.send(pattern(size, mpi.rank, peer, tag, turn), peer, tag));
    }
  });
}
const started = numbers.size;
const deadline = performance.now() + 30_000;
while (numbers.size > 0) {
  for (const number of mpi.completed()) numbers.delete(number);
  invariant(performance.now() < deadline, "all messages arrive in time", { left: numbers.size });
}
const wrong = wanted.filter(({ bytes, peer, tag, turn }) => {
  const right = pattern(bytes.length, peer, mpi.rank, tag, turn);
  return bytes.some((value, i) => value !== right[i]);
});
mpi.close();
const { rank, size, threads } = mpi;
process.stdout.write(`${JSON.stringify({ rank, size, threads, started, wrong: wrong.length })}\n`);

function pattern(size: number, from: number, to: number, tag: number, turn: number): SharedBytes {
  const bytes = new Uint8Array(new SharedArrayBuffer(size));
  for (let i = 0; i < size; i++) bytes[i] = 31 * i + (i >> 8) + 101 * from + 53 * to + 17 * tag + 7 * turn + 1;
  return bytes;
}
