/**
 * Every collective on teams of 1 to 4 in any order, also in place: what the ranks hold afterwards, under every
 * interleaving.
 */
import { describe, expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import type { CollectiveType } from "../../src/commands/collectives.ts";
import { partOf, type View } from "../../src/commands/view.ts";
import type { ReductionOpType } from "../../src/ir/ops/op.ts";
import { createMachine, type MachineOptions } from "../../src/machine/machine.ts";
import { at } from "../../src/support/invariant.ts";
import { buildLists, type ListBuilder } from "./list-builder.ts";
import { createReferenceCompute } from "./reference-compute.ts";

const world = 4;
const teams = [[0], [1, 0], [0, 1, 2], [2, 0, 3], [3, 1, 0, 2]];
const width = 3;

const modes: readonly (readonly [string, MachineOptions])[] = [
  ["in turns", {}],
  ["in turns, eager", { transfers: "eager" }],
  ["one queue per rank", { queues: "ranks" }],
  ...Array.from({ length: 8 }, (_, seed): readonly [string, MachineOptions] => [
    `seed ${seed}`,
    { interleaving: { kind: "seed", seed } },
  ]),
];

/** The value that the rank at `position` holds at element `i` of its part for `part`. */
const value = (position: number, part: number, i: number): number => 1 + position * 100 + part * 10 + i;
const row = (of: (i: number) => number): readonly number[] => Array.from({ length: width }, (_, i) => of(i));

interface Case {
  readonly type: CollectiveType;
  readonly root: number | null;
  readonly reduceOp?: ReductionOpType;
  /** Whether the rank at `position` has an input, an output; in parts. */
  readonly input: (position: number) => "whole" | "parts" | null;
  readonly output: (position: number) => "whole" | "parts" | null;
  /** The rows of the rank's output. */
  readonly expected: (position: number) => readonly (readonly number[])[];
  /** Where the input and the output of a rank may share memory. */
  readonly inPlace: "same" | "part" | "never";
}

function cases(size: number, root: number): readonly Case[] {
  const all = [...Array(size).keys()];
  const only = <T>(position: number, kind: T): T | null => (position === root ? kind : null);
  const combined = (part: (position: number) => number, op: (x: number, y: number) => number): readonly number[] =>
    row((i) => all.map((p) => value(p, part(p), i)).reduce((x, y) => Math.fround(op(x, y))));
  const add = (x: number, y: number): number => x + y;
  return [
    {
      type: "Allgather",
      root: null,
      input: () => "whole",
      output: () => "parts",
      expected: () => all.map((p) => row((i) => value(p, 0, i))),
      inPlace: "part",
    },
    {
      type: "Gather",
      root,
      input: () => "whole",
      output: (p) => only(p, "parts" as const),
      expected: () => all.map((p) => row((i) => value(p, 0, i))),
      inPlace: "part",
    },
    {
      type: "Scatter",
      root,
      input: (p) => only(p, "parts" as const),
      output: () => "whole",
      expected: (p) => [row((i) => value(root, p, i))],
      inPlace: "part",
    },
    {
      type: "Broadcast",
      root,
      input: (p) => only(p, "whole" as const),
      output: () => "whole",
      expected: () => [row((i) => value(root, 0, i))],
      inPlace: "same",
    },
    {
      type: "Reduce",
      root,
      reduceOp: "prod",
      input: () => "whole",
      output: (p) => only(p, "whole" as const),
      expected: () => [
        combined(
          () => 0,
          (x, y) => x * y,
        ),
      ],
      inPlace: "same",
    },
    {
      type: "Allreduce",
      root: null,
      reduceOp: "sum",
      input: () => "whole",
      output: () => "whole",
      expected: () => [combined(() => 0, add)],
      inPlace: "same",
    },
    {
      type: "Allreduce",
      root: null,
      reduceOp: "amin",
      input: () => "whole",
      output: () => "whole",
      expected: () => [combined(() => 0, Math.min)],
      inPlace: "same",
    },
    {
      type: "ReduceScatter",
      root: null,
      reduceOp: "sum",
      input: () => "parts",
      output: () => "whole",
      expected: (p) => [combined(() => p, add)],
      inPlace: "part",
    },
    {
      type: "AllToAll",
      root: null,
      input: () => "parts",
      output: () => "parts",
      expected: (p) => all.map((other) => row((i) => value(other, p, i))),
      inPlace: "never",
    },
  ];
}

/** The views of one rank, in place if the case and `shared` say so. */
function viewsOf(
  list: ListBuilder,
  { input, output, inPlace }: Case,
  size: number,
  position: number,
  shared: boolean,
): { readonly input: View | null; readonly output: View | null } {
  const shape = (kind: "whole" | "parts"): readonly number[] => (kind === "parts" ? [size, width] : [width]);
  const inputKind = input(position);
  const outputKind = output(position);
  if (!shared || inputKind === null || outputKind === null) {
    return {
      input: inputKind === null ? null : list.input(shape(inputKind)),
      output: outputKind === null ? null : list.output(shape(outputKind)),
    };
  }
  const both = list.output(shape(inputKind === "parts" ? inputKind : outputKind));
  if (inPlace === "same") return { input: both, output: both };
  return inputKind === "parts"
    ? { input: both, output: partOf(both, position) }
    : { input: partOf(both, position), output: both };
}

describe.each(teams)("team %j", (...team) => {
  const size = team.length;
  const all = team.flatMap((_, root) => cases(size, root));
  const distinct = all.filter(({ root }, i) => root !== null || i < all.length / size);
  const named = distinct.flatMap((one) =>
    [false, true]
      .filter((shared) => !shared || one.inPlace !== "never")
      .map((shared) => ({
        ...one,
        shared,
        name: [one.type, one.reduceOp, one.root === null ? null : `root ${one.root}`, shared ? "in place" : null]
          .filter((part) => part !== null && part !== undefined)
          .join(" "),
      })),
  );

  it.each(named)("$name", (one) => {
    const views = new Map<number, ReturnType<typeof viewsOf>>();
    const program = link(
      buildLists(world, (list, rank) => {
        const position = team.indexOf(rank);
        if (position === -1) return;
        const own = viewsOf(list, one, size, position, one.shared);
        views.set(rank, own);
        const lane = list.stream("nccl", "communicator");
        list.synchronize(lane, 0);
        const { root, reduceOp } = one;
        list.collective(lane, one.type, {
          team,
          ...own,
          ...(root === null ? {} : { root }),
          ...(reduceOp === undefined ? {} : { reduceOp }),
        });
        list.synchronize(0, lane);
      }),
    );
    for (const [name, options] of modes) {
      const compute = createReferenceCompute(program);
      const machine = createMachine(program, compute, options);
      const firstBuffer = (rank: number): number => program.buffers.findIndex((buffer) => buffer.rank === rank);
      for (let run = 0; run < 2; run++) {
        for (const [position, rank] of team.entries()) {
          const input = views.get(rank)?.input ?? null;
          if (input === null) continue;
          const buffer = at(program.buffers, firstBuffer(rank) + input.buffer).id;
          const parts = one.input(position) === "parts" ? size : 1;
          const values = Array.from({ length: parts }, (_, part) => row((i) => value(position, part, i))).flat();
          const content = [...compute.read(buffer)];
          content.splice(input.offset / 4, values.length, ...values);
          compute.write(buffer, content);
        }
        machine.run();
        for (const [position, rank] of team.entries()) {
          const output = views.get(rank)?.output ?? null;
          if (output === null) continue;
          const buffer = at(program.buffers, firstBuffer(rank) + output.buffer).id;
          const expected = one.expected(position).flat();
          const start = output.offset / 4;
          expect(
            compute.read(buffer).slice(start, start + expected.length),
            `${name}, run ${run}, rank ${rank}`,
          ).toEqual(expected);
        }
      }
    }
  });
});
