/**
 * The processes of MPI_COMM_WORLD as a World: what `braid run` exchanges beside the messages of runs. Nothing waits for
 * ever: an exchange ends with its result, when another process gives up, or at its time-out.
 */
import {
  givenUp,
  type MessageNumber,
  type MpiMessages,
  reasonBytes,
  runEnds,
  type SharedBytes,
  createSharedBytes,
  tags,
} from "../backends/mpi/mpi-messages.ts";
import { type Diagnostic, DiagnosticError } from "../diagnostics/diagnostic.ts";
import type { Connection } from "./world.ts";

/** Milliseconds for the news that this process gives up to leave. */
const farewell = 300;

/** `timeout`: milliseconds for each exchange. */
export function mpiWorld(messages: MpiMessages, timeout: number): Connection {
  const { rank: own, size } = messages;
  const others = Array.from({ length: size }, (_, process) => process).filter((process) => process !== own);
  const controller = new AbortController();
  let words = "";

  async function finished(numbers: ReadonlySet<MessageNumber>, waitsFor: () => readonly number[]): Promise<void> {
    const left = new Set(numbers);
    const deadline = performance.now() + timeout;
    for (let looks = 0; left.size > 0; looks++) {
      for (const number of messages.completed()) left.delete(number);
      if (left.size === 0) return;
      if (performance.now() > deadline) throw new DiagnosticError([late(own, waitsFor(), timeout)]);
      await new Promise((resolve) => (looks < 200 ? setImmediate(resolve) : setTimeout(resolve, 1)));
    }
  }

  /** Sends each other process these bytes, and receives as many of each as `lengths` says. */
  async function exchange(
    bytes: SharedBytes,
    lengths: ReadonlyMap<number, number>,
    tag: number,
  ): Promise<Map<number, SharedBytes>> {
    const numbers = new Set<MessageNumber>();
    const received = new Map<number, SharedBytes>();
    const pending = new Map<number, MessageNumber>();
    for (const [process, length] of lengths) {
      if (length === 0) continue;
      const part = createSharedBytes(length);
      received.set(process, part);
      const number = messages.receive(part, process, tag);
      pending.set(process, number);
      numbers.add(number);
    }
    if (bytes.length > 0) for (const process of others) numbers.add(messages.send(bytes, process, tag));
    await finished(numbers, () => [...pending.keys()]);
    return received;
  }

  const world: Connection = {
    rank: own,
    worldSize: size,
    signal: controller.signal,
    allGather: async (bytes) => {
      controller.signal.throwIfAborted();
      const length = createSharedBytes(8);
      new DataView(length.buffer).setFloat64(0, bytes.length, true);
      const heads = await exchange(length, new Map(others.map((process) => [process, 8])), tags.length);
      const lengths = new Map(
        [...heads].map(([process, head]) => [process, new DataView(head.buffer).getFloat64(0, true)]),
      );
      for (const [process, each] of lengths) {
        if (each !== givenUp) continue;
        const text = createSharedBytes(reasonBytes);
        await finished(new Set([messages.receive(text, process, tags.reason)]), () => [process]);
        const failure = new DiagnosticError([gaveUp(process, text)]);
        controller.abort(failure);
        throw failure;
      }
      const data = createSharedBytes(bytes.length);
      data.set(bytes);
      const parts = await exchange(data, lengths, tags.data);
      return Array.from({ length: size }, (_, process) =>
        process === own ? bytes : new Uint8Array(parts.get(process) ?? new Uint8Array()),
      );
    },
    barrier: async () => {
      await world.allGather(new Uint8Array());
    },
    lastWords: (text) => {
      words = text;
    },
    abort: (reason) => {
      if (controller.signal.aborted) return;
      controller.abort(new Error(reason));
      const text = createSharedBytes(reasonBytes);
      text.set(new TextEncoder().encode(words === "" ? reason : words).subarray(0, reasonBytes));
      const head = createSharedBytes(8);
      new DataView(head.buffer).setFloat64(0, givenUp, true);
      const end = createSharedBytes(1);
      end[0] = runEnds.failed;
      const left = new Set<MessageNumber>();
      for (const process of others) {
        left.add(messages.send(head, process, tags.length));
        left.add(messages.send(text, process, tags.reason));
        left.add(messages.send(end, process, tags.runEnd));
      }
      const deadline = performance.now() + farewell;
      while (left.size > 0 && performance.now() < deadline)
        for (const number of messages.completed()) left.delete(number);
    },
    leave: async () => {
      await world.barrier();
      messages.close();
    },
  };
  return world;
}

function gaveUp(process: number, text: SharedBytes): Diagnostic {
  const end = text.indexOf(0);
  // TextDecoder refuses shared memory.
  const said = new TextDecoder().decode(text.slice(0, end === -1 ? text.length : end));
  return {
    code: "rank-failed",
    message: `process ${process} failed, so the run ended on all processes`,
    found: said,
    expected: "every process to run until the end",
    help: "read what that process found",
  };
}

function late(own: number, missing: readonly number[], timeout: number): Diagnostic {
  return {
    code: "rendezvous-failed",
    message: `process ${own} waited in vain for others`,
    found: `nothing from process ${missing.join(", ")} within ${timeout / 1000} s`,
    expected: "every process to take part",
    help: "see whether that process still runs, and allow more time with --timeout",
  };
}
