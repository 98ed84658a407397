/** Programs with one field changed by hand, to a value of another size, sign or type. */
import type { Program } from "braid";
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

/** A source of mutants of one program; `random` returns numbers from 0 to 1. */
export function mutantsOf(program: Program, random: () => number): () => ProgramMutant {
  const paths = pathsOf(program);
  const indexIn = (list: readonly unknown[]): number => Math.floor(random() * list.length);
  return () => {
    const path = at(paths, indexIn(paths));
    const changed = structuredClone(program) as unknown as Node;
    const parent = path.slice(0, -1).reduce<Node>((node, key) => node[key] as Node, changed);
    const key = at(path, path.length - 1);
    const old = parent[key];
    const near = typeof old === "number" ? [old + 1, old - 1, old * 2, old + 4] : [];
    const choices = [...values, ...near, ...near];
    const value = choices[indexIn(choices)];
    parent[key] = value;
    return {
      program: changed as unknown as Program,
      text: `${path.join(".")}: ${JSON.stringify(old)?.slice(0, 80)} -> ${String(value)}`,
    };
  };
}
