/**
 * Loops over chunks of an axis that is also cut among devices, at any sizes: chunks of ceil(M / S) rows, shares of
 * ceil(M / D), wherever their boundaries lie. Values are small whole numbers, so that results are exact.
 */
import { DeviceMesh, Fusion, HostProgramBuilder, relu, type TensorView } from "@braid-compiler/braid";
import { expect, it } from "vitest";
import type { LoopIndex } from "../../src/host/build/options.ts";
import type { HostProgram, ShardByStream, Statement } from "../../src/host/nodes.ts";
import { heldRuns, onDevice, sizedCut } from "../../src/ir/parts.ts";
import { countIn, type Runs } from "../../src/ir/runs.ts";
import { constant } from "../../src/ir/scalar/scalar.ts";
import type { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";
import { floats, onRanks, runPrograms } from "./run-programs.ts";

interface Case {
  readonly backend: "nccl" | "cuda";
  readonly chunks: number;
  readonly devices: number;
  readonly rows: number;
}

const cases = combinations<Case>({
  backend: ["nccl", "cuda"],
  chunks: [1, 2, 3, 4, 8],
  devices: [1, 2, 3, 5],
  rows: [0, 1, 2, 3, 5, 7, 8, 12],
});

/** A builder whose programs may have ShardByStream, for which it has no method. */
function buildWithChunks(
  chunks: number,
  build: (
    h: HostProgramBuilder,
    chunk: (whole: TensorView, part: TensorView, axis: number, i: LoopIndex) => void,
  ) => void,
): HostProgram {
  const h = new HostProgramBuilder();
  const shards = new Map<number, Pick<ShardByStream, "input" | "axis" | "index">>();
  build(h, (whole, part, axis, index) => {
    shards.set(part.data().id, { input: whole.data().id, axis, index });
    // Stands for the statement until the program is built.
    h.allocate(part);
  });
  const program = h.build();
  const replaced = (body: readonly Statement[]): readonly Statement[] =>
    body.map((statement): Statement => {
      if (statement.kind === "ForLoop") return { ...statement, body: replaced(statement.body) };
      const shard = statement.kind === "Allocate" ? shards.get(statement.tensor) : undefined;
      if (statement.kind !== "Allocate" || shard === undefined) return statement;
      return {
        kind: "ShardByStream",
        output: statement.tensor,
        parts: constant(chunks),
        swizzled: false,
        ...shard,
      };
    });
  return { ...program, body: replaced(program.body) };
}

const values = (tensor: Tensor | undefined): readonly number[] => Array.from(tensor?.data ?? [], Number);
const element = (row: number, column: number): number => (row * 3 + column * 5) % 7;

/** The rows that each rank holds, of a tensor whose axis 0 is the given one. */
function rowsOn(view: TensorView, axis: number, size: number, rank: number): Runs {
  const { domain, mesh } = view.data();
  const own = domain.logical[axis];
  if (own === undefined) throw new Error("an axis");
  return heldRuns(
    sizedCut(domain, own, size),
    onDevice((type) => mesh?.coordinate(rank, type) ?? 0),
  );
}

const listed = (runs: Runs): readonly number[] =>
  runs.flatMap(({ start, stop }) => Array.from({ length: stop - start }, (_, i) => start + i));

const columns = 2;

it.each(sample(cases, 61, 2))(
  "a chunk gathers its ranges of the shares: $rows rows, $devices devices, $chunks chunks, $backend",
  async ({ rows, devices, chunks, backend }) => {
    const mesh = DeviceMesh.range(devices);
    const length = Math.ceil(rows / chunks);
    let share: TensorView | null = null;
    const double = new Fusion();
    double.output(relu(double.input([null, columns])));
    const programs = onRanks(devices, () =>
      buildWithChunks(chunks, (h, chunk) => {
        const x = h.input([rows, columns], { mesh });
        x.outerSplit(0, devices).parallelize("DIDx");
        share = x;
        const gathered = h.allocate(h.tensor([rows, columns], { mesh }));
        const result = h.tensor([rows, columns], { mesh });
        h.output(result);
        h.forLoop(chunks, (i) => {
          const [part, made, out] = [0, 1, 2].map(() => h.tensor([length, columns], { mesh }));
          if (part === undefined || made === undefined || out === undefined) throw new Error("three tensors");
          chunk(gathered, part, 0, i);
          h.wait(h.communication("Allgather", { input: x, output: part, backend }));
          h.allocate(made);
          h.postOnStream(double, [part], [made]);
          chunk(result, out, 0, i);
          h.add(made, part, { out });
        });
      }),
    );
    const inputs = onRanksOf(devices, (rank) => {
      if (share === null) throw new Error("a share");
      const own = listed(rowsOn(share, 0, rows, rank));
      return [
        floats(
          [own.length, columns],
          own.flatMap((row) => [element(row, 0), element(row, 1)]),
        ),
      ];
    });
    const outputs = await runPrograms(programs, { inputs });
    const expected = Array.from({ length: rows }, (_, row) => [2 * element(row, 0), 2 * element(row, 1)]).flat();
    for (const [output] of outputs) expect(values(output)).toEqual(expected);
  },
);

it.each(sample(cases, 67, 2))(
  "a chunk is gathered along another axis, and reduced to shares of the chunk: $rows rows, $devices devices, $chunks chunks, $backend",
  async ({ rows, devices, chunks, backend }) => {
    const mesh = DeviceMesh.range(devices);
    const length = Math.ceil(rows / chunks);
    const views: TensorView[] = [];
    const programs = onRanks(devices, (rank) =>
      buildWithChunks(chunks, (h, chunk) => {
        const x = h.input([rows, 3], { mesh });
        x.outerSplit(1, devices).parallelize("DIDx");
        const partial = h.input([rows, columns, devices], { mesh });
        partial.axis(2).parallelize("DIDx");
        const whole = h.tensor([rows, 3], { mesh });
        const reduced = h.tensor([rows, columns, { reduced: devices }], { mesh });
        reduced.outerSplit(0, chunks);
        reduced.outerSplit(1, devices).parallelize("DIDx");
        h.output(whole);
        h.output(reduced);
        if (rank === 0) views.push(x, partial, whole, reduced);
        h.forLoop(chunks, (i) => {
          const part = h.tensor([length, 3], { mesh });
          part.outerSplit(1, devices).parallelize("DIDx");
          chunk(x, part, 0, i);
          const made = h.tensor([length, 3], { mesh });
          made.outerSplit(1, devices).parallelize("DIDx");
          h.allocate(made);
          h.add(part, part, { out: made });
          const gathered = h.allocate(h.tensor([length, 3], { mesh }));
          h.wait(h.communication("Allgather", { input: made, output: gathered, backend }));
          const out = h.tensor([length, 3], { mesh });
          chunk(whole, out, 0, i);
          h.set(gathered, { out });
          const terms = h.tensor([length, columns, devices], { mesh });
          terms.axis(2).parallelize("DIDx");
          chunk(partial, terms, 0, i);
          const own = h.tensor([length, columns, { reduced: devices }], { mesh });
          own.outerSplit(0, devices).parallelize("DIDx");
          chunk(reduced, own, 0, i);
          h.wait(h.communication("ReduceScatter", { input: terms, output: own, backend }));
        });
      }),
    );
    const [x, , , reduced] = views;
    if (x === undefined || reduced === undefined) throw new Error("the tensors of rank 0");
    const all = Array.from({ length: rows }, (_, row) => row);
    const inputs = onRanksOf(devices, (rank) => {
      const own = listed(rowsOn(x, 1, 3, rank));
      return [
        floats(
          [rows, own.length],
          all.flatMap((row) => own.map((column) => element(row, column))),
        ),
        floats(
          [rows, columns, 1],
          all.flatMap((row) => [rank + row, rank * row]),
        ),
      ];
    });
    const outputs = await runPrograms(programs, { inputs });
    const sum = (term: (rank: number) => number): number =>
      Array.from({ length: devices }, (_, rank) => term(rank)).reduce((total, each) => total + each, 0);
    outputs.forEach(([whole, share], rank) => {
      expect(values(whole)).toEqual(all.flatMap((row) => [0, 1, 2].map((column) => 2 * element(row, column))));
      const held = rowsOn(reduced, 0, rows, rank);
      expect(share?.shape).toEqual([countIn(held), columns]);
      expect(values(share)).toEqual(
        listed(held).flatMap((row) => [sum((each) => each + row), sum((each) => each * row)]),
      );
    });
  },
);

function onRanksOf(devices: number, make: (rank: number) => readonly Tensor[]): readonly (readonly Tensor[])[] {
  return Array.from({ length: devices }, (_, rank) => make(rank));
}
