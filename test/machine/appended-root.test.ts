/**
 * Rooted collectives whose root was appended to the team: it gathers without contributing, or scatters without
 * receiving.
 */
import { expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import type { CollectiveType } from "../../src/commands/collectives.ts";
import type { ReductionOpType } from "../../src/ir/ops/op.ts";
import { createMachine } from "../../src/machine/machine.ts";
import { at } from "../../src/support/invariant.ts";
import { buildLists } from "./list-builder.ts";
import { createReferenceCompute } from "./reference-compute.ts";

const team = [1, 3, 0];
const root = 2;
const rootRank = 0;

interface Case {
  readonly type: CollectiveType;
  readonly reduceOp?: ReductionOpType;
  /** The contents of the root, and of a rank at a position; before and after. */
  readonly rootBuffer: readonly number[];
  readonly memberBuffer: (position: number) => readonly number[];
  readonly rootReads: boolean;
}

const cases: readonly Case[] = [
  { type: "Gather", rootBuffer: [10, 11, 20, 21], memberBuffer: (p) => [10 * p + 10, 10 * p + 11], rootReads: false },
  {
    type: "Reduce",
    reduceOp: "sum",
    rootBuffer: [30, 32],
    memberBuffer: (p) => [10 * p + 10, 10 * p + 11],
    rootReads: false,
  },
  { type: "Broadcast", rootBuffer: [5, 6], memberBuffer: () => [5, 6], rootReads: true },
  { type: "Scatter", rootBuffer: [10, 11, 20, 21], memberBuffer: (p) => [10 * p + 10, 10 * p + 11], rootReads: true },
];

it.each(cases)("$type", ({ type, reduceOp, rootBuffer, memberBuffer, rootReads }) => {
  const program = link(
    buildLists(4, (list, rank) => {
      const position = team.indexOf(rank);
      if (position === -1) return;
      const isRoot = position === root;
      const width = memberBuffer(0).length;
      const shape = isRoot && rootBuffer.length > width ? [rootBuffer.length / width, width] : [width];
      const reads = isRoot === rootReads;
      const view = reads ? list.input(shape) : list.output(shape);
      list.collective(0, type, {
        team,
        root,
        ...(reduceOp === undefined ? {} : { reduceOp }),
        input: reads ? view : null,
        output: reads ? null : view,
      });
    }),
  );
  for (const seed of [null, 0, 1, 2, 3, 4, 5]) {
    const compute = createReferenceCompute(program);
    const contents = program.buffers.map(({ rank }) =>
      rank === rootRank ? rootBuffer : memberBuffer(team.indexOf(rank)),
    );
    for (const { id, role } of program.buffers) if (role === "input") compute.write(id, at(contents, id));
    createMachine(program, compute, seed === null ? {} : { interleaving: { kind: "seed", seed } }).run();
    expect(program.buffers.map(({ id }) => compute.read(id))).toEqual(contents);
  }
});
