/**
 * A Program in the verifier's form, with dense numbers in typed arrays. A run has the nodes of all ranks. Per rank
 * these are the caller's action before the list (it overwrites every input), the commands in list order, and the
 * caller's action after it (it reads every output). The caller's nodes are on stream 0. A chain is one stream of one
 * rank: its nodes happen in order, also across runs.
 */
import type { Command } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { createParticipants, type Participants } from "./slots.ts";

/** The effect of a node on the order of others; `work` only reads and writes. */
export const nodeKinds = {
  work: 0,
  record: 1,
  wait: 2,
  signal: 3,
  take: 4,
  transfer: 5,
  alloc: 6,
  free: 7,
  callerWrites: 8,
  callerReads: 9,
} as const;

export const commandKinds: { readonly [K in Command["kind"]]: number } = {
  launch: nodeKinds.work,
  copy: nodeKinds.work,
  transfer: nodeKinds.transfer,
  recordEvent: nodeKinds.record,
  waitEvent: nodeKinds.wait,
  signal: nodeKinds.signal,
  waitSignal: nodeKinds.take,
  alloc: nodeKinds.alloc,
  free: nodeKinds.free,
};

export interface NodeChain {
  readonly rank: number;
  readonly stream: number;
}

/** The line of a rank's dump on which a statement begins, by its path; null if unknown. */
export type LineOf = (rank: number, path: readonly number[]) => number | null;

export interface Graph {
  readonly program: Program;
  /** For findings. */
  readonly lineOf: LineOf;
  /** Of one run. */
  readonly nodeCount: number;
  /** The caller's first node of each rank, and one more entry at the end. */
  readonly nodeBase: Int32Array;
  readonly rankOf: Int32Array;
  readonly kind: Uint8Array;
  /** The event (counted over all ranks), slot, participant of a transfer, or buffer; otherwise -1. */
  readonly argument: Int32Array;
  readonly chainOf: Int32Array;
  /** The position in its chain, from 1: the number of completed nodes of the chain after it completes. */
  readonly position: Int32Array;
  readonly chains: readonly NodeChain[];
  /** chainNodes[chainStart[c] .. chainStart[c + 1]) are the nodes of chain c. */
  readonly chainStart: Int32Array;
  readonly chainNodes: Int32Array;
  readonly eventBase: Int32Array;
  /** The number of waits for each event. */
  readonly eventWaits: Int32Array;
  readonly participants: Participants;
}

export function createGraph(program: Program, lineOf: LineOf = () => null): Graph {
  const { ranks } = program;
  const nodeBase = new Int32Array(ranks.length + 1);
  for (const [rank, { commands }] of ranks.entries()) nodeBase[rank + 1] = at(nodeBase, rank) + commands.length + 2;
  const nodeCount = at(nodeBase, ranks.length);
  const eventBase = eventBases(program);
  const participants = createParticipants(program, nodeBase);
  const kind = new Uint8Array(nodeCount);
  const argument = new Int32Array(nodeCount).fill(-1);
  const rankOf = new Int32Array(nodeCount);
  const chainOf = new Int32Array(nodeCount);
  const eventWaits = new Int32Array(at(eventBase, ranks.length));
  const chains: NodeChain[] = [];
  for (const [rank, { commands }] of ranks.entries()) {
    const base = at(nodeBase, rank);
    const byStream = new Map<number, number>();
    const chainOn = (stream: number): number => {
      const known = byStream.get(stream);
      if (known !== undefined) return known;
      byStream.set(stream, chains.length);
      return chains.push({ rank, stream }) - 1;
    };
    rankOf.fill(rank, base, at(nodeBase, rank + 1));
    const caller = chainOn(0);
    const last = base + commands.length + 1;
    kind[base] = nodeKinds.callerWrites;
    kind[last] = nodeKinds.callerReads;
    chainOf[base] = caller;
    chainOf[last] = caller;
    for (const [index, command] of commands.entries()) {
      const node = base + 1 + index;
      kind[node] = commandKinds[command.kind];
      chainOf[node] = chainOn(command.stream);
      switch (command.kind) {
        case "recordEvent":
          argument[node] = at(eventBase, rank) + command.event;
          break;
        case "waitEvent": {
          const event = at(eventBase, rank) + command.event;
          argument[node] = event;
          eventWaits[event] = (eventWaits[event] ?? 0) + 1;
          break;
        }
        case "signal":
        case "waitSignal":
          argument[node] = command.slot;
          break;
        case "transfer":
          argument[node] = participants.of.get(node) ?? -1;
          break;
        case "alloc":
        case "free":
          argument[node] = command.buffer;
          break;
        case "launch":
        case "copy":
          break;
      }
    }
  }
  return {
    program,
    lineOf,
    nodeCount,
    nodeBase,
    rankOf,
    kind,
    argument,
    chainOf,
    chains,
    eventBase,
    eventWaits,
    participants,
    ...alongChains(chainOf, chains.length),
  };
}

/** Positions within the chains, and the chains' nodes. Nodes are numbered in list order. */
function alongChains(chainOf: Int32Array, chainCount: number): Pick<Graph, "position" | "chainStart" | "chainNodes"> {
  const chainStart = new Int32Array(chainCount + 1);
  const position = new Int32Array(chainOf.length);
  const lengths = new Int32Array(chainCount);
  for (const [node, chain] of chainOf.entries()) {
    const length = at(lengths, chain) + 1;
    lengths[chain] = length;
    position[node] = length;
  }
  for (const [chain, length] of lengths.entries()) chainStart[chain + 1] = at(chainStart, chain) + length;
  const chainNodes = new Int32Array(chainOf.length);
  for (const [node, chain] of chainOf.entries()) chainNodes[at(chainStart, chain) + at(position, node) - 1] = node;
  return { position, chainStart, chainNodes };
}

/** The number over all ranks of each rank's event 0. Lists may number events beyond their count. */
function eventBases({ ranks }: Program): Int32Array {
  const bases = new Int32Array(ranks.length + 1);
  for (const [rank, { eventCount, commands }] of ranks.entries()) {
    let count = eventCount;
    for (const command of commands) {
      if (command.kind === "recordEvent" || command.kind === "waitEvent") count = Math.max(count, command.event + 1);
    }
    bases[rank + 1] = at(bases, rank) + count;
  }
  return bases;
}

/** The command's position in its rank's list; -1 and the length of the list are the caller's nodes. */
export function commandIndex({ nodeBase, rankOf }: Graph, node: number): number {
  return node - at(nodeBase, at(rankOf, node)) - 1;
}

export function nodeOf({ nodeBase }: Pick<Graph, "nodeBase">, rank: number, command: number): number {
  return at(nodeBase, rank) + 1 + command;
}

export function chainLength({ chainStart }: Graph, chain: number): number {
  return at(chainStart, chain + 1) - at(chainStart, chain);
}
