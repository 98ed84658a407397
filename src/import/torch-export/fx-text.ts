/**
 * An FX graph as PyTorch prints it, in the form that a .pt2 file has: by print_readable(), as an ExportedProgram, in
 * files of tlparse and under TORCH_LOGS (graph_code, aot_graphs). Annotations give the shapes. There are no weights.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { type DumpSource, failAt, sourcePlaceAt } from "../../host/syntax/text/source.ts";
import type { CallSite } from "../../support/call-site.ts";
import { at, countWhile } from "../../support/invariant.ts";
import { type Expression, type PythonStatement, readPython } from "../python.ts";
import { type FxCall, fxCall, attributePath, indexViews } from "./fx-call.ts";
import {
  type Argument,
  type GraphInput,
  type GraphNode,
  isValue,
  type Size,
  type TensorMeta,
  torchDTypesByName,
} from "./graph.ts";
import { withoutInPlace } from "./in-place.ts";
import type { ExportedProgram } from "./read.ts";

/** Parts of one result. */
const mostResults = 65_536;

type Assignment = Extract<PythonStatement, { readonly kind: "assign" }>;

/** Throws `model-syntax`, `model-invalid`, `model-unsupported`. */
export function readFxText(text: string, file = "model"): ExportedProgram {
  const source = graphIn(text, file);
  const [forward] = readPython(source, true);
  const { parameters, body } = forward?.kind === "def" ? forward : noGraph(file);
  const signature = signatureIn(text);
  const lineOf = modelLines(source.text);
  const inputs: GraphInput[] = [];
  const tensors = new Map<string, TensorMeta>();
  const outputs: string[] = [];
  /** By name: the value that it stands for. */
  const values = new Map<string, string>();
  const nodes: (FxCall & { readonly name: string; readonly position: number; readonly results: string[] })[] = [];
  const results = new Map<string, string[]>();

  const define = (name: string, annotation: Expression | null): void => {
    values.set(name, name);
    const meta = annotation === null ? null : metaIn(source, annotation);
    if (meta !== null) tensors.set(name, meta);
  };
  /** Later lines would read the value of the earlier one. */
  const requireNew = (name: string, position: number): void => {
    if (!values.has(name)) return;
    failAt(source, position, "model-invalid", `two lines make ${name}`, {
      expected: "a name of its own for each value, as PyTorch prints them",
      help: "give the second one another name, and read that after it",
    });
  };
  const opaque = new Set(["None"]);
  /** Of a random generator, which no op reads without dropout. */
  const isState = (name: string): boolean => tensors.get(name)?.dtype.name === "uint64";
  /** A parameter without a shape may be one that no op reads: a size, or a mesh. */
  const input = (value: string, annotation: Expression | null, kind: GraphInput): void => {
    define(value, annotation);
    const isOpaque = !tensors.has(value) || isState(value);
    inputs.push(isOpaque ? { kind: "fixed" } : kind);
    if (isOpaque) opaque.add(value);
  };
  const valueOf = (name: string, position: number): string | null => {
    const value = values.get(name);
    if (value === undefined || tensors.has(value) || results.has(value)) return value ?? null;
    return failAt(source, position, "model-unsupported", `the text does not say the dtype and the shape of ${name}`, {
      expected: `an annotation such as ${name}: "f32[4, 16]"`,
      help: "print the graph with gm.print_readable(), not gm.code, and with sizes that are numbers",
    });
  };
  const node = (name: string, position: number, call: FxCall): void => {
    const own: string[] = [];
    const plain = (argument: Argument): Argument =>
      isValue(argument) && isState(argument.name) ? { kind: "other", text: argument.name } : argument;
    const given = new Map([...call.inputs].map(([parameter, argument]) => [parameter, plain(argument)]));
    nodes.push({ target: call.target, inputs: given, name, position, results: own });
    results.set(name, own);
  };
  const assign = ({ targets, annotation, value, position }: Assignment): void => {
    const [name] = targets;
    if (name === undefined || targets.length > 1) return refuse(source, position);
    // Python forgets the value.
    if (value.kind === "name" && value.name === "None") return;
    requireNew(name, position);
    const path = attributePath(value);
    if (path?.startsWith("self.") === true) {
      const known = values.get(path);
      if (known !== undefined) return void values.set(name, known);
      input(name, annotation, { kind: "parameter", value: name, name: path.slice("self.".length) });
      return void values.set(path, name);
    }
    if (value.kind === "name") return void values.set(name, values.get(value.name) ?? refuse(source, position));
    const { of, at: index } = value.kind === "index" ? value : { of: null, at: null };
    const read = of?.kind === "name" ? (values.get(of.name) ?? of.name) : "";
    const list = tensors.has(read) ? undefined : results.get(read);
    const views = index === null ? null : indexViews(index, tensors.get(read)?.sizes.length ?? 0);
    if (list !== undefined && index?.kind === "number") {
      if (!(index.value < mostResults) || index.isFloat) return refuse(source, index.position);
      const known = list[index.value];
      if (known !== undefined) return void values.set(name, known);
      list[index.value] = name;
      results.set(name, []);
    } else if (tensors.has(read) && views !== null) {
      views.forEach(({ target, inputs: given }, i) => {
        const self: Argument = { kind: "value", name: i === 0 ? read : `${name}.${i - 1}` };
        const inputs = new Map([["self", self], ...given]);
        node(i === views.length - 1 ? name : `${name}.${i}`, position, { target, inputs });
      });
    } else node(name, position, fxCall(source, value, valueOf) ?? refuse(source, position));
    define(name, annotation);
  };

  const bare = new Map(body.flatMap((each) => (each.kind === "annotation" ? [[each.name, each.annotation]] : [])));
  for (const { name, annotation } of parameters) {
    if (name === "self") continue;
    requireNew(name, 0);
    const { kind, name: own } = signature.get(name) ?? dynamoInput(name) ?? { kind: "user" as const, name };
    input(
      name,
      annotation ?? bare.get(name) ?? null,
      kind === "user" ? { kind, value: name } : { kind, value: name, name: own },
    );
  }
  // A joint graph takes lists of them.
  for (const [name, annotation] of bare) {
    if (!values.has(name)) input(name, annotation, { kind: "user", value: name });
  }
  for (const statement of body) {
    switch (statement.kind) {
      case "assign":
        assign(statement);
        break;
      case "return":
        if (outputs.length > 0) refuse(source, statement.position);
        for (const each of returned(statement.value, (name) => opaque.has(name) || isState(name))) {
          const value = each.kind === "name" ? valueOf(each.name, each.position) : null;
          outputs.push(value ?? refuse(source, each.position));
        }
        break;
      // Checks of sizes.
      case "expression":
      case "annotation":
        break;
      default:
        refuse(source, statement.position);
    }
  }
  const owners = new Map(
    inputs.flatMap((each) =>
      each.kind === "parameter" && each.name.includes(".")
        ? [[each.value, { path: each.name.slice(0, each.name.lastIndexOf(".")), type: "" }]]
        : [],
    ),
  );
  /** The text does not say them. The op that reads a parameter is of the module that has it. */
  const modulesOf = (given: FxCall["inputs"]): GraphNode["modules"] =>
    [...given.values()].flatMap((each) => (isValue(each) ? (owners.get(each.name) ?? []) : [])).slice(0, 1);
  const read = nodes.map(({ target, inputs: given, name, position, results: parts }): GraphNode => ({
    target,
    inputs: given,
    // Parts that nothing reads have no lines, and names that no line has.
    outputs: parts.length === 0 ? [name] : Array.from(parts, (part, i) => part ?? `${name}.${i}`),
    modules: modulesOf(given),
    source: lineOf(position),
    place: () => {
      const { line, column } = sourcePlaceAt(source, position);
      return { kind: "file", path: file, line, column };
    },
  }));
  return {
    path: file,
    graph: { inputs, tensors, ranges: new Map(), ...withoutInPlace({ nodes: read, outputs, inputs }) },
    payloads: new Map(),
  };
}

function refuse(source: DumpSource, position: number): never {
  return failAt(source, position, "model-unsupported", "a line of a graph that Braid does not read", {
    expected: "calls of ops, parts of their results, and attributes of self",
    help: "print the graph after export or of AOTAutograd, which has ATen ops alone",
  });
}

function noGraph(file: string, line = 1, found = "no def forward(self, ..)"): never {
  return fail("model-syntax", "the text is not that of one FX graph", {
    place: { kind: "file", path: file, line, column: 1 },
    found,
    expected: "one function def forward(self, ..)",
    help: "keep the lines of one graph, as gm.print_readable() or print(exported_program) writes them",
  });
}

/** A line of TORCH_LOGS begins with the rank, the time, the file and the artifact. */
const logPrefix = /^(?:\[rank\d+\]:)?[CEIVW]\d{4} \S+ \d+ \S+\] (?:\[[^\]]*\] )*(?:\[[^\]]*\]$)?/u;
/** What a module that was unlifted does with its arguments. */
const noOps = /^.*= (?:fx_pytree\.|self\._guards_fn\().*$/gmu;

/** The function of the text. Throws `model-syntax`. */
function graphIn(text: string, file: string): DumpSource {
  const lines = text.split("\n");
  const prefix = lines.map((line) => logPrefix.exec(line)?.[0]).find(Boolean) ?? "";
  const own = prefix === "" ? lines : lines.map((line) => (logPrefix.test(line) ? line.replace(logPrefix, "") : ""));
  const starts = own.flatMap((line, i) => (/^\s*def forward\((?:self\b|\s*$)/u.test(line) ? [i] : []));
  const [start, second] = starts;
  if (start === undefined) return noGraph(file);
  if (second !== undefined) return noGraph(file, second + 1, `${starts.length} graphs, the second one here`);
  const indentation = at(own, start).search(/\S/u);
  // The parameters may end in a line of their own.
  const isEnd = (line: string): boolean => /^\s*[^\s)]/u.test(line) && line.search(/\S/u) <= indentation;
  const length = own.slice(start + 1).findIndex(isEnd);
  const body = own.slice(start, length < 0 ? own.length : start + 1 + length);
  const plain = body.map((line) => line.slice(indentation)).join("\n");
  return {
    file,
    text: plain.replaceAll(noOps, ""),
    firstLine: start + 1,
    prefixLength: prefix.length + indentation,
    lines: null,
  };
}

interface NamedInput {
  readonly kind: "parameter" | "buffer" | "constant";
  readonly name: string;
}

const signatureKinds: ReadonlyMap<string, NamedInput["kind"]> = new Map([
  ["PARAMETER", "parameter"],
  ["BUFFER", "buffer"],
  ["CONSTANT_TENSOR", "constant"],
]);

/** By the name of a parameter of forward: what a printed ExportedProgram says of its inputs. */
function signatureIn(text: string): ReadonlyMap<string, NamedInput> {
  return new Map(
    Array.from(text.matchAll(/^\s*(\w+): ([A-Z_]+) target='([^']+)'/gmu)).flatMap(
      ([, value = "", word = "", name = ""]) => {
        const kind = signatureKinds.get(word);
        return kind === undefined ? [] : [[value, { kind, name }] as const];
      },
    ),
  );
}

/** `L_self_modules_layers_modules_0_parameters_weight_`: layers.0.weight. */
function dynamoInput(value: string): NamedInput | null {
  const [, modules = "", kind, name = ""] =
    /^L_self_((?:modules_.+?_)?)(parameters|buffers)_(\w+)_$/u.exec(value) ?? [];
  if (kind === undefined) return null;
  const path = modules.split(/_?modules_|_$/u).filter((part) => part !== "");
  return { kind: kind === "buffers" ? "buffer" : "parameter", name: [...path, name].join(".") };
}

/** The line of the model that comments name, by position in the text. */
function modelLines(text: string): (position: number) => CallSite | null {
  const comments = Array.from(text.matchAll(/# (?:File: (.+?):(\d+) in |No stacktrace)/gu));
  return (position) => {
    const [, path, line] = comments[countWhile(comments, ({ index }) => index < position) - 1] ?? [];
    return path === undefined ? null : { path, line: Number(line), column: 1 };
  };
}

/** `f32[4, 16]`, with strides and the device after it or not; null for a number. Throws `model-unsupported`. */
function metaIn(source: DumpSource, annotation: Expression): TensorMeta | null {
  const [, short = "", shape] = (annotation.kind === "text" && /^(\w+)\[([^\]]*)\]/u.exec(annotation.value)) || [];
  if (shape === undefined) return null;
  const dtype = torchDTypesByName.get(short);
  if (dtype === undefined) {
    return failAt(source, annotation.position, "model-unsupported", `Braid has no dtype ${short}`, {
      expected: [...torchDTypesByName.keys()].join(", "),
      help: "convert the tensor in the model, and print its graph again",
    });
  }
  const sizes = shape.split(/, */u).filter((size) => size !== "");
  const sizeOf = (size: string): Size => (/^\d+$/u.test(size) ? Number(size) : { expression: size, hint: null });
  return { dtype, sizes: sizes.map(sizeOf), strides: [], offset: 0 };
}

/** What `return (a, b)` and `return pytree.tree_unflatten((a, b), self._out_spec)` return, but for what is no tensor. */
function returned(value: Expression, isOpaque: (name: string) => boolean): readonly Expression[] {
  if (value.kind === "call") return value.args[0] === undefined ? [] : returned(value.args[0].value, isOpaque);
  const all = value.kind === "list" ? value.items : [value];
  const tensors = all.filter((each) => each.kind !== "name" || !isOpaque(each.name));
  return tensors.length === 0 ? all : tensors;
}
