/**
 * nvFuser's test_multidevice_host_ir_overlap.cpp as hand-built programs: matmul and communication in chunks on alternating streams. Each has the
 * matmul whose result it computes from the same inputs.
 */
import { DeviceMesh, Fusion, HostProgramBuilder, type HostProgram, matmul, sum, type TensorView } from "braid";

/** The sizes of the original: M, K, N, and S chunks. */
const sizes = { M: 64, K: 32, N: 16, S: 8 };
const workers = 3;

export interface OverlapProgram {
  readonly name: string;
  readonly devices: readonly number[];
  readonly build: (devices: number, rank: number) => HostProgram;
  readonly reference: (devices: number) => Fusion;
}

type Index = Parameters<HostProgramBuilder["scalars"]["add"]>[0];

/** Every worker waits for the caller before the loop, and the caller for every worker after it. */
function onWorkers(h: HostProgramBuilder, count: number, steps: Index, body: (step: Index) => void): void {
  const caller = h.getCurrentStream();
  const all = Array.from({ length: count }, (_, i) => h.stream(i));
  for (const worker of all) {
    h.setCurrentStream(worker);
    h.synchronize(caller);
  }
  h.forLoop(steps, (step) => {
    h.setCurrentStream(h.stream(h.scalars.mod(step, count)));
    body(step);
  });
  h.setCurrentStream(caller);
  for (const worker of all) h.synchronize(worker);
}

/** `K` is sharded: every device multiplies its part, and the sums are scattered over the rows of each chunk. */
function reduceScatterInputs(h: HostProgramBuilder, devices: number): { a: TensorView; b: TensorView; c: TensorView } {
  const mesh = DeviceMesh.range(devices);
  const { M, K, N, S } = sizes;
  const rows = M / (S * devices);
  const a = h.input([S, devices, devices, rows, K / devices], { mesh, parallel: ["Serial", "DIDx"] });
  const b = h.input([devices, 1, K / devices, N], { mesh, parallel: ["DIDx"] });
  const c = h.tensor([S, { reduced: devices }, devices, rows, N], { mesh, parallel: ["Serial", "Serial", "DIDx"] });
  h.output(c);
  return { a, b, c };
}

function reduceScatterReference(devices: number): Fusion {
  const f = new Fusion();
  const { M, K, N, S } = sizes;
  const a = f.input([S, devices, devices, M / (S * devices), K / devices]);
  const b = f.input([devices, 1, K / devices, N]);
  f.output(sum(matmul(a, b), [1]));
  return f;
}

/** Item 2: a ReduceScatter per chunk, its partial sums in as many buffers as there are streams. */
function reduceScatterPipelining(devices: number): HostProgram {
  const h = new HostProgramBuilder();
  const { a, b, c } = reduceScatterInputs(h, devices);
  const { M, K, N, S } = sizes;
  const rows = M / (S * devices);
  const mesh = DeviceMesh.range(devices);
  const partials = h.allocate(
    h.tensor([workers, devices, devices, rows, N, { reduced: K / devices }], { mesh, parallel: ["Serial", "DIDx"] }),
  );
  h.allocate(c);
  onWorkers(h, workers, S, (step) => {
    const partial = h.select(partials, 0, h.scalars.mod(step, workers));
    h.matmul(h.select(a, 0, step), b, { out: partial });
    const chunk = h.select(c, 0, step);
    h.wait(h.communication("ReduceScatter", { input: partial, output: chunk }));
  });
  return h.build();
}

/** Item 4: every partial sum goes straight to the device that keeps it; the sums are made when all have come. */
function ringReduceScatterPipelining(devices: number): HostProgram {
  const h = new HostProgramBuilder();
  const { a, b, c } = reduceScatterInputs(h, devices);
  const { M, K, N, S } = sizes;
  const { add, mod, rank, sub } = h.scalars;
  const rows = M / (S * devices);
  const mesh = DeviceMesh.range(devices);
  const sharded = { mesh, parallel: ["Serial", "Serial", "DIDx"] } as const;
  const sent = h.allocate(h.tensor([S, devices, devices, rows, N, { reduced: K / devices }], sharded));
  const received = h.allocate(h.tensor([S, devices, devices, rows, N], sharded));
  h.allocate(c);
  const weight = h.tensor([devices, K / devices, N], { mesh, parallel: ["DIDx"] });
  h.squeeze(b, [1], { out: h.allocate(weight) });
  onWorkers(h, workers, S, (chunk) => {
    h.forLoop(devices, (step) => {
      const to = mod(add(add(rank, step), 1), devices);
      const from = mod(sub(add(rank, devices), add(step, 1)), devices);
      const mine = h.select(h.select(sent, 0, chunk), 0, to);
      const own = h.select(h.select(a, 0, chunk), 1, to);
      h.matmul(own, weight, { out: mine });
      const theirs = h.select(h.select(received, 0, chunk), 0, from);
      h.ifThenElse(
        h.scalars.eq(to, rank),
        () => h.set(mine, { out: theirs }),
        () => {
          h.startCoalescing();
          h.send(mine, { peer: to });
          h.recv(theirs, { peer: from });
          h.wait(h.endCoalescing());
        },
      );
    });
    h.sum(h.select(received, 0, chunk), [0], { out: h.select(c, 0, chunk) });
  });
  return h.build();
}

function allgatherInputs(
  h: HostProgramBuilder,
  devices: number,
): { readonly a: TensorView; readonly b: TensorView; readonly c: TensorView; readonly gathered: TensorView } {
  const mesh = DeviceMesh.range(devices);
  const { M, K, N, S } = sizes;
  const rows = M / (S * devices);
  const a = h.input([S, devices, rows, K], { mesh, parallel: ["Serial", "DIDx"] });
  const b = h.input([K, N], { mesh });
  const c = h.tensor([S, devices, rows, N, { reduced: K }], { mesh });
  const gathered = h.tensor([S, devices, rows, K], { mesh });
  h.output(c);
  h.allocate(gathered);
  h.allocate(c);
  return { a, b, c, gathered };
}

function allgatherReference(devices: number): Fusion {
  const f = new Fusion();
  const { M, K, N, S } = sizes;
  f.output(matmul(f.input([S, devices, M / (S * devices), K]), f.input([K, N])));
  return f;
}

/** Item 6: an Allgather per chunk, then its product. */
function allgatherPipelining(devices: number): HostProgram {
  const h = new HostProgramBuilder();
  const { a, b, c, gathered } = allgatherInputs(h, devices);
  onWorkers(h, workers, sizes.S, (step) => {
    const chunk = h.select(gathered, 0, step);
    h.wait(h.communication("Allgather", { input: h.select(a, 0, step), output: chunk }));
    h.matmul(chunk, b, { out: h.select(c, 0, step) });
  });
  return h.build();
}

/** What the ring programs share: own rows first, then what the neighbours had, one device further each step. */
function ring(
  devices: number,
  exchange: (h: HostProgramBuilder, from: TensorView, to: TensorView, step: Index) => () => void,
): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(devices);
  const { M, K, N } = sizes;
  const { add, mod, rank, sub } = h.scalars;
  const a = h.input([devices, M / devices, K], { mesh, parallel: ["DIDx"] });
  const b = h.input([K, N], { mesh });
  const c = h.allocate(h.tensor([devices, M / devices, N, { reduced: K }], { mesh }));
  h.output(c);
  const gathered = h.allocate(h.tensor([devices, M / devices, K], { mesh }));
  const held = (steps: Index): Index => mod(sub(add(rank, devices), steps), devices);
  h.set(h.select(a, 0, 0), { out: h.select(gathered, 0, rank) });
  const multiply = (steps: Index): void => {
    h.matmul(h.select(gathered, 0, held(steps)), b, { out: h.select(c, 0, held(steps)) });
  };
  if (devices > 1) {
    h.forLoop(devices - 1, (step) => {
      const from = h.select(gathered, 0, held(step));
      const wait = exchange(h, from, h.select(gathered, 0, held(add(step, 1))), step);
      multiply(step);
      wait();
    });
  }
  multiply(devices - 1);
  return h.build();
}

function neighbours(h: HostProgramBuilder, devices: number): { readonly next: Index; readonly previous: Index } {
  const { add, mod, rank } = h.scalars;
  return { next: mod(add(rank, 1), devices), previous: mod(add(rank, devices - 1), devices) };
}

/** Item 8: handles are shared in every step, and the receiver copies. */
function ringAllgatherCudaIpc(devices: number): HostProgram {
  return ring(devices, (h, from, to) => {
    const { next, previous } = neighbours(h, devices);
    const [recv, send] = h.shareMemHandles(
      { type: "recv", buffer: to, peer: previous },
      { type: "send", buffer: from, peer: next },
    );
    if (recv === undefined || send === undefined) throw new Error("two handles");
    h.post(send);
    h.post(recv);
    return () => {
      h.wait(recv);
      h.wait(send);
    };
  });
}

/** Item 9: sends and receives in groups. */
function ringAllgather(devices: number): HostProgram {
  return ring(devices, (h, from, to) => {
    const { next, previous } = neighbours(h, devices);
    h.startCoalescing();
    h.send(from, { peer: next });
    h.recv(to, { peer: previous });
    const posted = h.endCoalescing();
    return () => h.wait(posted);
  });
}

function ringReference(devices: number): Fusion {
  const f = new Fusion();
  const { M, K, N } = sizes;
  f.output(matmul(f.input([devices, M / devices, K]), f.input([K, N])));
  return f;
}

const divisors = [1, 2, 4, 8];

export const overlapPrograms: readonly OverlapProgram[] = [
  {
    name: "CollectiveBasedOverlapTest.ReduceScatterBasedPipeliningHostIr",
    devices: divisors,
    build: reduceScatterPipelining,
    reference: reduceScatterReference,
  },
  {
    name: "RingBasedOverlapTest.ReduceScatterRingBasedPipeliningHostIr",
    devices: divisors,
    build: ringReduceScatterPipelining,
    reference: reduceScatterReference,
  },
  {
    name: "AllgatherOverlapTest.AllgatherBasedPipeliningHostIr",
    devices: divisors,
    build: allgatherPipelining,
    reference: allgatherReference,
  },
  {
    name: "RingAllgatherOverlapTest.RingAllgatherBasedPipeliningHostIRCudaIpc",
    devices: divisors,
    build: ringAllgatherCudaIpc,
    reference: ringReference,
  },
  {
    name: "RingAllgatherOverlapTest.RingAllgatherBasedPipeliningHostIR",
    devices: divisors,
    build: ringAllgather,
    reference: ringReference,
  },
];
