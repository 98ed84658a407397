/** Reads the ops of functions and regions in order, each by its row, into values. */
import { at } from "../../support/invariant.ts";
import { suggestion } from "../../support/wording.ts";
import type { Manual } from "./groups.ts";
import { isSameType, type ReadRow, typeText, valueType } from "./ops/reading.ts";
import { withOwnShardings, withSharding } from "./place.ts";
import { invalidText, mostOperations, type Reader, unsupported } from "./reader.ts";
import type { MlirFunction, Operation, OpRegion } from "./syntax/nodes.ts";
import type { MlirValue } from "./value.ts";
import { keptLine, repeatedLine } from "./repeat.ts";
import { collectiveRows } from "./ops/collectives.ts";
import { contractionRows, convolutionRows } from "./ops/convolution.ts";
import { controlRows, shardyRows } from "./ops/control.ts";
import { composedRows } from "./ops/composed.ts";
import { elementwiseRows } from "./ops/elementwise.ts";
import { indexingRows } from "./ops/indexing.ts";
import { manualRows } from "./ops/manual.ts";
import { reductionRows } from "./ops/reductions.ts";
import { shapeRows } from "./ops/shape.ts";
import { sliceRows } from "./ops/slices.ts";
import { sortingRows } from "./ops/sorting.ts";

/** The values that ops may name. A region sees those around it. */
interface Scope {
  readonly values: Map<string, MlirValue>;
  readonly around: Scope | null;
  readonly manual: Manual | null;
}

const returns: ReadonlySet<string> = new Set(["return", "func.return", "stablehlo.return", "sdy.return"]);
const mostCalls = 256;

export function evaluateFunction(
  reader: Reader,
  called: MlirFunction,
  given: readonly MlirValue[],
  manual: Manual | null,
): readonly MlirValue[] {
  const { calls } = reader;
  const { name, position, body } = called;
  if (body === null) {
    return unsupported(reader, position, {
      message: `function @${name} has no body`,
      found: "a declaration",
      expected: "a function with its ops",
      help: "pass the whole module",
    });
  }
  if (calls.includes(name) || calls.length === mostCalls) {
    const isCycle = calls.includes(name);
    const cycle = [...calls.slice(calls.indexOf(name)), name].map((each) => `@${each}`).join(" calls ");
    invalidText(reader, position, {
      message: isCycle ? `function @${name} calls itself` : "functions call one another too deeply",
      found: isCycle ? cycle : `${mostCalls} calls inside one another`,
      expected: "functions that can be inlined",
    });
  }
  calls.push(name);
  const values = given.map((value, i) =>
    withSharding(reader, position, value, called.arguments[i]?.attributes.get("sdy.sharding")),
  );
  const region = { operations: body, arguments: called.arguments };
  const results = evaluateBody(reader, region, values, { values: new Map(), around: null, manual }, position);
  calls.pop();
  if (results.length !== called.resultTypes.length) {
    invalidText(reader, position, {
      message: `function @${name} returns another number of values than it declares`,
      found: `${results.length}`,
      expected: `${called.resultTypes.length}`,
    });
  }
  return results.map((value, i) =>
    withSharding(reader, position, value, called.resultAttributes[i]?.get("sdy.sharding")),
  );
}

function evaluateBody(
  reader: Reader,
  { operations, arguments: names }: OpRegion,
  given: readonly MlirValue[],
  scope: Scope,
  position: number,
): readonly MlirValue[] {
  if (names.length !== given.length) {
    invalidText(reader, position, {
      message: "a function or region is given another number of values than it takes",
      found: `${given.length}`,
      expected: `${names.length}`,
    });
  }
  names.forEach(({ name, type, position: own }, i) => {
    const value = at(given, i);
    // The arguments of a pretty `while` have no types.
    if (type.kind === "tensor") requireType(reader, own, name, value, type);
    scope.values.set(name, value);
  });
  for (const op of operations) {
    if (returns.has(op.name)) return operandsOf(reader, scope, op);
    evaluateOperation(reader, op, scope);
  }
  return [];
}

function evaluateOperation(reader: Reader, op: Operation, scope: Scope): void {
  reader.operations++;
  if (reader.operations > mostOperations) {
    unsupported(reader, op.position, {
      message: "the program is too long when its calls are inlined and its loops unrolled",
      found: `more than ${mostOperations} ops`,
      expected: `at most ${mostOperations}`,
      help: "lower a part of the function, or shorten its loops",
    });
  }
  const operands = operandsOf(reader, scope, op);
  const read = (): readonly MlirValue[] => readByRow(reader, op, operands, scope);
  const results =
    scope.manual === null ? (repeatedLine(reader, op, operands) ?? keptLine(reader, op, operands, read)) : read();
  const placed = withOwnShardings(reader, op, results);
  if (op.results.length !== placed.length) {
    invalidText(reader, op.position, {
      message: `${op.name} has another number of results`,
      found: `${op.results.length} names`,
      expected: `${placed.length}`,
    });
  }
  op.results.forEach((name, i) => {
    const type = op.resultTypes[i];
    const value = at(placed, i);
    if (type !== undefined) requireType(reader, op.position, name, value, type);
    scope.values.set(name, value);
  });
}

function readByRow(reader: Reader, op: Operation, operands: readonly MlirValue[], scope: Scope): readonly MlirValue[] {
  const { read } = stablehloRows.get(op.name) ?? unknownOp(reader, op);
  requireSignFree(reader, op, operands);
  return read({
    reader,
    op,
    operands,
    manual: scope.manual,
    region: (region, values, manual = scope.manual) =>
      evaluateBody(reader, region, values, { values: new Map(), around: scope, manual }, op.position),
    call: (name, values) => evaluateFunction(reader, functionNamed(reader, op, name), values, scope.manual),
  });
}

const signFree = new Set(
  (
    "constant iota broadcast_in_dim broadcast reshape transpose slice concatenate reverse optimization_barrier select " +
    "add subtract multiply negate and or xor not shift_left shift_right_logical convert dynamic_slice gather while " +
    "case if composite"
  )
    .split(" ")
    .map((name) => `stablehlo.${name}`),
);

/** Of ui64, which has the bits of an int64, ops are read whose results the sign does not change. */
function requireSignFree(reader: Reader, op: Operation, operands: readonly MlirValue[]): void {
  const results = op.resultTypes.map((type) => valueType(reader, op.position, type));
  const elements = [...operands.map(({ type }) => type), ...results].map(({ element }) => element);
  if (!elements.includes("ui64") || !/^(?:stablehlo|chlo)/u.test(op.name)) return;
  if (signFree.has(op.name) && !elements.some((element) => op.name.endsWith("convert") && element.includes("f")))
    return;
  unsupported(reader, op.position, {
    message: `${op.name} of ui64 is not supported`,
    found: op.name,
    expected: "sums, products, bits and conversions to integers, as jax.random counts with",
    help: "convert the tensor to i64 in the framework",
  });
}

function operandsOf(reader: Reader, scope: Scope, op: Operation): readonly MlirValue[] {
  return op.operands.map((name, i) => {
    const value = valueNamed(scope, name);
    if (value === null) {
      return invalidText(reader, op.position, {
        message: `${op.name} reads a value that no op before it gives`,
        found: name,
        expected: "an argument, or the result of an op before",
      });
    }
    const type = op.operandTypes[i];
    // A short form names one type for all operands, which the op's row checks.
    if (type !== undefined && op.operandTypes.length === op.operands.length)
      requireType(reader, op.position, name, value, type);
    return value;
  });
}

function valueNamed(scope: Scope, name: string): MlirValue | null {
  for (let each: Scope | null = scope; each !== null; each = each.around) {
    const value = each.values.get(name) ?? (name.endsWith("#0") ? each.values.get(name.slice(0, -2)) : undefined);
    if (value !== undefined) return value;
  }
  return null;
}

function requireType(
  reader: Reader,
  position: number,
  name: string,
  value: MlirValue,
  type: Operation["resultTypes"][number],
): void {
  const declared = valueType(reader, position, type);
  if (isSameType(value.type, declared)) return;
  invalidText(reader, position, {
    message: `${name} has another type than it is said to have`,
    found: typeText(declared),
    expected: typeText(value.type),
  });
}

function functionNamed(reader: Reader, op: Operation, name: string): MlirFunction {
  const { functions } = reader.module;
  const found = functions.get(name);
  if (found !== undefined) return found;
  return invalidText(reader, op.position, {
    message: `there is no function @${name}`,
    found: `@${name}`,
    expected: Array.from(functions.keys(), (each) => `@${each}`)
      .slice(0, 10)
      .join(", "),
    help: "pass the whole module",
  });
}

const whyRefused: ReadonlyMap<string, string> = new Map([
  ["stablehlo.custom_call", "call the function without the custom kernel"],
  [
    "stablehlo.rng_bit_generator",
    "pass random numbers as arguments; jax.random with the default threefry keys is read",
  ],
  ["stablehlo.rng", "pass random numbers as arguments"],
  ["stablehlo.select_and_scatter", "write the max pool as a reshape and a max, whose gradient is read"],
]);

function unknownOp(reader: Reader, op: Operation): ReadRow {
  const [target] = op.items;
  const isCustom = op.name === "stablehlo.custom_call";
  const callee = op.attributes.get("call_target_name") ?? target;
  const named = callee?.kind === "symbol" ? ` @${callee.name}` : callee?.kind === "string" ? ` @${callee.text}` : "";
  const dialect = op.name.split(".", 1)[0] ?? "";
  const same = [...stablehloRows.keys()].filter((name) => name.startsWith(`${dialect}.`));
  return unsupported(reader, op.position, {
    message: `${op.name}${isCustom ? named : ""} is not supported`,
    found: op.name,
    expected: "one of the ops that docs/import.md lists",
    help: whyRefused.get(op.name) ?? suggestion(op.name, same, "write the function without it"),
  });
}

/* All ops that are read, one row each. docs/import.md has a table of them. */

/** @public The table of docs/import.md is made of it. */
export const opGroups: Readonly<Record<string, Readonly<Record<string, ReadRow>>>> = {
  Elementwise: { ...elementwiseRows, ...composedRows },
  Shapes: shapeRows,
  Contractions: { ...contractionRows, ...convolutionRows },
  Reductions: reductionRows,
  Indexing: { ...indexingRows, ...sliceRows, ...sortingRows },
  Control: controlRows,
  Shardings: { ...shardyRows, ...manualRows },
  "Collectives of manual computations": collectiveRows,
};

const stablehloRows: ReadonlyMap<string, ReadRow> = new Map(
  Object.values(opGroups).flatMap((rows) => Object.entries(rows)),
);
