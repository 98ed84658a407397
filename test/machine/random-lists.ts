/**
 * Random command lists without races, with what they compute. Every rank performs the same random operations on its own
 * buffers, each on a random stream: sums, copies, allreduces and exchanges with the next rank. An operation is ordered
 * after all earlier ones that touch its buffers, by events of the same rank, and not otherwise.
 */
import type { EventId } from "../../src/commands/command.ts";
import type { CommandList } from "../../src/commands/command-list.ts";
import type { View } from "../../src/commands/view.ts";
import { at } from "../../src/support/invariant.ts";
import type { Random } from "../../src/support/random.ts";
import { buildLists, type ListBuilder } from "./list-builder.ts";

interface Operation {
  readonly kind: "add" | "copy" | "allreduce" | "exchange" | "get";
  readonly stream: number;
  readonly reads: readonly number[];
  readonly write: number;
}

export interface RandomLists {
  readonly lists: readonly CommandList[];
  /** The contents of every rank's output buffers after a run, given those of its inputs: [rank][buffer]. */
  readonly evaluate: (inputs: readonly (readonly number[])[]) => readonly (readonly number[])[];
  readonly inputCount: number;
}

const inputCount = 2;
const outputCount = 4;
const streamCount = 3;
/** The transfers of a communicator run on its own stream, so that all ranks post them in list order. */
const copies = streamCount + 1;
const getLane = streamCount + 2;

export function randomLists(random: Random, world: number, operationCount: number): RandomLists {
  const kinds = ["add", "copy", "allreduce", "exchange", "get"] as const;
  const operations = Array.from({ length: operationCount }, (): Operation => {
    const kind = at(kinds, random.integer(kinds.length));
    const stream =
      kind === "allreduce" || kind === "exchange" ? copies : kind === "get" ? getLane : random.integer(streamCount + 1);
    const write = inputCount + random.integer(outputCount);
    const sources = Array.from({ length: kind === "add" ? 2 : 1 }, () => random.integer(inputCount + outputCount));
    // Only an allreduce may work in place; the others get another source.
    const reads = sources.map((source) => (source === write && kind !== "allreduce" ? 0 : source));
    return { kind, stream, reads, write };
  });
  const lists = buildLists(world, (list, rank) => record(list, rank, world, operations));
  return { lists, inputCount, evaluate: (inputs) => evaluate(inputs, operations) };
}

function record(list: ListBuilder, rank: number, world: number, operations: readonly Operation[]): void {
  const buffers = [
    ...Array.from({ length: inputCount }, () => list.input([2], "symmetric")),
    ...Array.from({ length: outputCount }, () => list.output([2], "symmetric")),
  ];
  for (let i = 0; i < streamCount; i++) list.stream(`worker ${i}`);
  list.stream("nccl", "communicator");
  list.stream("copies", "copy");
  const uses = buffers.map((): { stream: number; event: EventId; writes: boolean }[] => []);
  const touch = (stream: number, buffer: number, writes: boolean): void => {
    for (const use of at(uses, buffer))
      if (use.stream !== stream && (writes || use.writes)) list.wait(stream, use.event);
  };
  // The outputs begin as copies of input 0, so that no command reads the caller's leftovers.
  const all = [
    ...Array.from({ length: outputCount }, (_, i): Operation => ({
      kind: "copy",
      stream: 0,
      reads: [0],
      write: inputCount + i,
    })),
    ...operations,
  ];
  for (const { kind, stream, reads, write } of all) {
    for (const read of reads) touch(stream, read, false);
    touch(stream, write, true);
    const sources = reads.map((buffer) => at(buffers, buffer));
    perform(list, rank, world, { kind, stream, sources, target: at(buffers, write) });
    const event = list.record(stream);
    for (const read of reads) at(uses, read).push({ stream, event, writes: false });
    // Whatever comes after this write is after all that came before it.
    uses[write] = [{ stream, event, writes: true }];
  }
  for (let stream = 1; stream <= getLane; stream++) list.synchronize(0, stream);
}

interface Step {
  readonly kind: Operation["kind"];
  readonly stream: number;
  readonly sources: readonly View[];
  readonly target: View;
}

function perform(list: ListBuilder, rank: number, world: number, { kind, stream, sources, target }: Step): void {
  const source = at(sources, 0);
  const next = (rank + 1) % world;
  const previous = (rank + world - 1) % world;
  switch (kind) {
    case "add":
      list.binary(stream, "add", source, at(sources, 1), target);
      return;
    case "copy":
      list.copy(stream, source, target);
      return;
    case "allreduce":
      list.collective(stream, "Allreduce", {
        team: [...Array(world).keys()],
        reduceOp: "sum",
        input: source,
        output: target,
      });
      return;
    case "exchange":
      list.group(stream, [
        { type: "send", peer: next, view: source },
        { type: "recv", peer: previous, view: target },
      ]);
      return;
    case "get": {
      const sending = list.pair("get", "send", next, source);
      const receiving = list.pair("get", "recv", previous, target);
      list.signalPeer(stream, sending, "ready");
      list.waitPeer(stream, receiving, "ready");
      list.copyPeer(stream, receiving);
      list.signalPeer(stream, receiving, "done");
      list.waitPeer(stream, sending, "done");
      return;
    }
  }
}

/** The same operations in list order, all ranks in step. */
function evaluate(
  inputs: readonly (readonly number[])[],
  operations: readonly Operation[],
): readonly (readonly number[])[] {
  const world = inputs.length / inputCount;
  const state = Array.from({ length: world }, (_, rank) => {
    const own = inputs.slice(rank * inputCount, (rank + 1) * inputCount);
    return [...own, ...Array.from({ length: outputCount }, () => at(own, 0))];
  });
  const sum = (a: readonly number[], b: readonly number[]): readonly number[] =>
    a.map((x, i) => Math.fround(x + at(b, i)));
  for (const { kind, reads, write } of operations) {
    const first = at(reads, 0);
    const sources = state.map((buffers) => at(buffers, first));
    const results = state.map((buffers, rank) => {
      switch (kind) {
        case "add":
          return sum(at(buffers, first), at(buffers, at(reads, 1)));
        case "copy":
          return at(sources, rank);
        case "allreduce":
          return sources.reduce(sum);
        case "exchange":
        case "get":
          return at(sources, (rank + world - 1) % world);
      }
    });
    for (const [rank, buffers] of state.entries()) buffers[write] = at(results, rank);
  }
  return state.flatMap((buffers) => buffers.slice(inputCount));
}
