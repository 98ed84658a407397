/** Rings over both idioms: grouped sends and receives of a library, and one-sided get and put with signals. */
import { describe, expect, it } from "vitest";
import type { CommandList } from "../../src/commands/command-list.ts";
import { link } from "../../src/commands/link/link.ts";
import type { Program } from "../../src/commands/program.ts";
import { partOf, type View } from "../../src/commands/view.ts";
import { createMachine, type MachineOptions } from "../../src/machine/machine.ts";
import { at } from "../../src/support/invariant.ts";
import { buildLists, type ListBuilder } from "./list-builder.ts";
import { createReferenceCompute } from "./reference-compute.ts";

const width = 2;

const modes: readonly MachineOptions[] = [
  {},
  { transfers: "eager" },
  { queues: "ranks" },
  { queues: "ranks", transfers: "eager" },
  ...[1, 2, 3, 4, 5, 6].map((seed): MachineOptions => ({ interleaving: { kind: "seed", seed } })),
];

/** An allgather over a ring of `world` ranks: step i gets the chunk of rank + i and sends the own one to rank - i. */
function ring(
  world: number,
  streams: number,
  exchange: (list: ListBuilder, stream: number, send: Peer, recv: Peer) => void,
): readonly CommandList[] {
  return buildLists(world, (list, rank) => {
    const own = list.input([width]);
    const all = list.output([world, width]);
    const workers = Array.from({ length: streams }, (_, i) => list.stream(`worker ${i}`));
    for (const worker of workers) list.synchronize(worker, 0);
    for (let i = 0; i < world; i++) {
      const worker = at(workers, i % streams);
      const source = (rank + i) % world;
      const part = partOf(all, source);
      if (i === 0) list.copy(worker, own, part);
      else exchange(list, worker, { rank: (rank - i + world) % world, view: own }, { rank: source, view: part });
    }
    for (const worker of workers) list.synchronize(0, worker);
  });
}

interface Peer {
  readonly rank: number;
  readonly view: View;
}

function grouped(list: ListBuilder, stream: number, send: Peer, recv: Peer): void {
  list.group(stream, [
    { type: "recv", peer: recv.rank, view: recv.view },
    { type: "send", peer: send.rank, view: send.view },
  ]);
}

/** The order of nvFuser's protocol: for get the send is posted first, for put the recv. */
function get(list: ListBuilder, stream: number, send: Peer, recv: Peer): void {
  const sending = list.pair("get", "send", send.rank, send.view);
  const receiving = list.pair("get", "recv", recv.rank, recv.view);
  list.signalPeer(stream, sending, "ready");
  list.waitPeer(stream, receiving, "ready");
  list.copyPeer(stream, receiving);
  list.signalPeer(stream, receiving, "done");
  list.waitPeer(stream, sending, "done");
}

function put(list: ListBuilder, stream: number, send: Peer, recv: Peer): void {
  const sending = list.pair("put", "send", send.rank, send.view);
  const receiving = list.pair("put", "recv", recv.rank, recv.view);
  list.signalPeer(stream, receiving, "ready");
  list.waitPeer(stream, sending, "ready");
  list.copyPeer(stream, sending);
  list.signalPeer(stream, sending, "done");
  list.waitPeer(stream, receiving, "done");
}

function expectGathered(program: Program, options: MachineOptions): void {
  const world = program.ranks.length;
  const compute = createReferenceCompute(program);
  const machine = createMachine(program, compute, options);
  for (let run = 1; run <= 3; run++) {
    const chunk = (rank: number): readonly number[] => [100 * run + rank, -rank];
    for (const { id, role, rank } of program.buffers) if (role === "input") compute.write(id, chunk(rank));
    machine.run();
    const gathered = Array.from({ length: world }, (_, rank) => chunk(rank)).flat();
    for (const { id, role } of program.buffers) if (role === "output") expect(compute.read(id)).toEqual(gathered);
  }
}

describe.each([1, 2, 3, 4, 8])("%d ranks", (world) => {
  describe.each([1, 2, 3])("%d streams", (streams) => {
    it("grouped", () => {
      const program = link(ring(world, streams, grouped));
      for (const options of modes) expectGathered(program, options);
    });
    it.each([
      ["get", get],
      ["put", put],
    ] as const)("%s", (_, exchange) => {
      const program = link(ring(world, streams, exchange));
      for (const options of modes) expectGathered(program, options);
    });
  });
});

it("a rank sends to itself within a group", () => {
  const program = link(
    buildLists(1, (list) => {
      const [from, to] = [list.input([width]), list.output([1, width])];
      list.group(0, [
        { type: "send", peer: 0, view: from },
        { type: "recv", peer: 0, view: partOf(to, 0) },
      ]);
    }),
  );
  for (const options of modes) expectGathered(program, options);
});

it("a group may exchange with two groups of another rank, one after the other", () => {
  const program = link(
    buildLists(2, (list, rank) => {
      const [own, all] = [list.input([width]), list.output([2, width])];
      list.copy(0, own, partOf(all, rank));
      if (rank === 0) {
        list.group(0, [{ type: "send", peer: 1, view: own }]);
        list.group(0, [{ type: "recv", peer: 1, view: partOf(all, 1) }]);
      } else {
        list.group(0, [
          { type: "recv", peer: 0, view: partOf(all, 0) },
          { type: "send", peer: 0, view: own },
        ]);
      }
    }),
  );
  expect(program.transfers).toHaveLength(1);
  for (const options of modes) expectGathered(program, options);
});
