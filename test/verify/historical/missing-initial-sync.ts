/**
 * nvFuser #3913. The loop over the chunks of an overlapped matmul set a worker stream at the start of each iteration,
 * and did not let it wait for the stream that the program was called on. What the caller had queued before, such as the
 * kernel that makes the matmul's input, might not be done. The fix was a Synchronize at the start of the body; later it
 * moved to a loop of its own (#4217, #4402), which is the loop left out here.
 */
import { DeviceMesh, Fusion, type HostProgram, lower, matmul } from "@braid-compiler/braid";
import { type HistoricalBug, programOf } from "./bug.ts";

const devices = 2;

function pipeline(rank: number): HostProgram {
  const f = new Fusion();
  const a = f.input([2, devices, 2, 3]);
  const b = f.input([3, 2]);
  const c = matmul(a, b);
  f.output(c);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return lower(f, { rank });
}

function withoutSynchronize(host: HostProgram): HostProgram {
  const loop = host.body.findIndex((statement) => statement.kind === "ForLoop");
  return { ...host, body: host.body.toSpliced(loop, 1) };
}

export const missingInitialSync: HistoricalBug = {
  name: "nvFuser #3913: workers do not wait for the stream that the program was called on",
  wrong: programOf(devices, (rank) => withoutSynchronize(pipeline(rank))),
  right: programOf(devices, pipeline),
  finding: {
    code: "data-race",
    places: [
      { rank: 1, streamName: "caller", kind: "callerWrites", statement: "the caller writes the inputs", run: 1 },
      { rank: 1, streamName: "NCCL (0 1)", kind: "transfer", statement: "Communication 0 (type=Allgather", run: 1 },
    ],
  },
};
