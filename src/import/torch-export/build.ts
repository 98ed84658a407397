/**
 * The graph of torch.export as a Fusion. Parameters and buffers become inputs. What depends on constants alone
 * (positions, masks, tables of rotary embeddings) is evaluated once, here, by the same rows of ops. Tensors keep the
 * names of parameters, modules and nodes, and the lines of the model that made them.
 */
import { DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import { inDType } from "../../ir/api/ops/compositions/compose.ts";
import { full, iota } from "../../ir/api/ops/creation.ts";
import { float8Linear } from "../../ir/api/ops/compositions/float8-linear.ts";
import { expand } from "../../ir/api/ops/shape.ts";
import { select, set } from "../../ir/api/ops/views.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { fusionState } from "../../ir/api/handle.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { constantValue } from "../../ir/scalar/fold.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { type Float8Recipe, float8Recipes } from "../../ir/fusion-data.ts";
import { dtypes } from "../../numerics/dtype.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import { evaluateFusion, valuesOnly } from "../../oracle/evaluate.ts";
import { siteText } from "../../support/call-site.ts";
import { at } from "../../support/invariant.ts";
import {
  type Argument,
  type ExportedGraph,
  type GraphInput,
  type GraphNode,
  isList,
  isValue,
  type TensorMeta,
} from "./graph.ts";
import { importedFusion } from "../origins.ts";
import { alongAxis } from "../views.ts";
import { views } from "./in-place.ts";
import { uniformIn } from "../index-forms.ts";
import { knownMask, type MaskNodes } from "./masks.ts";
import { indexForms } from "./index-forms.ts";
import { type ExportedModel, type ModelInput, type ModelOutput, described, locate, withName } from "./model.ts";
import { extentOf, modelInput, refuseInput, type Symbols } from "./model-input.ts";
import { braidDType, type Building, moduleText, nodeOperands, unsupportedNode, type NodeValue } from "./operands.ts";
import type { ExportedProgram } from "./read.ts";
import { isCollective } from "./group-collective.ts";
import { groupCollectiveRows } from "./rows/collectives.ts";
import { attentionRows } from "./rows/attention.ts";
import { atenBackwardRows } from "./rows/backward.ts";
import { computeRows, expertRows } from "./rows/compute.ts";
import { normRows } from "./rows/norms.ts";
import { atenActivationRows } from "./rows/activations.ts";
import { atenElementwiseRows } from "./rows/elementwise.ts";
import { functionRows } from "./rows/functions.ts";
import { atenIndexingRows, primRows, sizeRows } from "./rows/indexing.ts";
import { type AtenRow, type RowResult, type AtenRows, isResults } from "./rows/row.ts";
import { atenShapeRows } from "./rows/shape.ts";
import { isComplex, type WeightPayload } from "./weights.ts";

/** A copy, which may lie on devices in another way: plans add such nodes. */
export const copyTarget = "braid.copy";
/** A linear of 8-bit floats by a recipe, to plans a linear. Its further operands are the parts of float8Linear. */
export const float8Target = (recipe: Float8Recipe): string => `braid.linear.${recipe}`;

const groups: Readonly<Record<string, AtenRows>> = {
  Elementwise: new Map([...atenElementwiseRows, ...functionRows]),
  Activations: atenActivationRows,
  Shapes: atenShapeRows,
  "Creation, indices, complex numbers": atenIndexingRows,
  "Contractions, reductions": computeRows,
  "Convolutions, norms": normRows,
  Attention: attentionRows,
  "Backward passes": atenBackwardRows,
  "Mixtures of experts": expertRows,
  "Collectives of one rank's graph": groupCollectiveRows,
  Sizes: sizeRows,
  "Inductor's": primRows,
};

/** By target. */
export const atenOverloads: AtenRows = new Map(Object.values(groups).flatMap((group) => [...group]));

const rows: ReadonlyMap<string, AtenRow> = new Map([
  ...[...atenOverloads].map(([target, { row }]): [string, AtenRow] => [target, row]),
  [copyTarget, (o) => set(o.tensor("self"))],
  ...float8Recipes.map((recipe): [string, AtenRow] => [
    float8Target(recipe),
    (o) => {
      const parts = { in: o.number("parts of inputs"), out: o.number("parts of outputs") };
      return float8Linear(o.tensor("input"), o.tensor("weight"), o.tensorOr("bias"), recipe, parts);
    },
  ]),
]);

/** The ops that Braid reads, by group. */
export const readOps: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries(groups).map(([name, group]) => [name, [...group.keys()]]),
);

/** Nodes that only check what export has assumed. */
const checks = /^torch\.ops\.aten\.(?:_assert\w*|sym_constrain_range\w*)\./u;

/** The program computes larger constants itself. */
const mostFolded = 2 ** 20;

type Source = Exclude<GraphInput, { readonly kind: "fixed" }>;

/** What is known of the graph before anything is built. */
interface Facts {
  readonly graph: ExportedGraph;
  readonly payloads: ReadonlyMap<string, WeightPayload>;
  readonly path: string;
  /** The node that makes a value. */
  readonly producers: ReadonlyMap<string, GraphNode>;
  /** Of the nodes. */
  readonly order: ReadonlyMap<GraphNode, number>;
  readonly sources: ReadonlyMap<string, Source>;
  /** Values that depend on no elements of user inputs and parameters. */
  readonly constants: ReadonlySet<string>;
  readonly masks: MaskNodes;
}

/** A Fusion that values are built in: the model's, or one that evaluates a constant. */
interface Space {
  readonly fusion: Fusion;
  readonly provenance: Building["provenance"];
  readonly collectives: Building["collectives"];
  readonly masks: Building["masks"];
  readonly values: Map<string, NodeValue>;
  readonly input: (source: Source) => TensorView;
  /** A value of constants alone, unless the space builds it as any other. */
  readonly constant: ((value: string) => TensorView | null) | null;
}

function emptySpace(fusion: Fusion): Omit<Space, "input" | "constant"> {
  return { fusion, provenance: new Map(), collectives: new Map(), masks: new Map(), values: new Map() };
}

/** `fold`: evaluates constants here, as inputs with values. Throws `model-invalid`, `model-unsupported`. */
export function buildModel({ graph, payloads, path }: ExportedProgram, fold = true): ExportedModel {
  const facts = factsOf(graph, payloads, path);
  const fusion = importedFusion();
  const inputs: ModelInput[] = [];
  const symbols: Symbols = { scalars: new Map(), sizes: new Map(), ranges: graph.ranges };
  const main: Space = {
    ...emptySpace(fusion),
    input: (source) => {
      const name = source.kind === "user" ? source.value : source.name;
      const tensor = modelInput(fusion, path, name, metaOf(facts, source.value), symbols);
      inputs.push({ name, kind: source.kind, tensor, read: () => payloads.get(name)?.read() ?? null });
      return tensor;
    },
    constant: (value) => {
      const formed = formedConstant(facts, fusion, value, symbols);
      if (formed !== null) return formed;
      const node = facts.producers.get(value);
      // Several views of one constant are views of one input. What an op makes of numbers alone needs no input.
      const isOwn = node !== undefined && (views.test(node.target) || readsOf(node).length === 0);
      const tensor = isOwn || !fold ? null : evaluated(facts, value);
      if (tensor === null) return null;
      const view = withName(fusion.input(tensor.shape, tensor.dtype), `folded/${value}`);
      inputs.push({ name: `folded/${value}`, kind: "folded", tensor: view, read: () => tensor });
      return view;
    },
  };
  for (const source of facts.sources.values()) if (source.kind === "user") valueIn(facts, main, source.value);
  // In the order of the file, so that no value is built deep inside of another one.
  const live = liveNodes(facts);
  for (const node of graph.nodes) {
    const [name] = node.outputs;
    if (name !== undefined && live.has(node) && !facts.constants.has(name)) valueIn(facts, main, name);
  }
  const outputs = graph.outputs.map((value, i): ModelOutput => {
    const tensor = outputTensor(facts, main, value);
    fusion.output(tensor);
    return { name: graph.outputs.length === 1 ? "y" : `out${i}`, tensor };
  });
  fusion[fusionState].marksCalls = true;
  const tensorOf = (value: string): TensorView | null => {
    const found = main.values.get(value);
    return found?.kind === "tensor" ? found.view : null;
  };
  return { path, fusion, inputs, outputs, sizes: symbols.sizes, graph, tensorOf, collectives: main.collectives };
}

function factsOf(graph: ExportedGraph, payloads: ReadonlyMap<string, WeightPayload>, path: string): Facts {
  const sources = new Map(
    graph.inputs.flatMap((input): [string, Source][] => (input.kind === "fixed" ? [] : [[input.value, input]])),
  );
  const producers = new Map<string, GraphNode>();
  const constants = new Set<string>();
  for (const [value, { kind }] of sources) if (kind === "buffer" || kind === "constant") constants.add(value);
  for (const node of graph.nodes) {
    // A size is known before a run is, even if it is a symbol.
    const isConstant =
      sizeRows.has(node.target) || (!isCollective(node) && readsOf(node).every((value) => constants.has(value)));
    for (const output of node.outputs) {
      producers.set(output, node);
      if (isConstant) constants.add(output);
    }
  }
  const nodeOf = (value: string): GraphNode | undefined => producers.get(value);
  const metaOfValue = (value: string): TensorMeta | undefined => graph.tensors.get(value);
  const masks: MaskNodes = { nodeOf, metaOf: metaOfValue, formOf: indexForms(nodeOf, metaOfValue) };
  const order = new Map(graph.nodes.map((node, i) => [node, i]));
  return { graph, payloads, path, producers, order, sources, constants, masks };
}

/** The values that a node reads. */
export function readsOf({ inputs }: GraphNode): readonly string[] {
  const names = (argument: Argument): readonly string[] => {
    if (isList(argument)) return argument.flatMap(names);
    return isValue(argument) ? [argument.name] : [];
  };
  return [...inputs.values()].flatMap(names);
}

/** The nodes that outputs depend on. */
function liveNodes({ graph }: Facts): ReadonlySet<GraphNode> {
  const wanted = new Set(graph.outputs);
  const live = new Set<GraphNode>();
  for (const node of graph.nodes.toReversed()) {
    if (checks.test(node.target) || !node.outputs.some((output) => wanted.has(output))) continue;
    live.add(node);
    for (const value of readsOf(node)) wanted.add(value);
  }
  return live;
}

function valueIn(facts: Facts, space: Space, name: string): NodeValue {
  const known = space.values.get(name);
  if (known !== undefined) return known;
  const source = facts.sources.get(name);
  if (source !== undefined) {
    const view = space.input(source);
    const { dtype } = facts.graph.tensors.get(name) ?? {};
    const isPair = dtype !== undefined && isComplex(dtype);
    const made: NodeValue = isPair
      ? { kind: "complex", re: select(view, -1, 0), im: select(view, -1, 1) }
      : { kind: "tensor", view };
    space.values.set(name, made);
    return made;
  }
  const node = facts.producers.get(name);
  if (node === undefined) return unknownValue(facts, name);
  const meta = facts.graph.tensors.get(name);
  if (meta?.sizes.includes(0) === true) {
    space.values.set(name, { kind: "empty" });
    return { kind: "empty" };
  }
  const folded = facts.constants.has(name) && meta !== undefined ? (space.constant?.(name) ?? null) : null;
  if (folded !== null) {
    const made: NodeValue = { kind: "tensor", view: described(folded, node, name) };
    space.values.set(name, made);
    return made;
  }
  buildNode(facts, space, node);
  return (
    space.values.get(name) ?? unsupportedNode(node, `Braid does not compute ${name}`, node.target, "other results")
  );
}

/** Adds the values of the node's results. */
function buildNode(facts: Facts, space: Space, node: GraphNode): void {
  const row = rows.get(node.target);
  if (row === undefined) {
    unsupportedNode(
      node,
      `Braid has no op for ${node.target}`,
      node.target,
      "the ops of docs/import-pytorch.md, which exported.run_decompositions() may make of it",
    );
  }
  const building: Building = {
    fusion: space.fusion,
    provenance: space.provenance,
    collectives: space.collectives,
    valueOf: (value) => valueIn(facts, space, value),
    masks: space.masks,
    maskOf: (value) => knownMask(value, facts.masks),
  };
  const metas = node.outputs.map((output) => facts.graph.tensors.get(output));
  const positionOf = (made: GraphNode | undefined): number => (made === undefined ? -1 : (facts.order.get(made) ?? -1));
  // Its operands first: what they make has lines of its own. They come from earlier nodes, so that nothing goes in circles.
  for (const value of readsOf(node)) {
    const maker = facts.producers.get(value);
    if (positionOf(maker) >= positionOf(node)) unknownValue(facts, value);
    // A result that Braid does not compute, such as the state of a generator, may be one that the row does not read.
    if (maker?.outputs.some((output) => space.values.has(output)) === true) continue;
    if (space.constant === null || !facts.constants.has(value)) valueIn(facts, space, value);
  }
  const before = space.fusion[fusionState].tensors.length;
  const results = inNode(node, () => resultsOf(row, node, building, metas));
  node.outputs.forEach((output, i) => {
    const result = results[i] ?? null;
    if (result === null || space.values.has(output)) return;
    const made = result.kind === "tensor" ? { ...result, view: fitted(facts, result.view, node, output) } : result;
    space.values.set(output, made);
    if (made.kind === "tensor") described(made.view, node, output);
  });
  locate(space.fusion, before, node);
}

/** A row that only arranges elements does so for each part of a complex tensor. */
function resultsOf(
  row: AtenRow,
  node: GraphNode,
  building: Building,
  metas: readonly (TensorMeta | undefined)[],
): readonly (NodeValue | null)[] {
  const self = node.inputs.get("self") ?? null;
  const value = isValue(self) && views.test(node.target) ? building.valueOf(self.name) : null;
  if (!isValue(self) || value?.kind !== "complex" || /\.(?:view_as_real|to|type_as)\./u.test(node.target)) {
    return listOf(row(nodeOperands(node, building, metas)));
  }
  const [re, im] = [value.re, value.im].map((view) => {
    const valueOf = (name: string): NodeValue =>
      name === self.name ? { kind: "tensor", view } : building.valueOf(name);
    return listOf(row(nodeOperands(node, { ...building, valueOf }, metas)))[0];
  });
  const isPair = re?.kind === "tensor" && im?.kind === "tensor";
  return isPair ? [{ kind: "complex", re: re.view, im: im.view }] : [value];
}

function listOf(result: RowResult): readonly (NodeValue | null)[] {
  const valueOf = (each: TensorView | NodeValue): NodeValue => ("kind" in each ? each : { kind: "tensor", view: each });
  if (!isResults(result)) return [valueOf(result)];
  return result.map((each) => (each === null ? null : valueOf(each)));
}

/** Diagnostics of Braid's ops, with the node and the line of the model. */
function inNode<T>(node: GraphNode, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof DiagnosticError) || error.diagnostics.some(({ code }) => code.startsWith("model-")))
      throw error;
    const note = `in ${node.target}, ${moduleText(node)}`;
    throw new DiagnosticError(
      error.diagnostics.map((each) => ({
        ...each,
        ...(node.source === null ? {} : { source: siteText(node.source) }),
        notes: [...(each.notes ?? []), note],
      })),
    );
  }
}

/** The result in the dtype that the file says. Throws `model-invalid` for another shape. */
function fitted(facts: Facts, view: TensorView, node: GraphNode, output: string): TensorView {
  const meta = facts.graph.tensors.get(output);
  if (meta === undefined) return view;
  const extents = view.extents.map(constantValue);
  const fits =
    extents.length === meta.sizes.length &&
    extents.every(
      (extent, axis) => extent === null || typeof meta.sizes[axis] !== "number" || extent === meta.sizes[axis],
    );
  if (!fits) {
    const sizes = meta.sizes.map((size) => (typeof size === "number" ? size : size.expression));
    fail("model-invalid", `${output} has another shape than its operands give it`, {
      place: node.place(),
      ...(node.source === null ? {} : { source: siteText(node.source) }),
      found: `[${sizes.join(", ")}] of ${node.target}, ${moduleText(node)}`,
      expected: `[${view.extents.map((extent) => printScalar(extent)).join(", ")}]`,
      help: "write the file again from PyTorch",
    });
  }
  return inDType(view, braidDType(meta.dtype, node));
}

function metaOf(facts: Facts, value: string): TensorMeta {
  return facts.graph.tensors.get(value) ?? unknownValue(facts, value);
}

function unknownValue({ path }: Facts, value: string): never {
  return fail("model-invalid", `no node makes ${value}`, {
    place: { kind: "file", path },
    found: `a node that reads ${value}`,
    expected: "values of inputs and earlier nodes",
    help: "write the file again from PyTorch",
  });
}

const kindTexts = { complex: "a complex tensor", size: "a number", empty: "a tensor without elements" };

/** Another tensor for an output that is an input, or an output already. */
function outputTensor(facts: Facts, { fusion, ...space }: Space, value: string): TensorView {
  const found = valueIn(facts, { fusion, ...space }, value);
  if (found.kind !== "tensor")
    return refuseInput(facts.path, value, kindTexts[found.kind], "real tensors with elements");
  const isTaken = [...fusion.inputs, ...fusion.outputs].some(({ id }) => id === found.view.id);
  return isTaken ? set(found.view) : found.view;
}

/** A constant that its index says: one number everywhere, or whole numbers that count along an axis. */
function formedConstant({ graph, masks }: Facts, fusion: Fusion, value: string, symbols: Symbols): TensorView | null {
  const [form, meta] = [masks.formOf(value), graph.tensors.get(value)];
  const dtype = meta?.dtype.braid ?? null;
  if (form?.kind !== "sum" || meta === undefined || dtype === null) return null;
  const extents = meta.sizes.map((size) => extentOf(size, symbols));
  const known = extents.flatMap((extent) => extent ?? []);
  if (known.length < extents.length) return null;
  const number = uniformIn(form);
  if (number !== null) return full(fusion, known, dtype === "bool" ? number !== 0 : number, dtype);
  const [sum] = form.sums;
  const axes = [...sum.steps.keys()].filter((axis) => sum.steps[axis] !== 0);
  const [axis] = axes;
  if (axis === undefined || axes.length > 1 || dtypes[dtype].family !== "integer") return null;
  const along = iota(fusion, at(known, axis), { start: sum.offset, step: at(sum.steps, axis), dtype });
  const view = alongAxis(along, axis, known.length);
  return known.every((extent, i) => i === axis || constantValue(extent) === 1) ? view : expand(view, known);
}

/** The elements of a constant; null where a part of it is symbolic, large, or without values in the file. */
function evaluated(facts: Facts, value: string): Tensor | null {
  if (!canFold(facts, value, new Set())) return null;
  const fusion = importedFusion();
  const given: Tensor[] = [];
  const space: Space = {
    ...emptySpace(fusion),
    input: (source) => {
      const tensor = valueOfSource(facts, source);
      if (tensor === null) return unknownValue(facts, source.value);
      given.push(tensor);
      return fusion.input(tensor.shape, tensor.dtype);
    },
    constant: null,
  };
  const found = valueIn(facts, space, value);
  if (found.kind !== "tensor") return null;
  fusion.output(fusion.inputs.some(({ id }) => id === found.view.id) ? set(found.view) : found.view);
  return evaluateFusion(fusion.data(), given, undefined, valuesOnly).outputs[0] ?? null;
}

function valueOfSource({ payloads }: Facts, source: Source): Tensor | null {
  return source.kind === "user" ? null : (payloads.get(source.name)?.read() ?? null);
}

function canFold(facts: Facts, value: string, seen: Set<string>): boolean {
  if (seen.has(value)) return true;
  seen.add(value);
  const sizes = facts.graph.tensors.get(value)?.sizes ?? [];
  const count = sizes.reduce<number>((product, size) => product * (typeof size === "number" ? size : Infinity), 1);
  if (count > mostFolded) return false;
  const source = facts.sources.get(value);
  if (source !== undefined) return valueOfSource(facts, source) !== null;
  const node = facts.producers.get(value);
  return node !== undefined && readsOf(node).every((each) => canFold(facts, each, seen));
}
