/** One replica of ranks that do the same and exchange nothing is the whole Program without the other ranks. */
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  compile,
  type CompileOptions,
  DeviceMesh,
  DiagnosticError,
  Fusion,
  matmul,
  type ParallelType,
  type Program,
  set,
  type TensorView,
  verify,
} from "@braid-compiler/braid";
import type { Participant } from "../../src/commands/program.ts";
import { buildGraph, graphSettings, twoAxisRecipes } from "../properties/annotated-graphs.ts";
import { trainedMlp } from "../support/trained-mlp.ts";
import { draws } from "../support/suite.ts";

/** By which transfers of several ranks are in one order, whatever their numbers. */
function placeOf({ participants: [first] }: { readonly participants: readonly Participant[] }): number {
  return first === undefined ? 0 : 1e6 * first.rank + first.command;
}

/** The Program of `size` ranks from `first` on, which are numbered from 0. Names and texts, which name ranks, are left out. */
function replica(program: Program, first: number, size: number): unknown {
  const isIn = (rank: number): boolean => first <= rank && rank < first + size;
  const buffers = program.buffers.filter(({ rank }) => isIn(rank));
  const slots = program.slots.filter(({ waiter }) => isIn(waiter));
  const transfers = program.transfers
    .map(({ participants, ...rest }) => ({ ...rest, participants: participants.filter(({ rank }) => isIn(rank)) }))
    .filter(({ participants }) => participants.length > 0)
    .toSorted((a, b) => placeOf(a) - placeOf(b));
  const numbers = (all: readonly { readonly id: number }[]) => {
    const numberOf = new Map(all.map(({ id }, i) => [id, i]));
    return (id: unknown): unknown => (typeof id === "number" ? (numberOf.get(id) ?? `outside: ${id}`) : id);
  };
  const rankOf = (rank: unknown): unknown => (typeof rank === "number" ? rank - first : rank);
  const [bufferOf, slotOf, transferOf] = [numbers(buffers), numbers(slots), numbers(transfers)];
  const each = (of: (value: unknown) => unknown) => (values: unknown) =>
    Array.isArray(values) ? values.map(of) : values;
  const fields: Readonly<Record<string, (value: unknown) => unknown>> = {
    buffer: bufferOf,
    slot: slotOf,
    transferOf: each(transferOf),
    rank: rankOf,
    peer: rankOf,
    signaller: rankOf,
    waiter: rankOf,
    wholeTeam: () => undefined,
    // A sum with other replicas is of this one alone.
    team: (team) => (Array.isArray(team) && team.length > 1 && team.every(isIn) ? team.map(rankOf) : "alone"),
    communicator: () => "",
    statement: () => "",
    name: () => "",
    id: () => 0,
  };
  const text = JSON.stringify(
    { ...program, replicas: 1, ranks: program.ranks.slice(first, first + size), buffers, slots, transfers },
    (key, value: unknown) => (fields[key] ?? ((same: unknown) => same))(value),
  );
  return JSON.parse(text);
}

/** The number of ranks of a replica, which is compared with all those of the whole. */
function replicaOf(source: Fusion, options: CompileOptions): number {
  const whole = compile(source, { ...options, verify: "off" }).program;
  const one = compile(source, { ...options, verify: "off", oneReplica: true }).program;
  const [count, size] = [whole.ranks.length, one.ranks.length];
  if (size === count) expect(one).toEqual(whole);
  else
    for (let first = 0; first < count; first += size)
      expect(replica(whole, first, size)).toEqual(replica(one, 0, size));
  const notes = false;
  expect(verify(one, { notes })).toMatchObject({ ok: verify(whole, { notes }).ok });
  return size;
}

it("random graphs on two axes of devices, cut along one or both", () => {
  let replicas = 0;
  fc.assert(
    fc.property(
      twoAxisRecipes,
      graphSettings,
      fc.constantFrom<"cpu" | "cuda">("cpu", "cuda"),
      (recipe, { protocol, ...setting }, on) => {
        const { fusion, devices } = buildGraph(recipe);
        const options = { ...setting, ...(protocol === undefined ? {} : { protocol }), devices, on };
        try {
          compile(fusion, { ...options, verify: "off" });
        } catch (error) {
          if (error instanceof DiagnosticError) return;
          throw error;
        }
        if (replicaOf(fusion, options) < devices) replicas++;
      },
    ),
    draws({ quick: 10, long: 600 }),
  );
  expect(replicas).toBeGreaterThan(0);
});

/** Rows that are cut along `type` are gathered and multiplied, in chunks; `end` continues. */
function gathers(type: ParallelType, end = (product: TensorView): TensorView => product, mesh = grid): Fusion {
  const f = new Fusion();
  const [a, b] = [f.input([2, mesh.size(type), 8, 16], "float"), f.input([16, 8], "float")];
  const c = matmul(a, b);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(mesh);
  a.axis(1).parallelize(type);
  c.axis(0).parallelize("Stream");
  f.output(end(c));
  return f;
}

const grid = DeviceMesh.ofShape([2, 4]);

const reversed = new DeviceMesh([
  [0, 1, 2, 3],
  [7, 6, 5, 4],
]);

/** Each device takes its part of what all have. */
function takesPart(whole: TensorView): TensorView {
  const part = set(whole);
  part.setDeviceMesh(grid);
  part.axis(0).parallelize("DIDy");
  return part;
}

/** Each device passes its part on to the next of its group, or in the other group to the one before. */
function passesOn(): Fusion {
  const f = new Fusion();
  const a = f.input([2, 4, 8], "float");
  const b = set(a);
  a.setDeviceMesh(grid);
  b.setDeviceMesh(
    new DeviceMesh([
      [1, 2, 3, 0],
      [7, 4, 5, 6],
    ]),
  );
  for (const tensor of [a, b]) {
    tensor.axis(0).parallelize("DIDy");
    tensor.axis(1).parallelize("DIDx");
  }
  f.output(b);
  return f;
}

// Where NCCL also sums what the devices of a group have, each device is a replica.
it.each<readonly ["nccl" | "cuda", number, number]>([
  ["nccl", 1, 1],
  ["cuda", 4, 8],
])("replicas that sum their gradients, %s", (backend, size, inOtherOrder) => {
  for (const [on, schedule] of [
    ["cpu", {}],
    ["cuda", {}],
    ["cuda", { inPlace: true }],
    ["cpu", { computeStreams: 2 }],
    ["cuda", { earlyGathers: true }],
  ] as const) {
    const options = { devices: 8, devicesPerHost: 4, backend, on, schedule };
    expect(replicaOf(trainedMlp(grid), options)).toBe(size);
    expect(replicaOf(trainedMlp(reversed), options)).toBe(inOtherOrder);
  }
});

it.each<readonly [string, Fusion, Omit<CompileOptions, "devices">, Record<"nccl" | "cuda", number>]>([
  ["gathered within each group", gathers("DIDx"), {}, { nccl: 1, cuda: 4 }],
  ["on one host each", gathers("DIDx"), { devicesPerHost: 4 }, { nccl: 1, cuda: 4 }],
  ["on two hosts each", gathers("DIDx"), { devicesPerHost: 2 }, { nccl: 1, cuda: 1 }],
  ["gathered across groups", gathers("DIDy"), {}, { nccl: 1, cuda: 8 }],
  ["another part of a tensor in each group", gathers("DIDx", takesPart), {}, { nccl: 8, cuda: 8 }],
  ["other peers in each group", passesOn(), {}, { nccl: 8, cuda: 8 }],
  ["another order of ranks in each group", gathers("DIDx", undefined, reversed), {}, { nccl: 1, cuda: 8 }],
])("%s", (_, fusion, options, sizes) => {
  for (const backend of ["nccl", "cuda"] as const) {
    expect(replicaOf(fusion, { devices: 8, backend, ...options })).toBe(sizes[backend]);
  }
});
