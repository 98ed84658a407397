/** A rule of `gradients` that is one percent off, of any op or composition, fails `--check` of a program that uses it. */
import { describe, expect, it } from "vitest";
import { mul, type TensorView } from "@braid-compiler/braid";
import { apply } from "../../src/ir/api/ops/apply.ts";
import type { FusionData } from "../../src/ir/fusion-data.ts";
import { compositionVjps } from "../../src/ir/gradients/compositions.ts";
import { binaryVjps, reductionVjps, unaryVjps } from "../../src/ir/gradients/functions.ts";
import { vjps } from "../../src/ir/gradients/rules.ts";
import { call } from "../../src/ir/ops/call.ts";
import type { OpSpec } from "../../src/ir/ops/op.ts";
import { keysOf } from "../../src/support/invariant.ts";
import { type Build, compositionCases, ownGradientCases } from "../ir/gradients/composition-cases.ts";
import { kindCases } from "../ir/gradients/rule-cases.ts";
import { sample } from "../support/suite.ts";
import { derived, verdictsOf } from "./derived.ts";

interface Fault {
  readonly name: string;
  /** The table of the rule, and its key there. */
  readonly table: object;
  readonly key: string;
  readonly build: Build;
  readonly shapes: readonly (readonly number[])[];
}

const place = call("a rule");
const opOf =
  (spec: OpSpec): Build =>
  (...operands) =>
    apply(spec, operands, place);

const tables: Readonly<Record<string, readonly Fault[]>> = {
  unary: keysOf(unaryVjps).flatMap((op) =>
    unaryVjps[op] === null
      ? []
      : [{ name: op, table: unaryVjps, key: op, build: opOf({ kind: "Unary", op }), shapes: [[3, 2]] }],
  ),
  binary: keysOf(binaryVjps).flatMap(
    (op) =>
    binaryVjps[op][0] === null
      ? []
      : [{ name: op, table: binaryVjps, key: op, build: opOf({ kind: "Binary", op }), shapes: [[3, 2], [3, 2]] }], // prettier-ignore
  ),
  reductions: keysOf(reductionVjps).map((op) => ({
    name: op,
    table: reductionVjps,
    key: op,
    build: opOf({ kind: "Reduction", op, axes: [1] }),
    shapes: [[2, 3]],
  })),
  kinds: keysOf(kindCases).flatMap((kind) =>
    kindCases[kind].map(([build, ...shapes], i) => ({ name: `${kind} ${i}`, table: vjps, key: kind, build, shapes })),
  ),
  compositions: [...compositionCases, ...ownGradientCases].flatMap(([name, build, ...shapes]) =>
    (derived(build, shapes).markers ?? []).flatMap((marker) =>
      compositionVjps[marker.name] === null
        ? []
        : [
            {
              name,
              table: compositionVjps,
              key: marker.name,
              build,
              shapes,
            },
          ],
    ),
  ),
};

/** Built while cotangent number `which` of the rule is one percent too large; null if it has no such cotangent. */
function planted({ table, key, build, shapes }: Fault, which: number): FusionData | null {
  const original: unknown = { ...table };
  const rule: unknown = Object.entries(table).find(([name]) => name === key)?.[1];
  let count = 0;
  const wrong = (own: unknown): unknown => {
    if (own === null || count++ !== which) return own;
    if (isTensor(own)) return mul(own, 1.01);
    return (...args: readonly unknown[]): unknown => mul(called(own, args), 1.01);
  };
  /** Of functions that give a cotangent, or functions that do. */
  const wrongIn = (found: unknown): unknown => {
    if (isTensor(found)) return wrong(found);
    if (Array.isArray(found)) return found.map(wrong);
    if (typeof found !== "object" || found === null) return found;
    const cotangents: readonly (readonly [string, unknown])[] = Object.entries(found);
    return Object.fromEntries(cotangents.map(([name, own]) => [name, wrong(own)]));
  };
  const row = Array.isArray(rule) ? wrongIn(rule) : (...args: readonly unknown[]) => wrongIn(called(rule, args));
  try {
    Object.assign(table, { [key]: row });
    const data = derived(build, shapes);
    return count > which ? data : null;
  } finally {
    Object.assign(table, original);
  }
}

function called(rule: unknown, args: readonly unknown[]): TensorView {
  if (typeof rule !== "function") throw new Error("not a rule");
  return Reflect.apply(rule, null, args) as TensorView;
}

function isTensor(value: unknown): value is TensorView {
  return typeof value === "object" && value !== null && "rank" in value;
}

const groups = 5;
const cases = keysOf(tables).flatMap((table) =>
  Array.from({ length: Math.min(groups, tables[table]?.length ?? 0) }, (_, group) => ({ table, group })),
);

describe.each(sample(cases, 12))("rules of $table, group $group", ({ table, group }) => {
  it.each(tables[table]?.filter((_, i) => i % groups === group) ?? [])("$name", (fault) => {
    expect(new Set(verdictsOf(derived(fault.build, fault.shapes)))).toEqual(new Set(["passed"]));
    const found: string[] = [];
    for (let which = 0; ; which++) {
      const data = planted(fault, which);
      if (data === null) break;
      found.push(verdictsOf(data).includes("failed") ? "found" : `cotangent ${which} passes`);
    }
    expect(new Set(found)).toEqual(new Set(["found"]));
  });
});

const own = ownGradientCases.map(([name, build, ...shapes]) => ({ name, build, shapes }));
it.each(own)("the slopes of $name leave out what has no gradient", ({ build, shapes }) => {
  expect(new Set(verdictsOf(derived(build, shapes)))).toEqual(new Set(["passed"]));
});
