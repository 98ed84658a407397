/**
 * Random host programs of collectives, sends and GEMMs on several streams, for any communication backend. In each step
 * up to three branches without shared tensors run concurrently, so that every program is free of races. Their results
 * do not depend on the backend: collectives in peers' memory have the bits of a library's.
 */
import { DeviceMesh, HostProgramBuilder, type TensorView } from "@braid-compiler/braid";
import type { HostProgram } from "../../src/host/nodes.ts";
import type { CommunicationType, CommunicatorBackend, ReduceOpType } from "../../src/host/collectives.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom, type Random } from "../../src/support/random.ts";

interface Branch {
  readonly kind: "Allreduce" | "in place" | "twice" | "rows" | "Broadcast" | "Reduce" | "product" | "sum" | "send";
  /** Numbers of tensors. */
  readonly from: number;
  readonly to: number;
  readonly also: number;
  /** Ranks in any order. */
  readonly team: readonly number[];
  /** A position in the team. */
  readonly root: number;
  readonly reduceOp: ReduceOpType;
  /** Which part of the tensors: all, or a row, or a column of them. */
  readonly part: "whole" | "row" | "column";
  readonly index: number;
  /** A worker; the caller for `streams`. */
  readonly stream: number;
}

export interface PeerRecipe {
  readonly world: number;
  readonly dtype: DType;
  readonly shape: readonly [rows: number, columns: number];
  readonly streams: number;
  readonly protocol: "get" | "put";
  readonly tensors: number;
  /** The number of temporaries; the other tensors are outputs. */
  readonly temporaries: number;
  readonly steps: readonly (readonly Branch[])[];
}

const kinds = [
  "Allreduce",
  "Allreduce",
  "in place",
  "twice",
  "rows",
  "Broadcast",
  "Reduce",
  "product",
  "product",
  "sum",
  "send",
] as const;
const dtypes = ["float", "half", "bfloat16", "double", "int64"] as const;
const shapes = [
  [3, 4],
  [4, 4],
  [1, 1],
  [2, 7],
  [8, 16],
  [5, 33],
] as const;

export function peerRecipe(seed: number): PeerRecipe {
  const random = createRandom(seed);
  const world = 2 + random.integer(3);
  const shape = oneOf(random, shapes);
  const streams = 1 + random.integer(4);
  const tensors = 4 + random.integer(4);
  const branch = (from: number, to: number, also: number): Branch => {
    const all = shuffled(random, world);
    const team = random.integer(3) === 0 ? all.slice(0, 1 + random.integer(world)) : all;
    return {
      kind: oneOf(random, kinds),
      from,
      to,
      also,
      team,
      root: random.integer(team.length),
      reduceOp: oneOf(random, ["sum", "max", "min"]),
      part: oneOf(random, ["whole", "row", "column"]),
      index: random.integer(Math.min(...shape)),
      stream: random.integer(streams + 1),
    };
  };
  const step = (): readonly Branch[] => {
    const order = shuffled(random, tensors);
    const most = Math.min(1 + random.integer(3), Math.floor(tensors / 3));
    return Array.from({ length: most }, (_, i) => branch(at(order, 3 * i), at(order, 3 * i + 1), at(order, 3 * i + 2)));
  };
  const steps = Array.from({ length: 1 + random.integer(4) }, step);
  const temporaries = random.integer(3);
  return {
    world,
    dtype: oneOf(random, dtypes),
    shape,
    streams,
    protocol: oneOf(random, ["get", "put"]),
    tensors,
    temporaries,
    steps,
  };
}

export function buildPeerProgram(recipe: PeerRecipe, rank: number, backend: CommunicatorBackend): HostProgram {
  const { world, dtype, shape, steps } = recipe;
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(world);
  const weight = h.input([shape[1], shape[1]], { dtype, mesh });
  const tensors = Array.from({ length: recipe.tensors }, (_, i) => {
    const input = h.input(shape, { dtype, mesh });
    const tensor = h.tensor(shape, { dtype, mesh });
    if (i < recipe.temporaries) h.allocate(tensor);
    else h.output(tensor);
    return h.set(input, { out: tensor });
  });
  const caller = h.getCurrentStream();
  for (const step of steps) {
    const workers = step.flatMap((branch) => {
      const worker = branch.stream === recipe.streams ? caller : h.stream(branch.stream);
      h.setCurrentStream(worker);
      if (worker !== caller) h.synchronize(caller);
      addBranch(h, branch, { tensors, weight, rank, backend, caller });
      h.setCurrentStream(caller);
      return worker === caller ? [] : [worker];
    });
    for (const worker of workers) h.synchronize(worker);
  }
  return h.build();
}

interface Context {
  readonly tensors: readonly TensorView[];
  readonly weight: TensorView;
  readonly rank: number;
  readonly backend: CommunicatorBackend;
  readonly caller: ReturnType<HostProgramBuilder["getCurrentStream"]>;
}

function addBranch(h: HostProgramBuilder, branch: Branch, { tensors, weight, rank, backend, caller }: Context): void {
  const { kind, team, root, reduceOp, part, index } = branch;
  const [from, to, also] = [at(tensors, branch.from), at(tensors, branch.to), at(tensors, branch.also)];
  const isIn = team.includes(rank);
  const view = (tensor: TensorView): TensorView =>
    part === "whole" ? tensor : h.select(tensor, part === "row" ? 0 : 1, index);
  const communicate = (type: CommunicationType, input: TensorView, output: TensorView): void => {
    if (!isIn) return;
    const rooted = type === "Allreduce" ? {} : { root };
    const reduces = type === "Broadcast" ? {} : { reduceOp };
    h.wait(h.communication(type, { input, output, team, backend, ...rooted, ...reduces }));
  };
  switch (kind) {
    case "Allreduce":
    case "Broadcast":
    case "Reduce":
      return communicate(kind, view(from), view(to));
    case "in place": {
      const one = view(from);
      return communicate("Allreduce", one, one);
    }
    case "twice":
      communicate("Allreduce", view(from), view(to));
      return communicate("Allreduce", view(to), view(from));
    case "rows":
      h.setCurrentStream(caller);
      h.forLoop(at(tensors, 0).axis(0).extent, (i) => {
        const worker = h.stream(h.scalars.mod(i, h.scalars.numberOfStreams));
        h.setCurrentStream(worker);
        h.synchronize(caller);
        communicate("Allreduce", h.select(from, 0, i), h.select(also, 0, i));
        h.setCurrentStream(caller);
        h.synchronize(worker);
      });
      return;
    case "product":
      return void h.set(h.matmul(from, weight), { out: to });
    case "sum":
      return void h.add(from, to, { out: also });
    case "send": {
      const [sender, receiver] = [at(team, 0), at(team, team.length - 1)];
      if (sender === receiver) return;
      if (rank === sender) sendOrReceive(h, "send", from, receiver, backend);
      if (rank === receiver) sendOrReceive(h, "recv", to, sender, backend);
    }
  }
}

function sendOrReceive(
  h: HostProgramBuilder,
  type: "send" | "recv",
  buffer: TensorView,
  peer: number,
  backend: CommunicatorBackend,
): void {
  if (backend !== "cuda") return h.wait(h[type](buffer, { peer, backend }));
  for (const half of h.shareMemHandles({ type, buffer, peer })) h.wait(h.post(half));
}

function oneOf<T>(random: Random, values: readonly T[]): T {
  return at(values, random.integer(values.length));
}

function shuffled(random: Random, count: number): readonly number[] {
  const places = Array.from({ length: count }, (_, i) => ({ i, place: random.uint32() }));
  return places.sort((a, b) => a.place - b.place).map(({ i }) => i);
}
