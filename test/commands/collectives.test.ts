/** The table of collectives against their definitions, for teams of every shape. */
import { describe, expect, test } from "vitest";
import type { BufferId } from "../../src/commands/buffer.ts";
import type { Collective } from "../../src/commands/command.ts";
import {
  assembliesOf,
  collectives,
  type CollectiveType,
  collectiveTypes,
  dependsOn,
  isRooted,
  sideOf,
  sliceFrom,
} from "../../src/commands/collectives.ts";
import { contiguousStrides, type View } from "../../src/commands/view.ts";
import { makeId, at } from "../../src/support/invariant.ts";

const teams = [[0], [1, 0], [0, 1, 2], [2, 0, 3], [3, 1, 0, 2]];
const pieceElements = 2;
const elementBytes = 4;

/**
 * The parts that the definition of each type gives to the output of a position: part of whose input (null: the
 * whole).
 */
type Source = { readonly from: number; readonly part: number | null };
const definitions: {
  readonly [T in CollectiveType]: (size: number, root: number, position: number) => readonly (readonly Source[])[];
} = {
  Gather: (size, root, position) => (position === root ? positions(size).map((from) => [{ from, part: null }]) : []),
  Allgather: (size) => positions(size).map((from) => [{ from, part: null }]),
  Scatter: (_size, root, position) => [[{ from: root, part: position }]],
  Reduce: (size, root, position) => (position === root ? [positions(size).map((from) => ({ from, part: null }))] : []),
  Allreduce: (size) => [positions(size).map((from) => ({ from, part: null }))],
  ReduceScatter: (size, _root, position) => [positions(size).map((from) => ({ from, part: position }))],
  Broadcast: (_size, root) => [[{ from: root, part: null }]],
  AllToAll: (size, _root, position) => positions(size).map((from) => [{ from, part: position }]),
};

function positions(size: number): readonly number[] {
  return Array.from({ length: size }, (_, i) => i);
}

function view(buffer: number, parts: number | null): View {
  const shape = parts === null ? [pieceElements] : [parts, pieceElements];
  return { buffer: makeId<BufferId>(buffer), offset: 0, dtype: "float", shape, strides: contiguousStrides(shape) };
}

/**
 * The operations of a team whose position i reads buffer 2i and writes buffer 2i + 1; the root may lack its optional
 * side.
 */
function operationsOf(
  type: CollectiveType,
  team: readonly number[],
  root: number,
  rootLacks = false,
): readonly Collective[] {
  const rule = collectives[type];
  const relativeRoot = isRooted(type) ? root : null;
  const has = (side: "input" | "output", position: number): boolean => {
    const demand = sideOf(type, side, relativeRoot, position);
    return demand === "required" || (demand === "optional" && !rootLacks);
  };
  const count = (side: "input" | "output"): number => positions(team.length).filter((p) => has(side, p)).length;
  return team.map((_, position) => ({
    kind: "collective",
    type,
    team,
    root: relativeRoot,
    reduceOp: rule.reduces ? "sum" : null,
    input: has("input", position) ? view(2 * position, rule.splitsInput ? count("output") : null) : null,
    output: has("output", position) ? view(2 * position + 1, rule.splitsOutput ? count("input") : null) : null,
  }));
}

/** The assemblies of a position as sources, with the parts read off the offsets. */
function sourcesOf(operations: readonly Collective[], position: number): readonly (readonly Source[])[] {
  const partBytes = pieceElements * elementBytes;
  return assembliesOf(operations, position).map(({ output, sources }, place) => {
    expect(output.buffer).toBe(2 * position + 1);
    expect(output.shape).toEqual([pieceElements]);
    expect(output.offset).toBe(place * partBytes);
    return sources.map(({ from, view: source }) => {
      expect(source.buffer).toBe(2 * from);
      expect(source.shape).toEqual([pieceElements]);
      const splits = collectives[at(operations, from).type].splitsInput;
      if (!splits) expect(source.offset).toBe(0);
      return { from, part: splits ? source.offset / partBytes : null };
    });
  });
}

describe.each(collectiveTypes)("%s", (type) => {
  test("puts together what its definition says, on teams of 1 to 4 in any order and for every root", () => {
    for (const team of teams) {
      for (const root of isRooted(type) ? positions(team.length) : [0]) {
        const operations = operationsOf(type, team, root);
        for (const position of positions(team.length)) {
          expect(sourcesOf(operations, position)).toEqual(definitions[type](team.length, root, position));
        }
      }
    }
  });

  test("depends on exactly the ranks whose data it assembles", () => {
    for (const team of teams) {
      for (const root of isRooted(type) ? positions(team.length) : [0]) {
        const operations = operationsOf(type, team, root);
        for (const position of positions(team.length)) {
          const sources = sourcesOf(operations, position)
            .flat()
            .map(({ from }) => from);
          const needed = [...new Set(sources)].sort((a, b) => a - b);
          const relativeRoot = isRooted(type) ? root : null;
          expect(dependsOn(type, team.length, relativeRoot, position)).toEqual(needed);
        }
      }
    }
  });

  test("gives each rank's slice of a result as the assemblies have it", () => {
    for (const team of teams) {
      for (const root of isRooted(type) ? positions(team.length) : [0]) {
        for (const operations of [operationsOf(type, team, root), operationsOf(type, team, root, true)]) {
          for (const position of positions(team.length)) {
            const assembled = assembliesOf(operations, position).flatMap(({ output, sources }) =>
              sources.map(({ from, view: source }) => ({ from, slice: { source, output } })),
            );
            for (const from of positions(team.length)) {
              const slice = assembled.find((each) => each.from === from)?.slice ?? null;
              expect(sliceFrom(operations, position, from)).toEqual(slice);
            }
          }
        }
      }
    }
  });

  test("may be in place only where one rank's two views can have the same elements", () => {
    const { inPlace, splitsInput, splitsOutput } = collectives[type];
    if (inPlace === "same") expect([splitsInput, splitsOutput]).toEqual([false, false]);
    if (inPlace === "part") expect(splitsInput).not.toBe(splitsOutput);
    if (inPlace === "never") expect([splitsInput, splitsOutput]).toEqual([true, true]);
  });
});

describe("a root from outside the mesh", () => {
  test("gathers and reduces the others' data", () => {
    expect(sourcesOf(operationsOf("Gather", [4, 5, 0], 2, true), 2)).toEqual([
      [{ from: 0, part: null }],
      [{ from: 1, part: null }],
    ]);
    expect(sourcesOf(operationsOf("Reduce", [4, 5, 0], 2, true), 2)).toEqual([
      [
        { from: 0, part: null },
        { from: 1, part: null },
      ],
    ]);
  });

  test("scatters to the others, whose parts close ranks", () => {
    const operations = operationsOf("Scatter", [4, 0, 5], 1, true);
    expect(positions(3).map((position) => sourcesOf(operations, position))).toEqual([
      [[{ from: 1, part: 0 }]],
      [],
      [[{ from: 1, part: 1 }]],
    ]);
  });

  test("broadcasts without an output", () => {
    const operations = operationsOf("Broadcast", [4, 0], 1, true);
    expect(positions(2).map((position) => sourcesOf(operations, position))).toEqual([[[{ from: 1, part: null }]], []]);
  });
});

test("only a type with a root may lack a side, and only at the root", () => {
  for (const type of collectiveTypes) {
    const { rootMayLack } = collectives[type];
    expect(isRooted(type)).toBe(rootMayLack !== null);
    if (rootMayLack === null) continue;
    expect(sideOf(type, rootMayLack, 1, 1)).toBe("optional");
    expect(sideOf(type, rootMayLack, 1, 0)).toBe("required");
    const other = rootMayLack === "input" ? "output" : "input";
    expect(sideOf(type, other, 1, 1)).toBe("required");
    expect(sideOf(type, other, 1, 0)).toBe("absent");
  }
});

test("what reduces has a call of NCCL: sends and receives combine nothing", () => {
  for (const type of collectiveTypes) expect(collectives[type].reduces && collectives[type].nccl === null).toBe(false);
});
