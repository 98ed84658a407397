/**
 * A board on which workers offer parts of their work to idle workers. Every worker has one offer: the work, its
 * command, the number of parts, the next part, and the number of finished parts. The board is lock-free. A ticket
 * counts offers and taken parts in one word, so that taking a part of a replaced offer fails.
 */

const offerWords = 5;
const word = { ticket: 0, parts: 1, work: 2, command: 3, done: 4 } as const;

/** The low bits of a ticket: the next part. */
const partBits = 12;
const partMask = 2 ** partBits - 1;
export const mostParts = partMask;
const ticketMask = 2 ** 31 - 1;

export interface Offer {
  /** Its number among the works of the Program. */
  readonly work: number;
  /** The number of the command it belongs to. */
  readonly command: number;
}

export interface TakenPart extends Offer {
  readonly owner: number;
  readonly part: number;
}

export function boardWords(workers: number): number {
  return offerWords * workers;
}

/** Offers at most `mostParts` parts. The worker's previous offer must be done. */
export function offerParts(board: Int32Array, worker: number, { work, command }: Offer, parts: number): void {
  const base = offerWords * worker;
  const offers = Atomics.load(board, base + word.ticket) >>> partBits;
  // The order matters: with no parts, an old ticket cannot take a part of the new offer.
  Atomics.store(board, base + word.parts, 0);
  Atomics.store(board, base + word.work, work);
  Atomics.store(board, base + word.command, command);
  Atomics.store(board, base + word.done, 0);
  Atomics.store(board, base + word.ticket, ((offers + 1) << partBits) & ticketMask);
  Atomics.store(board, base + word.parts, parts);
}

/** Takes a part of the worker's offer; null if all are taken. */
export function takePartOf(board: Int32Array, owner: number): TakenPart | null {
  const base = offerWords * owner;
  for (;;) {
    const ticket = Atomics.load(board, base + word.ticket);
    const part = ticket & partMask;
    if (part >= Atomics.load(board, base + word.parts)) return null;
    const work = Atomics.load(board, base + word.work);
    const command = Atomics.load(board, base + word.command);
    if (Atomics.compareExchange(board, base + word.ticket, ticket, ticket + 1) === ticket)
      return { owner, work, command, part };
  }
}

/** Takes a part of any worker's offer. */
export function takePart(board: Int32Array): TakenPart | null {
  for (let owner = 0; owner * offerWords < board.length; owner++) {
    const taken = takePartOf(board, owner);
    if (taken !== null) return taken;
  }
  return null;
}

export function hasParts(board: Int32Array): boolean {
  for (let base = 0; base < board.length; base += offerWords) {
    if ((Atomics.load(board, base + word.ticket) & partMask) < Atomics.load(board, base + word.parts)) return true;
  }
  return false;
}

export function partIsDone(board: Int32Array, { owner }: TakenPart): void {
  Atomics.add(board, offerWords * owner + word.done, 1);
}

export function allPartsDone(board: Int32Array, owner: number, parts: number): boolean {
  return Atomics.load(board, offerWords * owner + word.done) === parts;
}
