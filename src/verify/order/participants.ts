/**
 * The participants of all transfers, numbered. For progress, a participant waits for its `peers`: all ranks of a
 * collective, or its direct peers in a group. For order, its completion follows only the start of its `sources`, the
 * participants whose data its result needs, because a library may let it continue before the others arrive
 * (docs/commands.md, "Transfers").
 */
import { dependsOn, dependsOnAll } from "../../commands/collectives.ts";
import type { LinkedTransfer, Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";

export interface Participants {
  readonly count: number;
  /** By node. */
  readonly of: ReadonlyMap<number, number>;
  readonly node: Int32Array;
  readonly transfer: Int32Array;
  /** Per transfer, the number of its first participant, and one more entry at the end. */
  readonly first: Int32Array;
  /**
   * By participant: numbers of participants. Null stands for all participants of the transfer, and then all of them
   * have null.
   */
  readonly peers: readonly (readonly number[] | null)[];
  readonly sources: readonly (readonly number[] | null)[];
}

/** `nodeBase` gives the node before each rank's command 0. */
export function createParticipants({ transfers }: Program, nodeBase: Int32Array): Participants {
  const first = new Int32Array(transfers.length + 1);
  for (const [id, { participants }] of transfers.entries()) first[id + 1] = at(first, id) + participants.length;
  const count = at(first, transfers.length);
  const node = new Int32Array(count);
  const transferOf = new Int32Array(count);
  const of = new Map<number, number>();
  const peers: (readonly number[] | null)[] = [];
  const sources: (readonly number[] | null)[] = [];
  for (const [id, transfer] of transfers.entries()) {
    const base = at(first, id);
    for (const [position, { rank, command }] of transfer.participants.entries()) {
      node[base + position] = at(nodeBase, rank) + 1 + command;
      transferOf[base + position] = id;
      of.set(at(node, base + position), base + position);
    }
    if (transfer.kind === "collective") collectiveNeeds(transfer, base, peers, sources);
    else groupNeeds(transfer, base, peers, sources);
  }
  return { count, of, node, transfer: transferOf, first, peers, sources };
}

type Needs = (readonly number[] | null)[];

function collectiveNeeds(
  { participants }: Extract<LinkedTransfer, { kind: "collective" }>,
  base: number,
  peers: Needs,
  sources: Needs,
): void {
  for (const [position, { operation }] of participants.entries()) {
    peers.push(null);
    if (operation.kind !== "collective") sources.push([]);
    else if (dependsOnAll(operation.type)) sources.push(null);
    else {
      const needed = dependsOn(operation.type, participants.length, operation.root, position);
      sources.push(needed.map((other) => base + other));
    }
  }
}

function groupNeeds(
  { participants, edges }: Extract<LinkedTransfer, { kind: "group" }>,
  base: number,
  peers: Needs,
  sources: Needs,
): void {
  const peersOf = participants.map(() => new Set<number>());
  const needs = participants.map(() => new Set<number>());
  for (const { from, to } of edges) {
    at(peersOf, from).add(base + to);
    at(peersOf, to).add(base + from);
    at(needs, to).add(base + from);
  }
  for (const position of participants.keys()) {
    peers.push([...at(peersOf, position)]);
    sources.push([...at(needs, position)]);
  }
}
