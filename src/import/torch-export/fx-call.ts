/** The calls of an FX graph's text as ops with arguments by name. */
import { type DumpSource, failAt } from "../../host/syntax/text/source.ts";
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
  mse_loss: { op: "mse_loss", parameters: ["self", "target", "size_average", "reduce", "reduction"] },
};

/** Methods that take a list as its items. */
const spread: ReadonlySet<string> = new Set(["view", "reshape", "permute", "expand", "repeat"]);

interface Given {
  readonly name: string | null;
  readonly value: Argument;
}

/** Null for what is no call. Throws `model-invalid`, `model-unsupported`. */
export function fxCall(source: DumpSource, expression: Expression, valueOf: ValueOf): FxCall | null {
  const given = (value: Expression): Given => ({ name: null, value: argumentOf(source, value, valueOf) });
  if (expression.kind === "binary") {
    const name = operators.get(expression.operator) ?? "";
    return called(source, expression, `torch.${name}`, [expression.left, expression.right].map(given));
  }
  if (expression.kind === "negative") return called(source, expression, "torch.neg", [given(expression.of)]);
  if (expression.kind !== "call") return null;
  const { callee, args } = expression;
  const all = args.map(({ name, value }): Given => ({ name, value: argumentOf(source, value, valueOf) }));
  const path = attributePath(callee) ?? "";
  if (path.startsWith("torch.")) return called(source, expression, path, all);
  if (callee.kind === "attribute")
    return called(source, expression, `torch.${callee.name}`, [given(callee.of), ...all]);
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
  const inputs = new Map<string, Argument>();
  given.forEach((each, i) => {
    const isList = !isOp && spread.has(name) && i >= parameters.length - 1 && count > parameters.length;
    if (isList)
      inputs.set(
        parameters.at(-1) ?? "",
        given.slice(parameters.length - 1).map(({ value }) => value),
      );
    else if (each.name !== null) {
      const isSelf = each.name === "input" && parameters[0] === "self";
      inputs.set(isSelf ? "self" : each.name, each.value);
    } else if (parameters[i] !== undefined) inputs.set(parameters[i], each.value);
    // Python's functions have further parameters.
    else if (isOp || (each.value !== null && each.value !== false)) {
      failAt(source, position, "model-unsupported", `Braid does not read argument ${i + 1} of ${name}`, {
        found: `${count} arguments`,
        expected: parameters.join(", "),
        help: "leave it out of the model, and print its graph again",
      });
    }
  });
  return { target, inputs };
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
