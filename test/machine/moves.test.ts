/**
 * Transfers as chains of moves: which chains may run concurrently, also in place, and what the ranks of an Allreduce
 * share.
 */
import { describe, expect, it } from "vitest";
import type { BufferId } from "../../src/commands/buffer.ts";
import type { Collective } from "../../src/commands/command.ts";
import { collectives, type CollectiveType, collectiveTypes, isRooted } from "../../src/commands/collectives.ts";
import { contiguousStrides, partOf, type View } from "../../src/commands/view.ts";
import { collectiveChains, type MoveChain } from "../../src/machine/transfers/moves.ts";
import { makeId } from "../../src/support/invariant.ts";
import { elementCount } from "../../src/numerics/tensor/host-tensor.ts";

const width = 4;

function view(buffer: number, shape: readonly number[], strides = contiguousStrides(shape)): View {
  return { buffer: makeId<BufferId>(buffer), offset: 0, dtype: "float", shape, strides };
}

/** The participants of a collective with one rank per position; `inPlace` if the table allows it. */
function membersOf(type: CollectiveType, size: number, root: number, inPlace: boolean): readonly Collective[] {
  const rule = collectives[type];
  const team = Array.from({ length: size }, (_, rank) => rank);
  return team.map((position): Collective => {
    const shape = (split: boolean): readonly number[] => (split ? [size, width] : [width]);
    const input = rule.reads === "all" || position === root ? view(2 * position, shape(rule.splitsInput)) : null;
    const output = rule.writes === "all" || position === root ? view(2 * position + 1, shape(rule.splitsOutput)) : null;
    const common = {
      kind: "collective" as const,
      type,
      team,
      root: isRooted(type) ? root : null,
      reduceOp: rule.reduces ? ("sum" as const) : null,
    };
    if (!inPlace || input === null || output === null || rule.inPlace === "never") return { ...common, input, output };
    if (rule.inPlace === "same") return { ...common, input: output, output };
    return rule.splitsInput
      ? { ...common, input, output: partOf(input, position) }
      : { ...common, input: partOf(output, position), output };
  });
}

/** `buffer.element` of all that a view holds. */
function places({ buffer, offset, shape, strides }: View): readonly string[] {
  return Array.from({ length: elementCount(shape) }, (_, n) => {
    let rest = n;
    let index = offset / 4;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index += (rest % (shape[axis] ?? 1)) * (strides[axis] ?? 0);
      rest = Math.floor(rest / (shape[axis] ?? 1));
    }
    return `${buffer}.${index}`;
  });
}

function touched(chain: MoveChain): { readonly read: ReadonlySet<string>; readonly written: ReadonlySet<string> } {
  return {
    read: new Set(chain.flatMap(({ sources }) => sources.flatMap((source) => places(source.view)))),
    written: new Set(chain.flatMap(({ destination }) => places(destination))),
  };
}

const cases = collectiveTypes.flatMap((type) =>
  [false, true].flatMap((inPlace) => (isRooted(type) ? [0, 2] : [0]).map((root) => ({ type, inPlace, root }))),
);

describe("chains", () => {
  it.each(cases)(
    "$type of 4, root $root, in place $inPlace: none writes what another touches",
    ({ type, inPlace, root }) => {
      const phases = collectiveChains(membersOf(type, 4, root, inPlace));
      expect(phases.flat().length).toBeGreaterThan(0);
      for (const chains of phases) {
        const all = chains.map(touched);
        for (const [i, one] of all.entries()) {
          for (const [j, other] of all.entries()) {
            if (i === j) continue;
            expect([...one.written].filter((place) => other.read.has(place) || other.written.has(place))).toEqual([]);
          }
        }
      }
    },
  );

  it.each(cases)(
    "$type of 4, root $root, in place $inPlace: moves of a chain have one shape",
    ({ type, inPlace, root }) => {
      for (const chain of collectiveChains(membersOf(type, 4, root, inPlace)).flat()) {
        const shapes = chain.flatMap(({ sources, destination }) => [
          destination,
          ...sources.map((source) => source.view),
        ]);
        expect(new Set(shapes.map(({ shape }) => shape.join(" ")))).toHaveProperty("size", 1);
      }
    },
  );
});

describe("an Allreduce", () => {
  const allreduce = (inputs: readonly View[], outputs: readonly View[]): readonly (readonly MoveChain[])[] =>
    collectiveChains(
      inputs.map((input, i) => ({
        kind: "collective",
        type: "Allreduce",
        team: [...inputs.keys()],
        root: null,
        reduceOp: "sum",
        input,
        output: outputs[i] ?? input,
      })),
    );

  it("combines once and copies the result, in one chain", () => {
    const phases = allreduce([view(0, [6]), view(1, [6]), view(2, [6])], [view(3, [6]), view(4, [6]), view(5, [6])]);
    expect(phases).toHaveLength(1);
    expect(phases[0]).toHaveLength(1);
    expect(phases[0]?.[0]?.map(({ op, destination }) => [op, destination.buffer])).toEqual([
      ["sum", 3],
      [null, 4],
      [null, 5],
    ]);
  });

  it("copies afterwards where no one shape names the elements of all views in order", () => {
    // Rows of 2 and of 3 elements with gaps between them share no box; each shares one with contiguous elements.
    const [pairs, triples] = [view(1, [3, 2], [4, 1]), view(2, [2, 3], [8, 1])];
    const phases = allreduce([view(0, [6]), view(3, [6]), view(4, [6])], [view(5, [6]), pairs, triples]);
    expect(phases.map((chains) => chains.map((chain) => chain.map(({ destination }) => destination.buffer)))).toEqual([
      [[5]],
      [[1], [2]],
    ]);
  });

  it("of one participant is a copy, and in place nothing", () => {
    expect(allreduce([view(0, [6])], [view(1, [6])])).toMatchObject([[[{ op: null }]]]);
    expect(allreduce([view(0, [6])], [view(0, [6])])).toEqual([]);
  });
});
