/** nvFuser's tests/cpp/test_stream.cpp and tests/python/direct/test_stream.py: loops, chunks and values. */
import { expect, it } from "vitest";
import { compile, type Fusion, lower } from "@braid-compiler/braid";
import type { Statement } from "../../src/host/nodes.ts";
import { walk } from "../../src/host/traverse.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { launchesOf } from "../support/launches.ts";
import { propagated } from "../support/propagated.ts";
import {
  addPerStream,
  allocation,
  backwardPropagation,
  differentShardings,
  forwardPropagation,
  type StreamProgram,
  streamMatmul,
  twoMatmuls,
} from "./stream-programs.ts";

/** The loops that compute something: those without chunks only order streams. */
function loopsOf(f: Fusion): readonly (readonly Statement[])[] {
  const loops = lower(f).body.flatMap((each) => (each.kind === "ForLoop" ? [each.body] : []));
  return loops.filter((body) => body.some(({ kind }) => kind === "ShardByStream"));
}

function shapesOf(f: Fusion): readonly (readonly (readonly number[])[])[] {
  return launchesOf(compile(f, { devices: 1 }).recorded, 0).map(({ inputs, outputs }) => [...inputs, ...outputs]);
}

function textsOf({ f, tensors }: StreamProgram): readonly string[] {
  return tensors.map(propagated(f));
}

const thrice = <T>(value: T): readonly T[] => [value, value, value];

it("AddPerStream", async () => {
  const { f } = addPerStream();
  // Each launch sees its own chunk of columns and nothing else.
  const launches = shapesOf(f);
  expect(launches).toHaveLength(3);
  for (const views of launches) expect(new Set(views.map(String))).toEqual(new Set(["5,2"]));
  await expectOracle(f, { devices: 1, streams: 3 });
});

it("HaveDifferentShardings", async () => {
  const { f } = differentShardings();
  expect(loopsOf(f).map((body) => body.filter(({ kind }) => kind === "Set").length)).toEqual([2, 1]);
  await expectOracle(f, { devices: 1, streams: 2 });
});

it("ForwardPropagation", async () => {
  const program = forwardPropagation();
  expect(textsOf(program)).toEqual(["6 4", "4 s2 3", "6 s2 3 r4"]);
  await expectOracle(program.f, { devices: 1, streams: 2 });
});

it("BackwardPropagation", async () => {
  const program = backwardPropagation();
  expect(textsOf(program)).toEqual(["s2 3 4", "s2 3 4", "s2 3 4"]);
  await expectOracle(program.f, { devices: 1, streams: 2 });
});

/** How often `tensor` is allocated in loops and before them. */
function allocationsOf({ f }: StreamProgram): { readonly whole: number; readonly chunks: number } {
  const { body } = lower(f);
  const count = (statements: readonly Statement[]): number =>
    statements.filter(({ kind }) => kind === "Allocate").length;
  return { whole: count(body), chunks: count(walk(body)) - count(body) };
}

it("ShardedAllocation", async () => {
  const program = allocation({ columns: false });
  expect(textsOf(program)).toEqual(["s2 2 6 3", "s2 2 6 3", "s2 2 6 r3", "s2 2 6 3"]);
  // All is one loop. One unit computes both results, so that x + 1 has no memory at all.
  expect(loopsOf(program.f)).toHaveLength(1);
  expect(allocationsOf(program)).toEqual({ whole: 2, chunks: 0 });
  await expectOracle(program.f, { devices: 1, streams: 2 });
});

it("ReplicatedAllocation", async () => {
  const program = allocation({ columns: true });
  expect(textsOf(program)).toEqual(["s2 2 6 3", "s2 2 6 3", "4 s2 3 r3", "s2 2 6 3"]);
  expect(loopsOf(program.f)).toHaveLength(2);
  expect(allocationsOf(program)).toEqual({ whole: 3, chunks: 0 });
  await expectOracle(program.f, { devices: 1, streams: 2 });
});

it("test_matmul", async () => {
  const { f } = streamMatmul();
  expect(shapesOf(f)).toEqual(
    thrice([
      [5, 7],
      [7, 2],
      [5, 2],
    ]),
  );
  await expectOracle(f, { devices: 1, streams: 3 });
});

it("test_two_matmuls_inlinable", async () => {
  const { f } = twoMatmuls({ inlinable: true });
  expect(loopsOf(f)).toHaveLength(1);
  expect(shapesOf(f)).toEqual(
    thrice([
      [
        [2, 3],
        [3, 5],
        [2, 5],
      ],
      [
        [2, 5],
        [5, 3],
        [2, 3],
      ],
    ]).flat(),
  );
  await expectOracle(f, { devices: 1, streams: 3 });
});

it("test_two_matmuls_not_inlinable", async () => {
  const { f } = twoMatmuls({ inlinable: false });
  expect(loopsOf(f)).toHaveLength(2);
  expect(shapesOf(f)).toEqual([
    ...thrice([
      [6, 3],
      [3, 5],
      [6, 5],
    ]),
    ...thrice([
      [2, 15],
      [15, 3],
      [2, 3],
    ]),
  ]);
  await expectOracle(f, { devices: 1, streams: 3 });
});
