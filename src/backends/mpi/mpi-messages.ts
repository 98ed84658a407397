/**
 * This process in MPI_COMM_WORLD, and messages of bytes that are under way. The buffers are shared memory, which does
 * not move; each is kept until its message is complete.
 */
import { at, invariant } from "../../support/invariant.ts";
import { type MpiLibrary, type ThreadLevel, threadLevels } from "./mpi-library.ts";

/** Identifies a message until it is complete; then the number is used again. */
export type MessageNumber = number;

export type SharedBytes = Uint8Array<SharedArrayBuffer>;

export function createSharedBytes(length: number): SharedBytes {
  return new Uint8Array(new SharedArrayBuffer(length));
}

export interface MpiMessages {
  readonly rank: number;
  readonly size: number;
  readonly threads: ThreadLevel;
  /** Starts to send. The bytes must stay as they are until the message is complete. */
  readonly send: (bytes: SharedBytes, peer: number, tag: number) => MessageNumber;
  /** Starts to receive a message of exactly that many bytes. Messages of one peer and tag match in order. */
  readonly receive: (bytes: SharedBytes, peer: number, tag: number) => MessageNumber;
  /** Lets MPI progress. The messages that have completed since the last call, in no particular order. */
  readonly completed: () => readonly MessageNumber[];
  /**
   * Leaves MPI. All ranks call it, with no message under way, and wait for each other. If MPI_Finalize then does not
   * return, as with MPICH 4.0 over TCP, the process ends by SIGALRM.
   */
  readonly close: () => void;
}

/** MPI_THREAD_MULTIPLE. */
const wantedLevel = 3;

/** Seconds for MPI_Finalize. */
const mostFinalizing = 30;

/** Once per process: MPI cannot be entered twice. */
export function enterMpi(library: MpiLibrary, finalizing = mostFinalizing): MpiMessages {
  const { abi, functions, world, byte } = library;
  const provided: [number] = [0];
  check("MPI_Init_thread", functions.MPI_Init_thread(0, 0, wantedLevel, provided));
  const rank: [number] = [0];
  check("MPI_Comm_rank", functions.MPI_Comm_rank(world, rank));
  const size: [number] = [0];
  check("MPI_Comm_size", functions.MPI_Comm_size(world, size));
  const width = abi.handle === "int" ? 4 : 8;
  /** By message number; null for a number that is free. */
  const buffers: (SharedBytes | null)[] = [];
  /** MPI sets the request of a complete message to MPI_REQUEST_NULL, which MPI_Testsome passes over. */
  let requests = new Uint8Array(0);
  let indices = new Int32Array(0);
  const start = (name: "MPI_Isend" | "MPI_Irecv", bytes: SharedBytes, peer: number, tag: number): MessageNumber => {
    const request = new Uint8Array(width);
    check(name, functions[name](bytes, bytes.length, byte, peer, tag, world, request));
    const free = buffers.indexOf(null);
    const number = free === -1 ? buffers.length : free;
    buffers[number] = bytes;
    if (indices.length < buffers.length) {
      const larger = new Uint8Array(2 * buffers.length * width);
      larger.set(requests);
      [requests, indices] = [larger, new Int32Array(2 * buffers.length)];
    }
    requests.set(request, number * width);
    return number;
  };
  return {
    rank: rank[0],
    size: size[0],
    threads: at(threadLevels, provided[0]),
    send: (bytes, peer, tag) => start("MPI_Isend", bytes, peer, tag),
    receive: (bytes, peer, tag) => start("MPI_Irecv", bytes, peer, tag),
    completed: () => {
      if (buffers.every((each) => each === null)) return [];
      const count: [number] = [0];
      const places = new Uint8Array(indices.buffer);
      check("MPI_Testsome", functions.MPI_Testsome(buffers.length, requests, count, places, abi.ignoreStatus));
      const done = [...indices.subarray(0, Math.max(0, count[0]))];
      for (const number of done) buffers[number] = null;
      return done;
    },
    close: () => {
      const left = buffers.filter((each) => each !== null).length;
      invariant(left === 0, "no message is under way when MPI ends", { left });
      check("MPI_Barrier", functions.MPI_Barrier(world));
      library.alarm(finalizing);
      check("MPI_Finalize", functions.MPI_Finalize());
      library.alarm(0);
    },
  };
}

/** MPI ends all processes on an error unless told otherwise, so that a status other than 0 is a bug. */
function check(name: string, status: number): void {
  invariant(status === 0, "a call of MPI succeeds", { name, status });
}

/** The tags of messages that are not of a channel. Channels have those from `firstTag` on. */
export const tags = {
  /** The number of bytes that follow with `data`, or `givenUp` if a text follows with `reason`. */
  length: 0,
  data: 1,
  reason: 2,
  /** One byte at the end of each run: whether the process ran all its commands. */
  runEnd: 3,
} as const;

export const firstTag = 4;

export const runEnds = { done: 0, failed: 1 } as const;

export const givenUp = -1;

/** Bytes of a `reason`: shorter ones are filled up with zeros. */
export const reasonBytes = 4096;
