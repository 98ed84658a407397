/**
 * nvFuser #3058. Matmul and reduce-scatter, overlapped by a hand-written host program: chunk j is multiplied and
 * scattered on stream j modulo the number of streams. The statement that lets one stream wait for another did not exist
 * yet; the pull request added it, and with it a synchronization that this program lacked: nothing joined the workers
 * with the caller's stream, which goes on to read the result.
 */
import { DeviceMesh, type HostProgram, HostProgramBuilder } from "@braid-compiler/braid";
import { type HistoricalBug, programOf } from "./bug.ts";

const devices = 2;
const chunks = 3;
const slots = 2;

function matmulReduceScatter(joined: boolean): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(devices);
  const a = h.input([chunks, devices, devices, 2, 3], { mesh, parallel: ["Serial", "DIDx"] });
  const b = h.input([devices, 1, 3, 2], { mesh, parallel: ["DIDx"] });
  const partial = h.tensor([slots, devices, devices, 2, 2, { reduced: 3 }], { mesh, parallel: ["Serial", "DIDx"] });
  const c = h.tensor([chunks, { reduced: devices }, devices, 2, 2], { mesh, parallel: ["Serial", "Serial", "DIDx"] });
  h.output(c);
  const caller = h.getCurrentStream();
  h.allocate(partial);
  h.allocate(c);
  const { mod, numberOfStreams } = h.scalars;
  h.forLoop(chunks, (j) => {
    h.setCurrentStream(h.stream(mod(j, numberOfStreams)));
    h.synchronize(caller);
  });
  h.forLoop(chunks, (j) => {
    const worker = h.stream(mod(j, numberOfStreams));
    h.setCurrentStream(worker);
    const product = h.select(partial, 0, mod(j, numberOfStreams));
    h.matmul(h.select(a, 0, j), b, { out: product });
    h.wait(h.communication("ReduceScatter", { input: product, output: h.select(c, 0, j) }));
    h.setCurrentStream(caller);
    if (joined) h.synchronize(worker);
  });
  return h.build();
}

export const missingFinalSync: HistoricalBug = {
  name: "nvFuser #3058: matmul and reduce-scatter on workers that nothing joins",
  wrong: programOf(devices, () => matmulReduceScatter(false), slots),
  right: programOf(devices, () => matmulReduceScatter(true), slots),
  finding: {
    // Each worker has its Wait, but the caller does not wait for the workers.
    code: "data-race",
    places: [
      { rank: 1, streamName: "NCCL (0 1)", kind: "transfer", statement: "Communication 0 (type=ReduceScatter", run: 1 },
      { rank: 1, streamName: "caller", kind: "callerReads", statement: "the caller reads the outputs", run: 1 },
    ],
  },
};
