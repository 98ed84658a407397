/**
 * One-sided exchanges in nvFuser's CUDA idiom. Under get a recv waits on its stream for the sender's signal, and a send
 * gives that signal: ranks that post the recv before the send on one stream wait for each other for ever, so that
 * lowering issues send, recv for get and recv, send for put.
 */
import { DeviceMesh, type HostProgram, HostProgramBuilder } from "@braid-compiler/braid";
import { type HistoricalBug, programOf } from "./bug.ts";

const devices = 2;

function exchange(first: "send" | "recv"): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(devices);
  const x = h.input([4], { mesh });
  const y = h.tensor([4], { mesh });
  h.output(y);
  h.allocate(y);
  const { rank, sub } = h.scalars;
  const peer = sub(1, rank);
  const halves = h.shareMemHandles({ type: "send", buffer: x, peer }, { type: "recv", buffer: y, peer });
  for (const half of first === "send" ? halves : halves.toReversed()) h.post(half);
  for (const half of halves) h.wait(half);
  return h.build();
}

export const recvBeforeSend: HistoricalBug = {
  name: "CUDA idiom: recv before send with get on one stream",
  wrong: programOf(devices, () => exchange("recv")),
  right: programOf(devices, () => exchange("send")),
  finding: {
    code: "deadlock",
    places: [
      { rank: 0, streamName: "caller", kind: "waitSignal", statement: "P2PCommunication 1 (type=recv", run: 1 },
      { rank: 1, streamName: "caller", kind: "waitSignal", statement: "P2PCommunication 1 (type=recv", run: 1 },
    ],
  },
};
