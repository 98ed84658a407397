/** Traces of worker threads: a transfer ends when its data has moved, however late its streams get a worker. */
import { describe, expect, it } from "vitest";
import { link, type Program } from "@braid-compiler/braid";
import { openThreadedGroup } from "../../../src/backends/cpu/threads/threaded-group.ts";
import { openMachineGroup } from "../../../src/backends/cpu/machine-group.ts";
import { at } from "../../../src/support/invariant.ts";
import { type TraceEvent, eventTable, movingSince } from "../../../src/trace/event-table.ts";
import { buildLists } from "../../machine/list-builder.ts";

const ranks = 4;
const elements = 2 ** 16;

/** Every rank adds on three streams while a small Allgather and a ring of sends go on beside them. */
const program = link(
  buildLists(ranks, (list, rank) => {
    const own = list.input([elements]);
    const small = list.input([4]);
    for (const name of ["a", "b", "c"]) {
      const stream = list.stream(name);
      list.synchronize(stream, 0);
      for (let i = 0; i < 4; i++) list.binary(stream, "add", own, own, list.output([elements]));
      list.synchronize(0, stream);
    }
    const [nccl, ring] = [list.stream("nccl", "communicator"), list.stream("ring", "communicator")];
    const team = Array.from({ length: ranks }, (_, each) => each);
    for (let i = 0; i < 4; i++)
      list.collective(nccl, "Allgather", { team, input: small, output: list.output([ranks, 4]) });
    list.group(ring, [
      { type: "send", peer: (rank + 1) % ranks, view: small },
      { type: "recv", peer: (rank + ranks - 1) % ranks, view: list.output([4]) },
    ]);
    list.synchronize(0, nccl);
    list.synchronize(0, ring);
  }),
);

/** Events of the transfers, each with the launches that ran while its data moved. */
function underTransfers({ ranks: lists }: Program, trace: readonly TraceEvent[]): readonly (readonly TraceEvent[])[] {
  const kindOf = (event: TraceEvent): string => at(at(lists, event.rank).commands, event.command).kind;
  const moving = movingSince(program, eventTable(program, trace));
  const launches = trace.filter((event) => kindOf(event) === "launch");
  return trace
    .filter((event) => kindOf(event) === "transfer")
    .map((event) => launches.filter(({ start, end }) => start < event.end && end > moving(event)));
}

describe("a trace of one thread", () => {
  it.each([
    ["one worker", () => openThreadedGroup({ workers: 1 })],
    ["the machine", () => openMachineGroup({})],
  ])("shows no kernel while a transfer moves its data: %s", async (_, open) => {
    const group = open();
    const prepared = await group.prepare(program);
    const { trace, milliseconds } = await prepared.execute({ trace: true, timeout: 10 });
    const under = underTransfers(program, trace);
    expect(under).toHaveLength(5 * ranks);
    expect(under.flat()).toEqual([]);
    for (const { start, end } of trace) {
      expect(start).toBeGreaterThanOrEqual(0);
      expect(end).toBeGreaterThanOrEqual(start);
      expect(end).toBeLessThanOrEqual(milliseconds);
    }
    await group.close();
  });
});

it("every command has its times in every traced run, on two workers", async () => {
  const group = openThreadedGroup({ workers: 2, jitter: 8 });
  const prepared = await group.prepare(program);
  for (let run = 0; run < 20; run++) {
    const { trace } = await prepared.execute({ trace: run % 2 === 0, timeout: 10 });
    expect(trace).toHaveLength(run % 2 === 0 ? program.ranks.reduce((sum, rank) => sum + rank.commands.length, 0) : 0);
    for (const { start, end } of trace) expect(end).toBeGreaterThanOrEqual(start);
  }
  await group.close();
});
