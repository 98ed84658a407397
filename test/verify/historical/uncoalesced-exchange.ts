/**
 * nvFuser's first pipeline of sends and receives (#4515): iteration i exchanges with peer i, so that every rank takes
 * its peers in the same order. The recv and the send of an iteration are one NCCL group. Apart, each is a kernel that
 * ends when the other side has come, and both ranks of a pair wait in their recv; issued in the other order, both wait
 * in their send, or pass only where it is buffered.
 */
import { DeviceMesh, type HostProgram, HostProgramBuilder, link, type Program } from "@braid-compiler/braid";
import { buildLists } from "../../machine/list-builder.ts";
import { type HistoricalBug, programOf } from "./bug.ts";

const devices = 3;

function linearAllgather(coalesced: boolean): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(devices);
  const x = h.input([devices, 4], { mesh, parallel: ["DIDx"] });
  const y = h.tensor([devices, 4], { mesh });
  h.output(y);
  h.allocate(y);
  const { eq, rank } = h.scalars;
  h.forLoop(devices, (i) => {
    const chunk = h.select(y, 0, i);
    h.ifThenElse(
      eq(i, rank),
      () => {
        h.set(h.select(x, 0, 0), { out: chunk });
      },
      () => {
        if (coalesced) h.startCoalescing();
        const recv = h.recv(chunk, { peer: i });
        const send = h.send(x, { peer: i });
        if (coalesced) h.wait(h.endCoalescing());
        else for (const half of [recv, send]) h.wait(half);
      },
    );
  });
  return h.build();
}

export const uncoalescedExchange: HistoricalBug = {
  name: "nvFuser #4515's linear exchange without its group",
  wrong: programOf(devices, () => linearAllgather(false)),
  right: programOf(devices, () => linearAllgather(true)),
  finding: {
    code: "deadlock",
    places: [
      { rank: 0, streamName: "NCCL world", kind: "transfer", statement: "P2PCommunication 0 (type=recv", run: 1 },
      { rank: 1, streamName: "NCCL world", kind: "transfer", statement: "P2PCommunication 0 (type=recv", run: 1 },
    ],
  },
};

/** The halves are on separate streams: they complete only if the device runs both at once. */
function exchangeOnLanes(coalesced: boolean): Program {
  return link(
    buildLists(2, (list, rank) => {
      const [x, y] = [list.input([4]), list.output([4])];
      const lanes = coalesced ? [list.stream("exchange")] : [list.stream("recv"), list.stream("send")];
      const [first = 0, last = first] = lanes;
      for (const lane of lanes) list.synchronize(lane, 0);
      const recv = { type: "recv", peer: 1 - rank, view: y } as const;
      const send = { type: "send", peer: 1 - rank, view: x } as const;
      if (coalesced) list.statement("exchange").group(first, [recv, send]);
      else {
        list.statement("recv").group(first, [recv]);
        list.statement("send").group(last, [send]);
      }
      for (const lane of lanes) list.statement("join").synchronize(0, lane);
    }),
  );
}

export const exchangeOnTwoStreams: HistoricalBug = {
  name: "the same, recv and send on streams of their own",
  wrong: exchangeOnLanes(false),
  right: exchangeOnLanes(true),
  finding: {
    code: "needs-concurrency",
    places: [
      { rank: 0, streamName: "recv", kind: "transfer", statement: "recv", run: 1 },
      { rank: 1, streamName: "recv", kind: "transfer", statement: "recv", run: 1 },
    ],
  },
};
