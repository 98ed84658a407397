/**
 * The graph of an ExportedProgram as data: what PyTorch's schema (torch/_export/serde/schema.py, major version 8) says
 * in JSON, with names resolved to kinds of values. Later minor versions only add fields.
 */
import { fail, type Place } from "../../diagnostics/diagnostic.ts";
import { type DType, dtypesBy } from "../../numerics/dtype.ts";
import type { CallSite } from "../../support/call-site.ts";
import {
  field,
  fieldsIn,
  isAbsent,
  type Json,
  listIn,
  numberIn,
  jsonPlaceText,
  textIn,
  variantIn,
  wholeIn,
  wrongValue,
} from "../json.ts";

/** A number, or an expression of symbols as PyTorch prints it. */
export type Size = number | { readonly expression: string; readonly hint: number | null };

export interface TensorMeta {
  readonly dtype: TorchDType;
  readonly sizes: readonly Size[];
  readonly strides: readonly Size[];
  readonly offset: Size;
}

/** Null where Braid has no such dtype: its name in PyTorch says which. */
export interface TorchDType {
  readonly name: string;
  readonly braid: DType | null;
}

const braidDTypes = dtypesBy("torch");
/** Their names, for messages. */
export const torchDTypes = [...braidDTypes.keys()].join(", ");

/** By the numbers of the schema. */
const dtypeNames: Readonly<Record<number, string>> = {
  1: "uint8",
  2: "int8",
  3: "int16",
  4: "int32",
  5: "int64",
  6: "float16",
  7: "float32",
  8: "float64",
  9: "complex32",
  10: "complex64",
  11: "complex128",
  12: "bool",
  13: "bfloat16",
  28: "uint16",
  29: "float8_e4m3fn",
  30: "float8_e5m2",
  31: "float8_e4m3fnuz",
  32: "float8_e5m2fnuz",
};

/** An argument of a node. */
export type Argument =
  | null
  | boolean
  | number
  | string
  /** A tensor or symbolic number of the graph. */
  | { readonly kind: "value"; readonly name: string }
  | { readonly kind: "dtype"; readonly dtype: TorchDType }
  /** Devices, layouts and memory formats, which Braid chooses itself. */
  | { readonly kind: "ignored" }
  | { readonly kind: "other"; readonly text: string }
  | readonly Argument[];

export interface GraphNode {
  /** `torch.ops.aten.linear.default` */
  readonly target: string;
  readonly inputs: ReadonlyMap<string, Argument>;
  /** The names of its results, in order. */
  readonly outputs: readonly string[];
  /** The paths of the modules around it, outermost first; the module that a model is has the path "". */
  readonly modules: readonly ModuleCall[];
  /** The line of the user's model that made it. */
  readonly source: CallSite | null;
  /** In the file, for messages. */
  readonly place: () => Place;
}

export interface ModuleCall {
  readonly path: string;
  /** `torch.nn.modules.linear.Linear` */
  readonly type: string;
}

export type GraphInput =
  | { readonly kind: "parameter" | "buffer" | "constant"; readonly value: string; readonly name: string }
  | { readonly kind: "user"; readonly value: string }
  /** An argument of forward that export fixed. */
  | { readonly kind: "fixed" };

export interface ExportedGraph {
  readonly inputs: readonly GraphInput[];
  /** The names of the values. */
  readonly outputs: readonly string[];
  readonly nodes: readonly GraphNode[];
  readonly tensors: ReadonlyMap<string, TensorMeta>;
  /** The values that a symbol may have, by its name. */
  readonly ranges: ReadonlyMap<string, { readonly min: number | null; readonly max: number | null }>;
}

const major = 8;

/** Throws `model-invalid`, and `model-unsupported` for another version of the schema. */
export function readGraph(document: Json): ExportedGraph {
  requireVersion(document);
  const graphModule = field(document, "graph_module");
  const graph = field(graphModule, "graph");
  const signature = field(graphModule, "signature");
  const { nodes, tensors } = readBody(graph);
  return {
    inputs: listIn(field(signature, "input_specs")).map(readInput),
    outputs: listIn(field(signature, "output_specs")).flatMap(readOutput),
    nodes,
    tensors,
    ranges: new Map(
      fieldsIn(field(document, "range_constraints")).map(([name, range]) => [
        name,
        { min: boundIn(field(range, "min_val")), max: boundIn(field(range, "max_val")) },
      ]),
    ),
  };
}

/** Throws `model-unsupported`. */
function requireVersion(document: Json): void {
  const found = wholeIn(field(field(document, "schema_version"), "major"));
  if (found === major) return;
  const version = field(document, "torch_version");
  fail("model-unsupported", `the file of a model was written by ${found > major ? "a newer" : "an older"} PyTorch`, {
    place: { kind: "file", path: jsonPlaceText(field(document, "schema_version")) },
    found: `version ${found} of the schema, of PyTorch ${isAbsent(version) ? "2.4 or earlier" : textIn(version)}`,
    expected: `version ${major}, of PyTorch 2.6 to 2.13`,
    help:
      found > major
        ? "export the model with PyTorch 2.13, or use a newer Braid"
        : "export the model again with PyTorch 2.13",
  });
}

function boundIn(json: Json): number | null {
  return isAbsent(json) ? null : numberIn(json);
}

function readInput(spec: Json): GraphInput {
  const [kind, body] = variantIn(spec);
  const argument = (): string => textIn(field(field(body, "arg"), "name"));
  switch (kind) {
    case "parameter":
      return { kind, value: argument(), name: textIn(field(body, "parameter_name")) };
    case "buffer":
      return { kind, value: argument(), name: textIn(field(body, "buffer_name")) };
    case "tensor_constant":
      return { kind: "constant", value: argument(), name: textIn(field(body, "tensor_constant_name")) };
    case "constant_input":
      return { kind: "fixed" };
    case "user_input": {
      const given = readArgument(field(body, "arg"));
      if (isValue(given)) return { kind: "user", value: given.name };
      return { kind: "fixed" };
    }
    default:
      return unsupportedPart(spec, `an input that is a ${kind}`, "tensors, and numbers that export fixed");
  }
}

/** The name of the value; nothing for None. */
function readOutput(spec: Json): readonly string[] {
  const [kind, body] = variantIn(spec);
  if (kind !== "user_output" && kind !== "loss_output") {
    return unsupportedPart(spec, `an output of kind ${kind}`, "a model in eval mode that changes no buffer");
  }
  const argument = field(body, "arg");
  if (kind === "loss_output") return [textIn(field(argument, "name"))];
  const given = readArgument(argument);
  if (given === null) return [];
  return isValue(given) ? [given.name] : unsupportedPart(spec, "an output that is no tensor", "tensors, or None");
}

function unsupportedPart(json: Json, found: string, expected: string): never {
  return fail("model-unsupported", "the signature of a model has something that Braid does not have", {
    place: { kind: "file", path: jsonPlaceText(json) },
    found,
    expected,
    help: "export a module whose forward takes and returns tensors",
  });
}

export function isValue(argument: Argument): argument is Extract<Argument, { readonly kind: "value" }> {
  return typeof argument === "object" && argument !== null && "kind" in argument && argument.kind === "value";
}

interface GraphBody {
  readonly nodes: readonly GraphNode[];
  readonly tensors: ReadonlyMap<string, TensorMeta>;
}

/** The nodes of a graph, in which those of regions stand in place of the calls of regions. */
function readBody(graph: Json): GraphBody {
  const tensors = new Map(fieldsIn(field(graph, "tensor_values")).map(([name, each]) => [name, readMeta(each)]));
  const nodes = listIn(field(graph, "nodes")).flatMap((json) => {
    const region = regionIn(json);
    if (region === null) return [readNode(json)];
    const inlined = inline(readNode(json), region, tensors);
    for (const [name, meta] of inlined.tensors) tensors.set(name, meta);
    return inlined.nodes;
  });
  return { nodes, tensors };
}

/** A part of the model that ran under torch.no_grad or without autocast: its own graph, and what it is called with. */
interface Region {
  readonly name: string;
  readonly graph: Json;
  readonly operands: readonly Json[];
  readonly detached: boolean;
}

/** Null for another node, and for a region in which autocast changes dtypes. */
function regionIn(json: Json): Region | null {
  const target = textIn(field(json, "target"));
  const [, mode] = /^torch\.ops\.higher_order\.wrap_with_(set_grad_enabled|autocast)$/u.exec(target) ?? [];
  if (mode === undefined) return null;
  const given = listIn(field(json, "inputs")).map((input) => field(input, "arg"));
  const position = given.findIndex((each) => variantIn(each)[0] === "as_graph");
  const called = given[position];
  const flags = given
    .slice(0, position)
    .flatMap((each) => (variantIn(each)[0] === "as_bool" ? [readArgument(each)] : []));
  if (called === undefined || (mode === "autocast" && flags[0] !== false)) return null;
  const [, body] = variantIn(called);
  return {
    name: textIn(field(body, "name")),
    graph: field(body, "graph"),
    operands: given.slice(position + 1),
    detached: mode === "set_grad_enabled" && flags[0] === false,
  };
}

/** The nodes of a region, whose values get other names where the graph around it has the same. */
function inline(call: GraphNode, region: Region, around: ReadonlyMap<string, TensorMeta>): GraphBody {
  const body = readBody(region.graph);
  const names = new Map<string, Argument>();
  listIn(field(region.graph, "inputs")).forEach((input, i) => {
    const operand = region.operands[i];
    const own = readArgument(input);
    if (isValue(own) && operand !== undefined) names.set(own.name, readArgument(operand));
  });
  const nameOf = (name: string): string => (around.has(name) ? `${region.name}.${name}` : name);
  const renamed = (argument: Argument): Argument => {
    if (isList(argument)) return argument.map(renamed);
    if (!isValue(argument)) return argument;
    return names.get(argument.name) ?? { ...argument, name: nameOf(argument.name) };
  };
  const nodes = body.nodes.map((node) => ({
    ...node,
    inputs: new Map([...node.inputs].map(([name, argument]) => [name, renamed(argument)])),
    outputs: node.outputs.map((name) => (name === "" ? "" : nameOf(name))),
  }));
  const results = listIn(field(region.graph, "outputs")).map((output) => renamed(readArgument(output)));
  const target = `torch.ops.aten.${region.detached ? "detach" : "alias"}.default`;
  const handed = call.outputs.map((name, i): GraphNode => ({
    ...call,
    target,
    inputs: new Map([["self", results[i] ?? null]]),
    outputs: [name],
  }));
  return {
    nodes: [...nodes, ...handed],
    tensors: new Map([...body.tensors].map(([name, meta]) => [nameOf(name), meta])),
  };
}

function readNode(json: Json): GraphNode {
  const metadata = field(json, "metadata");
  const text = (key: string): string => {
    const found = field(metadata, key);
    return isAbsent(found) ? "" : textIn(found);
  };
  const target = textIn(field(json, "target"));
  // run_decompositions makes an alias of it.
  const isDetach = target === "torch.ops.aten.alias.default" && /"aten\.detach_?\.default"/u.test(text("from_node"));
  return {
    target: isDetach ? "torch.ops.aten.detach.default" : target,
    inputs: new Map(
      listIn(field(json, "inputs")).map((input) => [textIn(field(input, "name")), readArgument(field(input, "arg"))]),
    ),
    outputs: listIn(field(json, "outputs")).flatMap((output) => {
      const [kind] = variantIn(output);
      // A result that nothing reads.
      if (kind === "as_none") return [""];
      return namesIn(readArgument(output), output);
    }),
    modules: modulesIn(text("nn_module_stack")),
    source: sourceIn(text("stack_trace")),
    place: () => ({ kind: "file", path: jsonPlaceText(json) }),
  };
}

function namesIn(argument: Argument, json: Json): readonly string[] {
  if (isValue(argument)) return [argument.name];
  if (isList(argument)) return argument.flatMap((each) => namesIn(each, json));
  return wrongValue(json, "names of values");
}

export function isList(argument: Argument): argument is readonly Argument[] {
  return Array.isArray(argument);
}

const readName = (json: Json): Argument => ({ kind: "value", name: textIn(field(json, "name")) });

const readList =
  (read: (each: Json) => Argument) =>
  (json: Json): Argument =>
    listIn(json).map(read);

const readSymbolic = (json: Json): Argument => {
  const [form, body] = variantIn(json);
  if (form === "as_name") return { kind: "value", name: textIn(body) };
  return form === "as_bool" ? booleanIn(body) : numberIn(body);
};

const ignore = (): Argument => ({ kind: "ignored" });

/** By the kind of an argument. A list of them has an `s` at the end. */
const argumentReaders: ReadonlyMap<string, (json: Json) => Argument> = new Map(
  Object.entries({
    as_none: () => null,
    as_tensor: readName,
    as_optional_tensor: (json: Json): Argument => {
      const [form, body] = variantIn(json);
      return form === "as_none" ? null : readName(body);
    },
    as_nested_tensor: readList(readName),
    as_int: numberIn,
    as_float: numberIn,
    as_int_list: readList(numberIn),
    as_string: textIn,
    as_bool: booleanIn,
    as_sym_int: readSymbolic,
    as_sym_float: readSymbolic,
    as_sym_bool: readSymbolic,
    as_scalar_type: (json: Json): Argument => ({ kind: "dtype", dtype: dtypeIn(json) }),
    as_device: ignore,
    as_layout: ignore,
    as_memory_format: ignore,
  }),
);

function readArgument(json: Json): Argument {
  const [kind, body] = variantIn(json);
  const each = argumentReaders.get(kind.replace(/s$/u, ""));
  const read = argumentReaders.get(kind) ?? (each === undefined ? undefined : readList(each));
  return read === undefined ? { kind: "other", text: kind.replace(/^as_/u, "") } : read(body);
}

function booleanIn(json: Json): boolean {
  return typeof json.value === "boolean" ? json.value : wrongValue(json, "true or false");
}

function dtypeIn(json: Json): TorchDType {
  return torchDType(dtypeNames[wholeIn(json)] ?? wrongValue(json, "the number of a dtype"));
}

function torchDType(name: string): TorchDType {
  return { name, braid: braidDTypes.get(name) ?? null };
}

/** By `float32`, and by `f32`, as PyTorch prints it beside shapes. */
export const torchDTypesByName: ReadonlyMap<string, TorchDType> = new Map(
  [...Object.values(dtypeNames), "uint32", "uint64"].flatMap((name) => {
    const short = name.replace(/float|complex|uint|int/u, (word) => word.charAt(0)).replace("_", "");
    return [name, short === "bool" ? "b8" : short].map((each): [string, TorchDType] => [each, torchDType(name)]);
  }),
);

export function readMeta(json: Json): TensorMeta {
  return {
    dtype: dtypeIn(field(json, "dtype")),
    sizes: listIn(field(json, "sizes")).map(sizeIn),
    strides: listIn(field(json, "strides")).map(sizeIn),
    offset: sizeIn(field(json, "storage_offset")),
  };
}

function sizeIn(json: Json): Size {
  const [kind, body] = variantIn(json);
  if (kind === "as_int") return wholeIn(body);
  const hint = field(body, "hint");
  return {
    expression: textIn(field(body, "expr_str")),
    hint: isAbsent(hint) ? null : numberIn(variantIn(hint)[1]),
  };
}

/** `L__self__,,Model;L__self__up,up,torch.nn.modules.linear.Linear`: a key, a path and a type for each module. */
function modulesIn(text: string): readonly ModuleCall[] {
  if (text === "") return [];
  return text.split(";").map((entry) => {
    const [, path = "", ...type] = entry.split(",");
    return { path, type: type.join(",") };
  });
}

/** The innermost frame outside of packages; the innermost of all where there is none. */
function sourceIn(trace: string): CallSite | null {
  const frames = Array.from(trace.matchAll(/File "([^"]+)", line (\d+)/gu), ([, path = "", line]) => ({
    path,
    line: Number(line),
    column: 1,
  }));
  return frames.findLast(({ path }) => !/(?:^|\/)(?:site|dist)-packages\//u.test(path)) ?? frames.at(-1) ?? null;
}
