/**
 * The proof by class holds of Programs whose ranks are alike, and never of a Program that is wrong: with one change on
 * all ranks, which keeps the symmetry, or on one.
 */
import { expect, it } from "vitest";
import { type Command, link } from "@braid-compiler/braid";
import type { UnlinkedCommand } from "../../../src/commands/command-list.ts";
import type { View } from "../../../src/commands/view.ts";
import { at } from "../../../src/support/invariant.ts";
import { proveByClasses } from "../../../src/verify/classes/prove-classes.ts";
import { verify } from "../../../src/verify/verify.ts";
import { buildLists } from "../../machine/list-builder.ts";
import { alikePrograms } from "./alike-programs.ts";
import { compareMutants, compareProofs } from "./compare-proofs.ts";

const programs = alikePrograms(4);

it.each(programs)("$name: $classes classes", ({ lists, classes }) => {
  const program = link(lists);
  expect(proveByClasses(program, false)?.classes ?? null).toBe(classes);
  expect(compareProofs(program)).toBe(classes === null ? "ranks" : "classes");
});

it("a change of all ranks, or of one, is found by both proofs", () => {
  const counts = compareMutants(programs, 2);
  expect(counts.wrong).toBeGreaterThan(20);
  expect(counts.classes).toBeGreaterThan(2);
});

it("lists of one class are laid out once, and only that of its representative is read whole", () => {
  // Two ranks are recorded one by one. Rotations of other meshes are read off the lists.
  const alike = programs.filter(({ name, classes }) => classes !== null && !/stages|another order|of rows/.test(name));
  for (const { name, lists, classes } of alike) {
    const program = link(lists);
    expect(new Set(program.ranks.map(({ arenaBytes }) => arenaBytes)).size, name).toBe(classes);
    const read = new Set<number>();
    for (const rank of program.ranks) {
      const { commands } = rank;
      const get = (): readonly Command[] => {
        read.add(rank.rank);
        return commands;
      };
      Object.defineProperty(rank, "commands", { get });
    }
    expect(proveByClasses(program, false)?.classes, name).toBe(classes);
    expect(read.size, name).toBe(classes);
  }
});

it("a region that stays where it is, beside one that moves, tells ranks apart", () => {
  // Rank r writes slice r while another stream reads slice 1. Both ranks read it by one command.
  const shared = new Map<string, UnlinkedCommand>();
  const lists = buildLists(2, (list, rank) => {
    const side = list.stream("side");
    const [whole, part, y] = [list.input([2, 4]), list.input([4]), list.output([4])];
    const sliced = list.temporary([2, 4]);
    const slice = (index: number): View => ({ ...sliced, shape: [4], strides: [1], offset: 16 * index });
    list.alloc(0, sliced);
    list.copy(0, whole, sliced);
    list.synchronize(side, 0);
    list.copy(0, part, slice(rank));
    list.copy(side, slice(1), y);
    list.synchronize(0, side);
    list.free(0, sliced);
  }).map((list) => ({
    ...list,
    commands: list.commands.map((command) => {
      const text = JSON.stringify(command);
      const known = shared.get(text) ?? command;
      shared.set(text, known);
      return known;
    }),
  }));
  expect(lists[0]?.commands.filter((command, i) => command !== lists[1]?.commands[i])).toHaveLength(1);
  expect(compareProofs(link(lists))).toBe("wrong");
});

it("with 16 ranks, verify reports what the proof of every rank reports", () => {
  const program = link(at(alikePrograms(16, "allreduce"), 1).lists);
  expect(proveByClasses(program, true)?.classes).toBe(1);
  expect(verify(program)).toEqual(verify(program, { full: true }));
});
