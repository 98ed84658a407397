/**
 * Collects the bytes of each exchange from every rank. Ranks make the same calls in the same order, so the n-th part of
 * each rank belongs to exchange n.
 */
import type { Deadline, Deadlines } from "./deadlines.ts";

export interface Exchanges {
  /** `expects`: whether this exchange has a deadline. */
  take(rank: number, body: Uint8Array, expects: boolean): void;
}

interface Round {
  readonly parts: Map<number, Uint8Array>;
  readonly deadline: Deadline | null;
}

/** `complete` receives every rank's bytes, in rank order. */
export function createExchanges(
  worldSize: number,
  deadlines: Deadlines,
  complete: (parts: readonly Uint8Array[]) => void,
): Exchanges {
  const rounds = new Map<number, Round>();
  const sent = new Map<number, number>();
  const open = (number: number, expects: boolean): Round => {
    const parts = new Map<number, Uint8Array>();
    const what = `exchange ${number}, which the others have reached,`;
    const round = { parts, deadline: expects ? deadlines.expect(what, () => parts.keys()) : null };
    rounds.set(number, round);
    return round;
  };
  return {
    take(rank, body, expects) {
      const number = sent.get(rank) ?? 0;
      sent.set(rank, number + 1);
      const { parts, deadline } = rounds.get(number) ?? open(number, expects);
      parts.set(rank, body);
      if (parts.size < worldSize) return;
      rounds.delete(number);
      deadline?.settle();
      complete(Array.from({ length: worldSize }, (_, each) => parts.get(each) ?? new Uint8Array()));
    },
  };
}
