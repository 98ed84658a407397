/** The programs of nvFuser's dumps, built by hand with the numbers that the dumps have. */
import { DeviceMesh, HostProgramBuilder, type HostProgram, type TensorView } from "@braid-compiler/braid";

const mesh = DeviceMesh.range(8);

type Body = (index: ReturnType<HostProgramBuilder["scalars"]["named"]>) => void;

/** The two loops of a pipeline over the Stream axis `axis` of `tensor`. */
function twoLoops(h: HostProgramBuilder, tensor: TensorView, body: Body): void {
  const caller = h.getCurrentStream();
  const index = h.scalars.named("streamIdx");
  const worker = h.stream(h.scalars.mod(index, h.scalars.numberOfStreams));
  h.forLoop({ over: tensor.axis(0) }, () => {
    h.setCurrentStream(worker);
    h.synchronize(caller);
  });
  h.forLoop({ over: tensor.axis(0) }, (i) => {
    h.setCurrentStream(worker);
    body(i);
    h.setCurrentStream(caller);
    h.synchronize(worker);
  });
}

/** The one loop of 2025-04. */
function oneLoop(h: HostProgramBuilder, tensor: TensorView, body: Body): void {
  const caller = h.stream();
  const worker = h.stream(h.scalars.mod(h.scalars.named("streamIdx"), h.scalars.numberOfStreams));
  h.forLoop({ over: tensor.axis(0) }, (i) => {
    h.getCurrentStream(caller);
    h.setCurrentStream(worker);
    h.synchronize(caller);
    body(i);
    h.setCurrentStream(caller);
    h.synchronize(worker);
  });
}

function singleSet(): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input([null, null]);
  const y = h.tensor(x.extents, { parallel: ["Stream"] });
  h.output(y);
  h.allocate(y);
  oneLoop(h, y, (i) => {
    const from = h.select(x, 0, i);
    h.set(from, { out: h.select(y, 0, i) });
  });
  return h.build();
}

function twoSets(): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input([null, null]);
  const y = h.tensor(x.extents, { parallel: ["Stream"] });
  const z = h.tensor(x.extents, { parallel: ["Stream"] });
  h.output(z);
  h.allocate(y);
  h.allocate(z);
  oneLoop(h, y, (i) => {
    const from = h.select(x, 0, i);
    const middle = h.set(from, { out: h.select(y, 0, i) });
    h.set(middle, { out: h.select(z, 0, i) });
  });
  return h.build();
}

/** One collective per chunk, in place of an op from `x` to `y`. */
function collectivePerChunk(
  h: HostProgramBuilder,
  type: "Allgather" | "Allreduce",
  x: TensorView,
  y: TensorView,
  i: Parameters<Body>[0],
): TensorView {
  const from = h.select(x, 0, i).setMemoryType("global");
  const to = h.select(y, 0, i).setMemoryType("global");
  h.allocate(to);
  h.wait(h.communication(type, { input: from, output: to }));
  return to;
}

function allgather(): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input([null, null], { mesh, parallel: ["Serial", "DIDx"] });
  const y = h.tensor(x.extents, { mesh, parallel: ["Stream"] });
  h.output(y);
  h.allocate(y);
  twoLoops(h, y, (i) => collectivePerChunk(h, "Allgather", x, y, i));
  return h.build();
}

function allreduce(): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input([null, null, null], { mesh, parallel: ["Serial", "DIDx"] });
  const [chunks = null, devices = 1, inner = null] = x.extents;
  const y = h.tensor([chunks, { reduced: devices }, inner], { mesh, parallel: ["Stream"] });
  h.output(y);
  h.allocate(y);
  twoLoops(h, y, (i) => collectivePerChunk(h, "Allreduce", x, y, i));
  return h.build();
}

function allgatherMatmul(): HostProgram {
  const h = new HostProgramBuilder();
  const a = h.input([null, null, null, null], { mesh, parallel: ["Serial", "DIDx"] });
  const b = h.input([null, null], { mesh });
  const [s = null, d = null, m = null, k = 1] = a.extents;
  const c = h.tensor([s, d, m, b.extents[1] ?? null, { reduced: k }], { mesh, parallel: ["Stream"] });
  const gathered = h.tensor(a.extents, { mesh, parallel: ["Stream"] });
  h.output(c);
  h.allocate(gathered);
  h.allocate(c);
  twoLoops(h, gathered, (i) => {
    const chunk = collectivePerChunk(h, "Allgather", a, gathered, i);
    h.matmul(chunk, b, { out: h.select(c, 0, i) });
  });
  return h.build();
}

function allgatherSendsAndReceives(): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input([null, null], { mesh, parallel: ["DIDx"] });
  const y = h.tensor(x.extents, { mesh, parallel: ["Stream"] });
  const own = h.tensor(x.extents.slice(1), { mesh, memory: "local" });
  h.output(y);
  h.allocate(y);
  twoLoops(h, y, (i) => {
    const chunk = h.select(y, 0, i);
    h.ifThenElse(
      h.scalars.eq(i, h.scalars.rank),
      () => h.set(h.select(x, 0, 0, { out: own }), { out: chunk }),
      () => {
        h.startCoalescing();
        h.recv(chunk, { peer: i });
        h.send(x, { peer: i });
        h.wait(h.endCoalescing());
      },
    );
  });
  return h.build();
}

function allgatherLinear(): HostProgram {
  const h = new HostProgramBuilder();
  const { scalars } = h;
  const x = h.input([8, 128, 1024], { dtype: "bfloat16", mesh, parallel: ["DIDx"] });
  const weight = h.input([1024, 1024], { dtype: "bfloat16", mesh });
  const bias = h.input([1024], { dtype: "bfloat16", mesh });
  const y = h.tensor([8, 128, 1024, { reduced: 1024 }], { dtype: "bfloat16", mesh, parallel: ["Stream"] });
  const gathered = h.tensor([8, 128, 1024], { dtype: "bfloat16", mesh, parallel: ["Stream"] });
  const own = h.tensor([128, 1024], { dtype: "bfloat16", mesh, memory: "local" });
  h.output(y);
  h.allocate(gathered);
  h.allocate(y);
  twoLoops(h, gathered, (i) => {
    const index = scalars.mod(scalars.add(scalars.rank, i), 8);
    const sendPeer = scalars.mod(scalars.add(8, scalars.sub(scalars.rank, i)), 8);
    const chunk = h.select(gathered, 0, index);
    h.ifThenElse(
      scalars.eq(sendPeer, scalars.rank),
      () => h.set(h.select(x, 0, 0, { out: own }), { out: chunk }),
      () => {
        const [recv, send] = h.shareMemHandles(
          { type: "recv", buffer: chunk, peer: index },
          { type: "send", buffer: x, peer: sendPeer },
        );
        if (recv === undefined || send === undefined) throw new Error("two handles");
        h.post(send);
        h.post(recv);
        h.wait(send);
        h.wait(recv);
      },
    );
    h.linear(chunk, weight, bias, { out: h.select(y, 0, index) });
  });
  return h.build();
}

export interface DumpProgram {
  /** test/fixtures/dumps/<name>.hir */
  readonly name: string;
  readonly style: "2025-04" | "2025-05" | "2025-10";
  readonly build: () => HostProgram;
}

export const dumpPrograms: readonly DumpProgram[] = [
  { name: "e1-single-set", style: "2025-04", build: singleSet },
  { name: "e1-two-sets", style: "2025-04", build: twoSets },
  { name: "e2-allgather", style: "2025-05", build: allgather },
  { name: "e2-allgather-matmul", style: "2025-05", build: allgatherMatmul },
  { name: "e2-allreduce", style: "2025-05", build: allreduce },
  { name: "e2b-allgather-p2p-nccl", style: "2025-05", build: allgatherSendsAndReceives },
  { name: "e3-allgather-linear-p2p-cuda", style: "2025-10", build: allgatherLinear },
];
