/** The calls of an FX graph's text as ops with arguments by name. */
import { type DumpSource, failAt } from "../../host/syntax/text/source.ts";
import { pushTo } from "../../support/invariant.ts";
import type { Expression } from "../python.ts";
import { atenOverloads } from "./build.ts";
import { type Argument, torchDTypesByName } from "./graph.ts";
import { functionalTarget } from "./in-place.ts";

export interface FxCall {
  readonly target: string;
  readonly inputs: ReadonlyMap<string, Argument>;
}

/** What a name of the text stands for; null for one that is no value of the graph. */
type ValueOf = (name: string, position: number) => string | null;

const operators: ReadonlyMap<string, string> = new Map([
  ["+", "add"],
  ["-", "sub"],
  ["*", "mul"],
  ["/", "div"],
  ["//", "floor_divide"],
  ["%", "remainder"],
  ["**", "pow"],
  ["@", "matmul"],
]);

interface Functional {
  readonly op: string;
  readonly parameters: readonly string[];
}

/** Functions of torch.nn.functional that have another name or other parameters than the ATen op. */
const functionals: Readonly<Record<string, Functional>> = {
  embedding: {
    op: "embedding",
    parameters: ["indices", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"],
  },
  cross_entropy: {
    op: "cross_entropy_loss",
    parameters: "self target weight size_average ignore_index reduce reduction label_smoothing".split(" "),
  },
  dropout: { op: "dropout", parameters: ["input", "p", "train", "inplace"] },
  log_softmax: { op: "log_softmax", parameters: ["self", "dim", "_stacklevel", "dtype"] },
  mse_loss: { op: "mse_loss", parameters: ["self", "target", "size_average", "reduce", "reduction"] },
  softmax: { op: "softmax", parameters: ["self", "dim", "_stacklevel", "dtype"] },
};

/** Keywords of Python's functions, by the names of the schema. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ["axis", "dim"],
  ["keepdims", "keepdim"],
  ["training", "train"],
]);

/** Methods that convert. */
const conversions: ReadonlyMap<string, string> = new Map([
  ["float", "float32"],
  ["double", "float64"],
  ["half", "float16"],
  ["bfloat16", "bfloat16"],
  ["int", "int32"],
  ["long", "int64"],
  ["bool", "bool"],
]);

/** What the overloads of an op call their parameters, by its name without that of an overload. */
const parameterNames: ReadonlyMap<string, readonly string[]> = namesByPacket();

function namesByPacket(): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const [target, { parameters, keywords }] of atenOverloads) {
    for (const name of [...parameters, ...keywords]) pushTo(names, packetOf(target), name);
  }
  return names;
}

function packetOf(target: string): string {
  return target.slice(0, target.lastIndexOf("."));
}

/** Methods that take a list as its items. */
const spread: ReadonlySet<string> = new Set(["view", "reshape", "permute", "expand", "repeat"]);

interface Given {
  readonly name: string | null;
  readonly position: number;
  readonly value: Argument;
}

/** Null for what is no call. Throws `model-invalid`, `model-unsupported`. */
export function fxCall(source: DumpSource, expression: Expression, valueOf: ValueOf): FxCall | null {
  const given = (value: Expression): Given => ({
    name: null,
    position: value.position,
    value: argumentOf(source, value, valueOf),
  });
  if (expression.kind === "binary") {
    const name = operators.get(expression.operator) ?? "";
    return called(source, expression, `torch.${name}`, [expression.left, expression.right].map(given));
  }
  if (expression.kind === "negative") return called(source, expression, "torch.neg", [given(expression.of)]);
  if (expression.kind !== "call") return null;
  const { callee, args } = expression;
  const all = args.map(({ value, ...each }): Given => ({ ...each, value: argumentOf(source, value, valueOf) }));
  const path = attributePath(callee) ?? "";
  if (path.startsWith("torch.")) return called(source, expression, path, all);
  if (callee.kind === "attribute") {
    const dtype = torchDTypesByName.get(conversions.get(callee.name) ?? "");
    const to = dtype && { name: null, position: expression.position, value: { kind: "dtype", dtype } as const };
    const name = to === undefined ? callee.name : "to";
    return called(source, expression, `torch.${name}`, [given(callee.of), ...(to === undefined ? all : [to])]);
  }
  return failAt(source, expression.position, "model-unsupported", "the call of a function that is no op", {
    expected: "calls of torch, and of methods of tensors",
    help: "print the graph after export or of AOTAutograd, which has ATen ops alone",
  });
}

/** The names of an attribute and of what it is of, joined; null for an attribute of another expression. */
export function attributePath(expression: Expression): string | null {
  if (expression.kind === "name") return expression.name;
  const of = expression.kind === "attribute" ? attributePath(expression.of) : null;
  return of === null || expression.kind !== "attribute" ? null : `${of}.${expression.name}`;
}

function called(source: DumpSource, { position }: Expression, path: string, all: readonly Given[]): FxCall {
  const isOp = path.startsWith("torch.ops.");
  const given = isOp ? all : all.filter((each) => each.name !== "inplace");
  // `relu(x, inplace = True)` is `relu_(x)`.
  const isInPlace = all.some((each) => !given.includes(each) && each.value !== false);
  const last = path.slice(path.lastIndexOf(".") + 1);
  const functional = path.startsWith("torch.nn.functional.") ? functionals[last] : undefined;
  const name = `${functional?.op ?? last}${isInPlace ? "_" : ""}`;
  const count = given.filter((each) => each.name === null).length;
  const target = isOp && path.split(".").length > 4 ? path : overloadOf(isOp ? path : `torch.ops.aten.${name}`, count);
  // An op that Braid does not have may be one that nothing reads: its arguments have no names.
  const known = atenOverloads.get(functionalTarget(target));
  const parameters = functional?.parameters ?? known?.parameters ?? given.map((_, i) => `argument ${i}`);
  const names = known && [...parameters, ...(parameterNames.get(packetOf(functionalTarget(target))) ?? [])];
  const refuse = (at: number, what: string, found: string): never =>
    failAt(source, at, "model-unsupported", `Braid does not read ${what} of ${isOp ? target.slice(10) : name}`, {
      found,
      expected: [...new Set(names ?? parameters)].join(", "),
      help: "leave it out of the model, and print its graph again",
    });
  const inputs = new Map<string, Argument>();
  given.forEach((each, i) => {
    const isList = !isOp && spread.has(name) && i >= parameters.length - 1 && count > parameters.length;
    if (isList)
      inputs.set(
        parameters.at(-1) ?? "",
        given.slice(parameters.length - 1).map(({ value }) => value),
      );
    else if (each.name !== null) {
      const other = each.name === "input" ? parameters[0] : otherNames.get(each.name);
      const own = isOp || other === undefined ? each.name : other;
      if (names?.includes(own) === false) refuse(each.position, `the keyword ${each.name}`, each.name);
      inputs.set(own, each.value);
    } else if (parameters[i] !== undefined) inputs.set(parameters[i], each.value);
    // Python's functions have further parameters.
    else if (isOp || (each.value !== null && each.value !== false)) {
      refuse(position, `argument ${i + 1}`, `${count} arguments`);
    }
  });
  return { target, inputs };
}

/** `x[(Ellipsis, 0, slice(None, 8, None), None)]` as views, each of the one before. Null for another index. */
export function indexViews(index: Expression, rank: number): readonly FxCall[] | null {
  const items = index.kind === "list" ? index.items : [index];
  const wordOf = (item: Expression): string | null => (item.kind === "name" ? item.name : null);
  const others = items.filter((item) => wordOf(item) === null).length;
  const calls: FxCall[] = [];
  let dim = 0;
  const add = (axes: 0 | 1, op: string, args: Readonly<Record<string, Argument>>): void => {
    calls.push({ target: `torch.ops.aten.${op}`, inputs: new Map(Object.entries({ dim, ...args })) });
    dim += axes;
  };
  for (const item of items) {
    const bounds = item.kind === "call" && wordOf(item.callee) === "slice" ? item.args.map(({ value }) => value) : null;
    const [start, end, step] = (bounds ?? [item]).map(wholeIn);
    if (wordOf(item) === "Ellipsis") dim += rank - others;
    else if (wordOf(item) === "None") add(1, "unsqueeze.default", {});
    else if (bounds?.length === 3 && start !== undefined && end !== undefined && step !== undefined)
      add(1, "slice.Tensor", { start, end, step });
    else if (bounds === null && typeof start === "number") add(0, "select.int", { index: start });
    else return null;
  }
  return calls.length === 0 ? null : calls;
}

/** Null for None; undefined for another expression. */
function wholeIn(expression: Expression): number | null | undefined {
  if (expression.kind === "name") return expression.name === "None" ? null : undefined;
  const sign = expression.kind === "negative" ? -1 : 1;
  const of = expression.kind === "negative" ? expression.of : expression;
  return of.kind === "number" && !of.isFloat ? sign * of.value : undefined;
}

/** The first overload that takes so many arguments. */
function overloadOf(path: string, count: number): string {
  const functional = path.replace(/(?<=[a-z0-9])_$/u, "");
  const all = [...atenOverloads].filter(([target]) => target.startsWith(`${functional}.`));
  const [target] = all.find(([, { parameters }]) => parameters.length >= count) ?? all[0] ?? [];
  return `${path}${target?.slice(functional.length) ?? ".default"}`;
}

const words: ReadonlyMap<string, Argument> = new Map<string, Argument>([
  ["None", null],
  ["True", true],
  ["False", false],
  ["inf", Infinity],
  ["nan", Number.NaN],
]);

function argumentOf(source: DumpSource, expression: Expression, valueOf: ValueOf): Argument {
  switch (expression.kind) {
    case "number":
    case "text":
      return expression.value;
    case "list":
      return expression.items.map((each) => argumentOf(source, each, valueOf));
    case "negative": {
      const of = argumentOf(source, expression.of, valueOf);
      return typeof of === "number" ? -of : { kind: "other", text: "-" };
    }
    case "name": {
      const word = words.get(expression.name);
      if (word !== undefined) return word;
      const name = valueOf(expression.name, expression.position);
      if (name !== null) return { kind: "value", name };
      return failAt(source, expression.position, "model-invalid", `no line before makes ${expression.name}`, {
        expected: "parameters of forward and results of earlier lines",
        help: "pass the whole graph as it was printed",
      });
    }
    case "attribute": {
      const dtype = torchDTypesByName.get(expression.name);
      return dtype === undefined ? { kind: "ignored" } : { kind: "dtype", dtype };
    }
    case "call":
      // device(type='cuda', index=0)
      return { kind: "ignored" };
    case "index":
    case "binary":
      return { kind: "other", text: expression.kind };
  }
}
