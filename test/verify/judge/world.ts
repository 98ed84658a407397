/**
 * What the judge runs: the commands of consecutive runs of a Program and what its caller does between them, as nodes in
 * queues. Nothing here orders two queues: that comes out of running them.
 *
 * The caller of each rank, on stream 0, reads every output and writes every input between runs, and does not wait for
 * other streams.
 */
import { dependsOn } from "../../../src/commands/collectives.ts";
import type { Program } from "../../../src/commands/program.ts";
import { accesses, canonicalRegion, type Region } from "../../../src/commands/region.ts";
import { at } from "../../../src/support/invariant.ts";

export type Work =
  | { readonly kind: "memory" }
  | { readonly kind: "record" | "wait"; readonly event: number }
  /** `turn`: how many of its kind come before it at the slot, in the order of the lists and runs. */
  | { readonly kind: "signal" | "take"; readonly slot: number; readonly turn: number }
  /** A participant of a transfer: the nodes that must have started before it completes, in either mode. */
  | { readonly kind: "transfer"; readonly eager: readonly number[]; readonly synchronous: readonly number[] };

export interface Node {
  readonly rank: number;
  readonly run: number;
  readonly stream: number;
  /** Position in the rank's list; null for the caller. */
  readonly command: number | null;
  readonly work: Work;
  readonly reads: readonly Region[];
  readonly writes: readonly Region[];
}

export interface World {
  readonly program: Program;
  readonly nodes: readonly Node[];
  /** Nodes in the order in which each queue runs them. */
  readonly queues: readonly (readonly number[])[];
  readonly slotCount: number;
  readonly eventCount: number;
}

/** `oneQueue`: every rank runs its list as one queue, in list order. */
export function createWorld(program: Program, runs: number, oneQueue = false): World {
  const nodes: Node[] = [];
  const queues: number[][] = [];
  const eventBase: number[] = [];
  let eventsPerRun = 0;
  for (const { eventCount } of program.ranks) {
    eventBase.push(eventsPerRun);
    eventsPerRun += eventCount;
  }
  // nodeOf[run][rank][command], known before members of transfers name each other.
  const nodeOf: number[][][] = Array.from({ length: runs }, () => program.ranks.map(() => []));
  const turns = { signal: new Int32Array(program.slots.length), take: new Int32Array(program.slots.length) };
  for (const { rank, streams, commands } of program.ranks) {
    const own = Array.from({ length: oneQueue ? 1 : streams.length }, (): number[] => []);
    const add = (node: Node): number => {
      own[oneQueue ? 0 : node.stream]?.push(nodes.length);
      return nodes.push(node) - 1;
    };
    for (let run = 0; run <= runs; run++) {
      add(callerNode(program, rank, run, runs));
      if (run === runs) break;
      commands.forEach((command, index) => {
        const { reads, writes } = accesses(program, rank, index);
        const node = { rank, run, stream: command.stream, command: index, reads, writes };
        const work = ((): Work => {
          switch (command.kind) {
            case "recordEvent":
            case "waitEvent":
              return {
                kind: command.kind === "recordEvent" ? "record" : "wait",
                event: run * eventsPerRun + (eventBase[rank] ?? 0) + command.event,
              };
            case "signal":
            case "waitSignal": {
              const kind = command.kind === "signal" ? "signal" : "take";
              const turn = at(turns[kind], command.slot);
              turns[kind][command.slot] = turn + 1;
              return { kind, slot: command.slot, turn };
            }
            default:
              return { kind: "memory" };
          }
        })();
        at(at(nodeOf, run), rank)[index] = add({ ...node, work });
      });
    }
    queues.push(...own);
  }
  for (let run = 0; run < runs; run++) linkMembers(program, nodes, nodeOf[run] ?? []);
  return { program, nodes, queues, slotCount: program.slots.length, eventCount: runs * eventsPerRun };
}

function callerNode(program: Program, rank: number, run: number, runs: number): Node {
  const own = program.buffers.filter((buffer) => buffer.rank === rank);
  const regions = (role: "input" | "output"): Region[] =>
    own.filter((buffer) => buffer.role === role).map(({ id, bytes }) => canonicalRegion(id, 0, [], bytes));
  return {
    rank,
    run,
    stream: 0,
    command: null,
    work: { kind: "memory" },
    reads: run === 0 ? [] : regions("output"),
    writes: run === runs ? [] : regions("input"),
  };
}

function linkMembers(program: Program, nodes: Node[], nodeOf: readonly (readonly number[])[]): void {
  for (const transfer of program.transfers) {
    const memberNodes = transfer.participants.map(({ rank, command }) => nodeOf[rank]?.[command] ?? -1);
    transfer.participants.forEach(({ operation }, position) => {
      const eager = new Set<number>();
      const synchronous = new Set<number>();
      if (operation.kind === "collective") {
        const { type, root } = operation;
        for (const other of dependsOn(type, memberNodes.length, root, position)) eager.add(memberNodes[other] ?? -1);
        for (const other of memberNodes) synchronous.add(other);
      } else if (transfer.kind === "group") {
        for (const { from, to } of transfer.edges) {
          if (to === position) eager.add(memberNodes[from] ?? -1);
          if (to === position) synchronous.add(memberNodes[from] ?? -1);
          if (from === position) synchronous.add(memberNodes[to] ?? -1);
        }
      }
      const own = memberNodes[position] ?? -1;
      nodes[own] = {
        ...at(nodes, own),
        work: { kind: "transfer", eager: [...eager], synchronous: [...synchronous] },
      };
    });
  }
}
