/** Messages between "processes" in one process: as MPI matches them, by sender, receiver and tag, in order. */
import type { Transport } from "../../src/backends/mpi/agent.ts";
import type { SharedBytes } from "../../src/backends/mpi/mpi-messages.ts";
import { at, invariant } from "../../src/support/invariant.ts";

interface Waiting {
  readonly bytes: SharedBytes;
  readonly process: number;
  readonly number: number;
}

export function memoryTransports(size: number): readonly Transport[] {
  const sends = new Map<string, Waiting[]>();
  const receives = new Map<string, Waiting[]>();
  const done = Array.from({ length: size }, (): number[] => []);
  let next = 0;
  const match = (key: string): void => {
    const [sent, wanted] = [sends.get(key) ?? [], receives.get(key) ?? []];
    while (sent.length > 0 && wanted.length > 0) {
      const [from, to] = [sent.shift(), wanted.shift()];
      if (from === undefined || to === undefined) return;
      invariant(from.bytes.length === to.bytes.length, "messages have the length that is expected", { key });
      to.bytes.set(from.bytes);
      at(done, from.process).push(from.number);
      at(done, to.process).push(to.number);
    }
  };
  const start = (lists: Map<string, Waiting[]>, key: string, waiting: Omit<Waiting, "number">): number => {
    const number = next++;
    lists.set(key, [...(lists.get(key) ?? []), { ...waiting, number }]);
    match(key);
    return number;
  };
  return Array.from({ length: size }, (_, rank): Transport => ({
    rank,
    size,
    send: (bytes, peer, tag) => start(sends, `${rank} ${peer} ${tag}`, { bytes, process: rank }),
    receive: (bytes, peer, tag) => start(receives, `${peer} ${rank} ${tag}`, { bytes, process: rank }),
    completed: () => at(done, rank).splice(0),
  }));
}
