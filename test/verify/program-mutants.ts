/**
 * Programs with one field changed by hand: to a value of another size, sign or type, or to what a field of the same
 * name holds elsewhere. Items of lists are also left out and doubled.
 */
import type { Program } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";

type Node = Record<string, unknown>;

/** The path of every field, also within lists. */
function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [
    ...(path.length === 0 ? [] : [path]),
    ...Object.entries(value).flatMap(([key, part]) => pathsOf(part, [...path, key])),
  ];
}

const values: readonly unknown[] = [
  0,
  1,
  2,
  3,
  -1,
  7,
  0.5,
  64,
  1e9,
  1e15,
  1e300,
  NaN,
  null,
  undefined,
  "",
  "x",
  true,
  [],
  [0],
  {},
];

export interface ProgramMutant {
  readonly program: Program;
  readonly text: string;
}

/** A source of mutants; `random` returns numbers from 0 to 1. */
export function mutantsOf(random: () => number): (program: Program) => ProgramMutant {
  const indexIn = (list: readonly unknown[]): number => Math.floor(random() * list.length);
  const known = new WeakMap<Program, readonly (readonly string[])[]>();
  return (program) => {
    const paths = known.get(program) ?? pathsOf(program);
    known.set(program, paths);
    const path = at(paths, indexIn(paths));
    const changed = structuredClone(program) as unknown as Node;
    const parent = path.slice(0, -1).reduce<Node>((node, key) => node[key] as Node, changed);
    const key = at(path, path.length - 1);
    const old = parent[key];
    const text = `${path.join(".")}: ${JSON.stringify(old)?.slice(0, 80)}`;
    const done = (what: string): ProgramMutant => ({
      program: changed as unknown as Program,
      text: `${text} ${what.slice(0, 80)}`,
    });
    const way = random();
    if (way < 0.4) {
      const alike = paths.filter((other) => other.length === path.length && patternOf(other) === patternOf(path));
      const from = at(alike, indexIn(alike));
      const value = structuredClone(from.reduce<unknown>((node, part) => (node as Node)[part], program));
      parent[key] = value;
      return done(`-> that of ${from.join(".")}, ${JSON.stringify(value)}`);
    }
    if (way < 0.5 && Array.isArray(parent)) {
      const isLeftOut = random() < 0.5;
      parent.splice(Number(key), isLeftOut ? 1 : 0, ...(isLeftOut ? [] : [structuredClone(old)]));
      return done(isLeftOut ? "left out" : "doubled");
    }
    const near = typeof old === "number" ? [old + 1, old - 1, old * 2, old + 4] : [];
    const choices = [...values, ...near, ...near];
    const value = choices[indexIn(choices)];
    parent[key] = value;
    return done(`-> ${String(value)}`);
  };
}

/** The path without its numbers. */
function patternOf(path: readonly string[]): string {
  return path.map((part) => (/^\d+$/u.test(part) ? "#" : part)).join(".");
}
