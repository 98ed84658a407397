/**
 * The rings of nvFuser's test_multidevice_host_ir_overlap.cpp and of tests/python/multidevice/test_overlap.py, as
 * hand-built programs: S / D rings of D steps each, step j of ring i on stream i + j. Each has the matmul whose result
 * it computes from the same inputs.
 */
import {
  DeviceMesh,
  Fusion,
  HostProgramBuilder,
  type HostProgram,
  linear,
  matmul,
  reshape,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import type { HostStream } from "../../src/host/nodes.ts";
import { type Ending, type Index, onWorkers } from "./on-workers.ts";
import { type OverlapProgram, sizes } from "./overlap-programs.ts";

/**
 * Items 3 and 4: every partial sum goes straight to the device that keeps it; the sums are made when all have come. K
 * is sharded.
 */
function ringReduceScatter(devices: number, ending: Ending): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(devices);
  const { add, mod, rank, sub } = h.scalars;
  const [rings, rows, k, { N }] = [sizes.S / devices, sizes.M / sizes.S, sizes.K / devices, sizes];
  const a = h.input([devices, devices, rings, rows, k], { mesh, parallel: ["DIDx"] });
  const b = h.input([devices, k, N], { mesh, parallel: ["DIDx"] });
  const c = h.tensor([{ reduced: devices }, devices, rings, rows, N], { mesh, parallel: ["Serial", "DIDx"] });
  h.output(c);
  const local = { mesh, parallel: ["DIDx"] } as const;
  const made = h.allocate(h.tensor([devices, devices, rings, rows, N, { reduced: k }], local));
  // The axis of the senders is the sum's; the receiver's own axis is the one that is sharded.
  const come = h.allocate(h.tensor([devices, devices, rings, rows, N], { mesh, parallel: ["Serial", "DIDx"] }));
  onWorkers(h, ending, (worker) => {
    h.forLoop(rings, (i) => {
      h.forLoop(devices, (j) => {
        h.setCurrentStream(worker(add(i, j)));
        const to = mod(add(rank, add(j, 1)), devices);
        const from = mod(add(devices, sub(rank, add(j, 1))), devices);
        const chunk = (tensor: TensorView, row: Index): TensorView => h.select(h.select(tensor, 1, row), 1, i);
        const partial = chunk(made, to);
        h.matmul(chunk(a, to), b, { out: partial });
        const received = h.select(h.select(come, 0, from), 1, i);
        h.startCoalescing();
        h.send(partial, { peer: to });
        h.recv(received, { peer: from });
        h.wait(h.endCoalescing());
      });
    });
  });
  h.sum(come, [0], { out: c });
  return h.build();
}

function ringReduceScatterReference(devices: number): Fusion {
  const f = new Fusion();
  const [rings, rows, k] = [sizes.S / devices, sizes.M / sizes.S, sizes.K / devices];
  const [a, b] = [f.input([devices, devices, rings, rows, k]), f.input([devices, k, sizes.N])];
  f.output(sum(matmul(a, reshape(b, [devices, 1, 1, k, sizes.N])), [0]));
  return f;
}

/**
 * One step of a ring: `own` goes to the next device, and `other` comes from the previous one; it has come when the
 * result is called.
 */
type Exchange = (h: HostProgramBuilder, own: TensorView, other: TensorView, next: HostStream) => () => void;

/**
 * Items 7 to 9: every device multiplies the rows that it holds while it passes them on. A step waits for what the one
 * before it began.
 */
function ringAllgather(exchange: Exchange): OverlapProgram["build"] {
  return (devices, ending) => {
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(devices);
    const { add, mod, ne, rank, sub } = h.scalars;
    const [rings, rows, { K, N }] = [sizes.S / devices, sizes.M / sizes.S, sizes];
    const a = h.input([devices, rings, rows, K], { mesh, parallel: ["DIDx"] });
    const b = h.input([K, N], { mesh });
    const c = h.tensor([devices, rings, rows, N, { reduced: K }], { mesh });
    h.output(c);
    const held = h.allocate(h.tensor([devices, rings, rows, K], { mesh }));
    const slice = (tensor: TensorView, steps: Index, i: Index): TensorView =>
      h.select(h.select(tensor, 0, mod(add(sub(rank, steps), devices), devices)), 0, i);
    onWorkers(h, ending, (worker) => {
      h.forLoop(rings, (i) => {
        h.setCurrentStream(worker(i));
        // nvFuser's test finds its own rows in the buffer.
        h.set(h.select(h.select(a, 0, 0), 0, i), { out: slice(held, 0, i) });
        h.forLoop(devices, (j) => {
          h.setCurrentStream(worker(add(i, j)));
          const own = slice(held, j, i);
          const product = (): void => void h.matmul(own, b, { out: slice(c, j, i) });
          h.ifThenElse(
            ne(j, devices - 1),
            () => {
              const next = worker(add(add(i, j), 1));
              const wait = exchange(h, own, slice(held, add(j, 1), i), next);
              product();
              h.setCurrentStream(next);
              wait();
            },
            product,
          );
        });
      });
    });
    return h.build();
  };
}

function neighbours(h: HostProgramBuilder, tensor: TensorView): { readonly next: Index; readonly previous: Index } {
  const { add, mod, rank } = h.scalars;
  const devices = tensor.mesh?.devices.length ?? 1;
  return { next: mod(add(rank, 1), devices), previous: mod(add(rank, devices - 1), devices) };
}

/** Handles are shared in every step; the send is posted on this step's stream, the receive on the next one's. */
const byHandles: Exchange = (h, own, other, nextStream) => {
  const { next, previous } = neighbours(h, own);
  const [recv, send] = h.shareMemHandles(
    { type: "recv", buffer: other, peer: previous },
    { type: "send", buffer: own, peer: next },
  );
  if (recv === undefined || send === undefined) throw new Error("two handles");
  h.post(send);
  return () => {
    h.setCurrentStream(nextStream);
    h.post(recv);
    h.wait(send);
    h.wait(recv);
  };
};

const inGroups: Exchange = (h, own, other) => {
  const { next, previous } = neighbours(h, own);
  h.startCoalescing();
  h.send(own, { peer: next });
  h.recv(other, { peer: previous });
  const posted = h.endCoalescing();
  return () => {
    h.wait(posted);
  };
};

function ringAllgatherReference(devices: number): Fusion {
  const f = new Fusion();
  const { K, M, N, S } = sizes;
  f.output(matmul(f.input([devices, S / devices, M / S, K]), f.input([K, N])));
  return f;
}

/**
 * test_column_parallel_linear_forward_reference: tokens are sharded in rows, the weight in columns. Cyclic: rows go
 * from neighbour to neighbour. Uncyclic: in step j device r sends its own rows to r - j and gets those of r + j.
 */
function columnParallelLinear(way: "cyclic" | "uncyclic"): OverlapProgram["build"] {
  return (devices, ending) => {
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(devices);
    const { add, mod, rank, sub } = h.scalars;
    const [hidden, tokens] = [2, 3];
    const x = h.input([devices, tokens, hidden], { dtype: "bfloat16", mesh, parallel: ["DIDx"] });
    const w = h.input([devices, 4 * hidden, hidden], { dtype: "bfloat16", mesh, parallel: ["DIDx"] });
    const y = h.tensor([devices, tokens, devices, 4 * hidden, { reduced: hidden }], {
      dtype: "bfloat16",
      mesh,
      parallel: ["Serial", "Serial", "DIDx"],
    });
    h.output(y);
    const rows = h.allocate(h.tensor([devices, tokens, hidden], { dtype: "bfloat16", mesh }));
    const row = (steps: Index): Index =>
      way === "cyclic" ? mod(add(sub(rank, steps), devices), devices) : mod(add(rank, steps), devices);
    onWorkers(h, ending, (worker) => {
      h.forLoop(devices, (j) => {
        h.setCurrentStream(worker(j));
        const own = h.select(x, 0, 0);
        const here = h.select(rows, 0, row(j));
        h.ifThenElse(
          h.scalars.ne(j, 0),
          () => {
            const steps = way === "cyclic" ? 1 : j;
            const [left, right] = [mod(add(sub(rank, steps), devices), devices), mod(add(rank, steps), devices)];
            if (way === "cyclic") h.synchronize(worker(sub(j, 1)));
            h.startCoalescing();
            if (way === "cyclic") h.send(h.select(rows, 0, row(sub(j, 1))), { peer: right });
            else h.send(own, { peer: left });
            h.recv(here, { peer: way === "cyclic" ? left : right });
            h.wait(h.endCoalescing());
          },
          () => h.set(own, { out: here }),
        );
        const out = h.select(h.select(y, 0, row(j)), 1, 0);
        h.linear(here, h.select(w, 0, 0), null, { out });
      });
    });
    return h.build();
  };
}

function columnParallelReference(devices: number): Fusion {
  const f = new Fusion();
  const [hidden, tokens] = [2, 3];
  const x = f.input([devices, tokens, hidden], "bfloat16");
  const w = f.input([devices, 4 * hidden, hidden], "bfloat16");
  f.output(reshape(linear(x, reshape(w, [devices * 4 * hidden, hidden])), [devices, tokens, devices, 4 * hidden]));
  return f;
}

const divisors = [1, 2, 4, 8];

export const ringPrograms: readonly OverlapProgram[] = [
  {
    name: "RingBasedOverlapTest.ReduceScatterRingBasedPipeliningHostIr",
    devices: divisors,
    build: ringReduceScatter,
    reference: ringReduceScatterReference,
    foundAsWritten: ["data-race", "used-before-alloc"],
  },
  {
    name: "RingAllgatherOverlapTest.RingAllgatherBasedPipeliningHostIRCudaIpc",
    devices: divisors,
    build: ringAllgather(byHandles),
    reference: ringAllgatherReference,
    foundAsWritten: ["data-race", "used-before-alloc"],
  },
  {
    name: "RingAllgatherOverlapTest.RingAllgatherBasedPipeliningHostIR",
    devices: divisors,
    build: ringAllgather(inGroups),
    reference: ringAllgatherReference,
    foundAsWritten: ["data-race", "used-before-alloc"],
  },
  ...(["cyclic", "uncyclic"] as const).map((way) => ({
    name: `test_column_parallel_linear_forward_reference, ${way}`,
    devices: [1, 2, 3, 4, 8],
    build: columnParallelLinear(way),
    reference: columnParallelReference,
    foundAsWritten: null,
  })),
];
