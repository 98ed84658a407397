/** Runs the statements of a definition: each call makes ops of a Fusion, or places tensors. */
import { set } from "../../ir/api/ops/views.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { madeAt } from "../origins.ts";
import { inStrideOrder, opNames, opRow } from "./ops.ts";
import type { Expression, PythonStatement } from "../python.ts";
import { effect, meshOf, methodNames, methodRow, scheduleRow } from "./schedule.ts";
import {
  argument,
  type FusionCall,
  type FusionOpRow,
  madeBy,
  type Definition,
  fusionDType,
  flagIn,
  invalidCall,
  isGiven,
  kindText,
  fusionList,
  none,
  fusionNumber,
  fusionNumbers,
  tensorIn,
  refuseCall,
  type FusionValue,
} from "./value.ts";

/** Values by name; those of the file are around those of a function. */
export interface Scope {
  readonly values: Map<string, FusionValue>;
  readonly outer: Scope | null;
  readonly depth: number;
}

/** A loop or a call may go on without an end. */
const limits = { statements: 200_000, depth: 64, listItems: 65_536 } as const;

export function runBlock(definition: Definition, scope: Scope, statements: readonly PythonStatement[]): void {
  for (const statement of statements) run(definition, scope, statement);
}

/** Turns of loops without a body take time, too, and so do long lists. */
function count(definition: Definition, position: number, items = 1): void {
  definition.statements += Math.ceil(items / 10);
  if (definition.statements > limits.statements)
    refuseCall({ definition, position }, "the definition is too long", `${limits.statements} statements`, "split it");
}

function run(definition: Definition, scope: Scope, statement: PythonStatement): void {
  const { position } = statement;
  count(definition, position);
  switch (statement.kind) {
    case "assign":
      return assign(definition, scope, statement);
    case "annotation":
    case "return":
      return;
    case "expression":
      return void evaluate(definition, scope, statement.value);
    case "for": {
      const over = evaluate(definition, scope, statement.over);
      if (over.kind !== "list")
        return invalidCall({ definition, position }, "for needs a list", kindText(over), "a list or range");
      for (const value of over.items) {
        count(definition, position);
        scope.values.set(statement.target, value);
        runBlock(definition, scope, statement.body);
      }
      return;
    }
    case "def":
      return void scope.values.set(statement.name, { kind: "function", definition: statement });
    case "with": {
      const value = evaluate(definition, scope, statement.value);
      if (value.kind !== "path" || !isFusionPath(value.path))
        return refuseCall(
          { definition, position },
          "a with statement of another kind",
          "with FusionDefinition() as fd:",
          "leave it out",
        );
      if (statement.name !== null) scope.values.set(statement.name, { kind: "path", path: "fd" });
      return runBlock(definition, scope, statement.body);
    }
    case "other":
      return refuseCall(
        { definition, position },
        `definitions with ${statement.word} are not read`,
        "assignments, calls and for loops over lists",
        "print the definition with print(fd), which has none, or write out what it does",
      );
  }
}

/** `FusionDefinition()`, and the type of a parameter. */
export function isFusionPath(path: string): boolean {
  return /(?:^|\.)FusionDefinition$/u.test(path);
}

function assign(
  definition: Definition,
  scope: Scope,
  { targets, value, position }: Extract<PythonStatement, { readonly kind: "assign" }>,
): void {
  const made = evaluate(definition, scope, value);
  const all = targets.length === 1 ? [made] : made.kind === "list" ? made.items : [made];
  if (all.length !== targets.length)
    invalidCall(
      { definition, position },
      "another number of values than names",
      kindText(made),
      `${targets.length} values`,
    );
  for (const [i, name] of targets.entries()) {
    const each = at(all, i);
    scope.values.set(name, each);
    if (each.kind === "tensor" && !definition.names.has(each.tensor.id)) definition.names.set(each.tensor.id, name);
  }
}

function evaluate(definition: Definition, scope: Scope, expression: Expression): FusionValue {
  const { position } = expression;
  switch (expression.kind) {
    case "number":
      return { kind: "number", value: expression.value, isFloat: expression.isFloat };
    case "text":
      return { kind: "text", value: expression.value };
    case "list":
      return { kind: "list", items: expression.items.map((each) => evaluate(definition, scope, each)) };
    case "name":
      return named(scope, expression.name) ?? { kind: "path", path: expression.name };
    case "attribute": {
      const of = evaluate(definition, scope, expression.of);
      if (of.kind === "path") return { kind: "path", path: `${of.path}.${expression.name}` };
      if (of.kind === "mesh" && expression.name === "size") return { kind: "number", value: of.mesh.devices.length };
      if (of.kind === "tensor" && expression.name === "ndim") return { kind: "number", value: of.tensor.rank };
      return refuseCall(
        { definition, position },
        `${kindText(of)} has no ${expression.name} that Braid reads`,
        "size of a mesh, ndim of a tensor, or a method",
        "leave it out",
      );
    }
    case "index": {
      const of = evaluate(definition, scope, expression.of);
      const place = evaluate(definition, scope, expression.at);
      const found =
        of.kind === "list" && place.kind === "number" && Number.isInteger(place.value)
          ? of.items.at(place.value)
          : undefined;
      return (
        found ??
        invalidCall(
          { definition, position },
          "there is no such item",
          `${kindText(of)}[${kindText(place)}]`,
          "an item of a list",
        )
      );
    }
    case "negative": {
      const of = evaluate(definition, scope, expression.of);
      if (of.kind === "number") return { ...of, value: -of.value };
      return invalidCall({ definition, position }, "there is no negative of this", kindText(of), "a number");
    }
    case "binary":
      return arithmetic(definition, scope, expression);
    case "call":
      return called(definition, scope, expression);
  }
}

function named(scope: Scope, name: string): FusionValue | null {
  if (name === "None") return none;
  if (name === "True" || name === "False") return { kind: "bool", value: name === "True" };
  return scope.values.get(name) ?? (scope.outer === null ? null : named(scope.outer, name));
}

function arithmetic(
  definition: Definition,
  scope: Scope,
  expression: Extract<Expression, { readonly kind: "binary" }>,
): FusionValue {
  const [left, right] = [evaluate(definition, scope, expression.left), evaluate(definition, scope, expression.right)];
  const { operator, position } = expression;
  if (left.kind !== "number" || right.kind !== "number") {
    const other = left.kind === "number" ? right : left;
    const found = other.kind === "path" ? `${other.path}, which has no value` : kindText(other);
    const expected = other.kind === "path" ? `a line before it such as ${other.path} = 4` : "two numbers";
    return invalidCall({ definition, position }, `${operator} is of numbers only`, found, expected);
  }
  const [a, b] = [left.value, right.value];
  const value = {
    "+": a + b,
    "-": a - b,
    "*": a * b,
    "/": a / b,
    "//": Math.floor(a / b),
    "%": a - b * Math.floor(a / b),
    "**": a ** b,
  }[operator];
  const isDivided = operator === "/" || operator === "//" || operator === "%";
  if (value === undefined || (isDivided && b === 0))
    return invalidCall({ definition, position }, "there is no such number", `${a} ${operator} ${b}`, "a number");
  return { kind: "number", value, isFloat: operator === "/" || left.isFloat === true || right.isFloat === true };
}

const floatTexts: ReadonlyMap<string, number> = new Map([
  ["inf", Infinity],
  ["-inf", -Infinity],
  ["nan", Number.NaN],
]);

/** What files call beside `fd.ops` and methods, by the end of its path. */
const functionRows: Readonly<Record<string, FusionOpRow>> = {
  "fd.define_tensor": madeBy(["shape", "contiguity", "dtype", "is_cpu", "stride_order"], (call) => {
    if (flagIn(call, "is_cpu", false))
      refuseCall(call, "a tensor of the CPU", "is_cpu=False", "pass its value as a number");
    const shape = fusionNumbers(call, "shape").map((size) => (size === -1 ? null : size));
    const tensor = call.definition.fusion.input(shape, fusionDType(call) ?? "float");
    return { kind: "tensor", tensor: isGiven(call, "stride_order") ? inStrideOrder(call, tensor) : tensor };
  }),
  "fd.define_scalar": madeBy(["value", "dtype"], (call) => {
    const value = argument(call, "value");
    const dtype = fusionDType(call);
    if (value.kind === "bool" || value.kind === "extent") return value;
    if (value.kind === "number") {
      if (dtype === "bool") return { kind: "bool", value: value.value !== 0 };
      return dtype === null ? value : { ...value, isFloat: dtypes[dtype].family === "float" };
    }
    return refuseCall(call, "a scalar without a value", "a number", "write the number of this run");
  }),
  "fd.define_vector": madeBy(["values", "dtype"], (call) => ({ kind: "list", items: fusionList(call, "values") })),
  "fd.add_output": effect(["output", "alias_input"], (call) => {
    const given = isGiven(call, "alias_input");
    const { fusion } = call.definition;
    const tensor = tensorIn(call, "output");
    const isOutput = fusion.outputs.some(({ id }) => id === tensor.id);
    fusion.output(isOutput ? set(tensor) : tensor, given ? { alias: tensorIn(call, "alias_input") } : {});
  }),
  float: madeBy(["text"], (call) => {
    const text = argument(call, "text");
    const number = text.kind === "text" ? floatTexts.get(text.value) : undefined;
    return { kind: "number", value: number ?? fusionNumber(call, "text"), isFloat: true };
  }),
  DeviceMesh: { parameters: ["devices"], make: meshOf },
  range: { parameters: ["end"], make: (call) => rangeOf(call, fusionNumber(call, "end")) },
  arange: { parameters: ["end"], make: (call) => rangeOf(call, fusionNumber(call, "end")) },
  len: { parameters: ["of"], make: (call) => ({ kind: "number", value: fusionList(call, "of").length }) },
};

/** Of a list of numbers, as of the tensor that torch.arange makes. */
const reshapeOfList: FusionOpRow = {
  parameters: ["self", "rows", "columns"],
  make: (call) => {
    const [items, rows, columns] = [
      fusionList(call, "self"),
      fusionNumber(call, "rows"),
      fusionNumber(call, "columns"),
    ];
    const count = rows === -1 ? items.length / columns : rows;
    if (!(columns >= 1 && Number.isInteger(count) && count * columns === items.length))
      return invalidCall(call, "another number of columns", `(${rows}, ${columns})`, `two factors of ${items.length}`);
    return {
      kind: "list",
      items: items.flatMap((_, i): readonly FusionValue[] =>
        i % columns === 0 ? [{ kind: "list", items: items.slice(i, i + columns) }] : [],
      ),
    };
  },
};

function rangeOf(call: FusionCall, end: number): FusionValue {
  if (!(end >= 0 && end <= limits.listItems))
    invalidCall(call, "a range is too long", String(end), `0 to ${limits.listItems}`);
  count(call.definition, call.position, end);
  return { kind: "list", items: Array.from({ length: end }, (_, value) => ({ kind: "number", value })) };
}

function called(
  definition: Definition,
  scope: Scope,
  { callee, args, position }: Extract<Expression, { readonly kind: "call" }>,
): FusionValue {
  const values = args.map(({ name, value }) => ({ name, value: evaluate(definition, scope, value) }));
  if (callee.kind === "attribute") {
    const self = evaluate(definition, scope, callee.of);
    if (self.kind !== "path") {
      const row = self.kind === "list" && callee.name === "reshape" ? reshapeOfList : methodRow(self.kind, callee.name);
      if (row !== undefined)
        return made(definition, position, callee.name, row, [{ name: null, value: self }, ...values]);
      return refuseCall(
        { definition, position },
        `${kindText(self)} has no method ${callee.name} that Braid reads`,
        methodNames.join(", "),
        "leave it out, or place the tensor with these",
      );
    }
  }
  const target = evaluate(definition, scope, callee);
  if (target.kind === "function") {
    if (scope.depth >= limits.depth)
      return refuseCall(
        { definition, position },
        "too many calls inside one another",
        String(limits.depth),
        "call fewer functions",
      );
    const inner = functionScope(definition, scope, target.definition, values, position);
    runBlock(definition, inner, target.definition.body);
    return none;
  }
  const path = target.kind === "path" ? target.path : "";
  if (isFusionPath(path)) return target;
  const row = rowOf(path);
  if (row !== undefined) return made(definition, position, path, row, values);
  const isOp = path.startsWith("fd.ops.");
  return refuseCall(
    { definition, position },
    isOp ? `nvFuser's ${path} is not supported` : `the call of ${path === "" ? kindText(target) : path} is not read`,
    isOp ? opNames.join(", ") : "calls of fd, of tensors and axes, DeviceMesh, range and torch.arange",
    isOp ? "write it with these ops" : "leave it out, or write its value",
  );
}

function rowOf(path: string): FusionOpRow | undefined {
  if (path.startsWith("fd.ops.")) return opRow(path.slice("fd.ops.".length));
  if (path.startsWith("fd.sched.")) return scheduleRow(path.slice("fd.sched.".length));
  const name = path.startsWith("fd.") ? path : path.slice(path.lastIndexOf(".") + 1);
  return Object.hasOwn(functionRows, name) ? functionRows[name] : undefined;
}

function made(
  definition: Definition,
  position: number,
  name: string,
  { parameters, make }: FusionOpRow,
  given: readonly { readonly name: string | null; readonly value: FusionValue }[],
): FusionValue {
  const args = new Map<string, FusionValue>();
  for (const [i, { name: keyword, value }] of given.entries()) {
    // The first operands of nvFuser's ops have no names.
    const parameter = keyword ?? parameters[i];
    if (parameter === undefined || (keyword !== null && !parameters.includes(keyword)))
      return refuseCall(
        { definition, position },
        `${name} takes no ${keyword ?? `argument ${i + 1}`} that Braid reads`,
        parameters.filter((each) => each !== "self").join(", "),
        "leave it out",
      );
    args.set(parameter, value);
  }
  return madeAt(definition, position, () => make({ definition, position, name, args }));
}

/** The parameters of a function with their values. Throws `model-invalid` for one without. */
export function functionScope(
  definition: Definition,
  outer: Scope,
  { parameters, name }: Extract<PythonStatement, { readonly kind: "def" }>,
  given: readonly { readonly name: string | null; readonly value: FusionValue }[],
  position: number,
): Scope {
  const values = new Map<string, FusionValue>();
  for (const [i, parameter] of parameters.entries()) {
    const value =
      given.find((each) => each.name === parameter.name)?.value ??
      (given[i]?.name === null ? given[i]?.value : undefined) ??
      (parameter.value === null ? null : evaluate(definition, outer, parameter.value)) ??
      (isDefinition(parameter) ? ({ kind: "path", path: "fd" } as const) : null) ??
      invalidCall(
        { definition, position },
        `${parameter.name} of ${name} has no value`,
        `def ${name}(.., ${parameter.name}, ..)`,
        `a default: ${parameter.name}=4`,
      );
    values.set(parameter.name, value);
  }
  return { values, outer, depth: outer.depth + 1 };
}

/** `fd : FusionDefinition`. */
export function isDefinition({
  name,
  annotation,
}: {
  readonly name: string;
  readonly annotation: Expression | null;
}): boolean {
  return annotation === null ? name === "fd" : annotation.kind === "name" && isFusionPath(annotation.name);
}
