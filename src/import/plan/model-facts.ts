/** What a plan needs to know of a model: its modules, what they return, and how their weights are used. */
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { at, pushTo } from "../../support/invariant.ts";
import { readsOf } from "../torch-export/build.ts";
import { type ExportedGraph, type GraphNode, isValue, type Size } from "../torch-export/graph.ts";
import type { ExportedModel } from "../torch-export/model.ts";

/** The axes of a weight that a linear map or an embedding has; null where the parameter has no such axis. */
export interface WeightAxes {
  readonly out: number | null;
  readonly in: number | null;
}

interface UsedParameter {
  readonly name: string;
  readonly tensor: TensorView;
  readonly axes: WeightAxes;
}

/** What the graph alone says. */
export interface GraphFacts {
  readonly graph: ExportedGraph;
  /** By path; the value is the path. */
  readonly modules: ReadonlyMap<string, string>;
  /** The values that are parameters, by their names. */
  readonly parameterValues: ReadonlyMap<string, string>;
  readonly readersOf: (value: string) => readonly GraphNode[];
  /** The values that a module returns: ops outside of it read them, or the model returns them. */
  readonly valuesOf: (path: string) => readonly string[];
  /** The ops of the module itself, not those of modules inside of it. */
  readonly nodesOf: (path: string) => readonly GraphNode[];
}

export interface ModelFacts extends GraphFacts {
  readonly parameters: ReadonlyMap<string, TensorView>;
  readonly inputs: ReadonlyMap<string, TensorView>;
  readonly outputs: ReadonlyMap<string, TensorView>;
  /** The parameters that ops of the module itself read, not those of modules inside of it. */
  readonly parametersOf: (path: string) => readonly UsedParameter[];
  /** The tensors that the module returns. */
  readonly resultsOf: (path: string) => readonly TensorView[];
}

const none: WeightAxes = { out: null, in: null };

/** What the operand `name` of an op is to it. */
const roles: Readonly<Record<string, Readonly<Record<string, WeightAxes>>>> = {
  linear: { weight: { out: 0, in: 1 }, bias: { out: 0, in: null } },
  addmm: { mat2: { out: 1, in: 0 }, self: { out: 0, in: null } },
  mm: { mat2: { out: 1, in: 0 } },
  matmul: { other: { out: 1, in: 0 } },
  embedding: { weight: { out: 1, in: 0 } },
  conv2d: { weight: { out: 0, in: null }, bias: { out: 0, in: null } },
  convolution: { weight: { out: 0, in: null }, bias: { out: 0, in: null } },
};

export function graphFacts(graph: ExportedGraph): GraphFacts {
  const readers = new Map<string, GraphNode[]>();
  const own = new Map<string, GraphNode[]>();
  const around = new Map<string, Set<GraphNode>>();
  for (const node of graph.nodes) {
    for (const value of new Set(readsOf(node))) pushTo(readers, value, node);
    const paths = node.modules.map(({ path }) => plainPath(path));
    pushTo(own, paths.at(-1) ?? "", node);
    for (const path of paths) {
      const inside = around.get(path);
      if (inside === undefined) around.set(path, new Set([node]));
      else inside.add(node);
    }
  }
  const returned = new Set(graph.outputs);
  return {
    graph,
    modules: new Map([...around.keys()].flatMap((path): [string, string][] => (path === "" ? [] : [[path, path]]))),
    parameterValues: new Map(
      graph.inputs.flatMap((each): [string, string][] => (each.kind === "parameter" ? [[each.name, each.value]] : [])),
    ),
    readersOf: (value) => readers.get(value) ?? [],
    nodesOf: (path) => own.get(path) ?? [],
    valuesOf: (path) => {
      const inside = around.get(path) ?? new Set<GraphNode>();
      const leaves = (value: string): boolean =>
        returned.has(value) || (readers.get(value) ?? []).some((reader) => !inside.has(reader));
      return [...inside].flatMap(({ outputs }) => outputs.filter(leaves));
    },
  };
}

export function factsOf(model: ExportedModel): ModelFacts {
  const facts = graphFacts(model.graph);
  const ofKind = (kind: string): ReadonlyMap<string, TensorView> =>
    new Map(
      model.inputs.flatMap((each): [string, TensorView][] => (each.kind === kind ? [[each.name, each.tensor]] : [])),
    );
  const parameters = ofKind("parameter");
  const nameOf = new Map([...facts.parameterValues].map(([name, value]) => [value, name]));
  return {
    ...facts,
    parameters,
    inputs: ofKind("user"),
    outputs: new Map(model.outputs.map(({ name, tensor }) => [name, tensor])),
    parametersOf: (path) => usedIn(facts.nodesOf(path), nameOf, parameters),
    resultsOf: (path) => [...new Map(facts.valuesOf(path).flatMap((value) => tensorWithId(model, value))).values()],
  };
}

/** A module that is called several times has a number for each further call. */
function plainPath(path: string): string {
  return path.replaceAll(/@\d+/gu, "");
}

function tensorWithId({ tensorOf, fusion }: ExportedModel, value: string): readonly (readonly [number, TensorView])[] {
  const tensor = tensorOf(value);
  const isInput = fusion.inputs.some(({ id }) => id === tensor?.id);
  return tensor === null || isInput ? [] : [[tensor.id, tensor]];
}

const transposes: ReadonlySet<string> = new Set(["t", "transpose", "permute", "numpy_T", "mT"]);

function opName(target: string): string {
  return /\.(\w+)\.\w+$/u.exec(target)?.[1] ?? "";
}

/** A weight may be transposed before an op reads it. */
function usedIn(
  nodes: readonly GraphNode[],
  nameOf: ReadonlyMap<string, string>,
  parameters: ReadonlyMap<string, TensorView>,
): readonly UsedParameter[] {
  const found = new Map<string, UsedParameter>();
  /** The parameter that a value is, and whether its two axes are swapped. */
  const views = new Map<string, { readonly name: string; readonly swapped: boolean }>();
  const viewOf = (value: string): { readonly name: string; readonly swapped: boolean } | undefined => {
    const name = nameOf.get(value);
    return name === undefined ? views.get(value) : { name, swapped: false };
  };
  for (const node of nodes) {
    const op = opName(node.target);
    for (const [operand, argument] of node.inputs) {
      const view = isValue(argument) ? viewOf(argument.name) : undefined;
      if (view === undefined) continue;
      const [output = ""] = node.outputs;
      if (transposes.has(op)) {
        views.set(output, { ...view, swapped: !view.swapped });
        continue;
      }
      const tensor = parameters.get(view.name);
      if (tensor === undefined) continue;
      const axes = roles[op]?.[operand] ?? none;
      const own = view.swapped && tensor.rank === 2 ? { out: axes.in, in: axes.out } : axes;
      if (own !== none || !found.has(view.name)) found.set(view.name, { name: view.name, tensor, axes: own });
    }
  }
  return [...found.values()];
}

/** What ops make of a parameter, or of its transpose. */
export function resultsWith(facts: GraphFacts, value: string): readonly string[] {
  return facts
    .readersOf(value)
    .flatMap(({ target, outputs }) =>
      transposes.has(opName(target)) ? outputs.flatMap((output) => resultsWith(facts, output)) : outputs,
    );
}

/**
 * Into how many equal parts one of these results of a packed weight is cut, at once or after ops on single elements, such
 * as a bias; null if none is.
 */
export function packedParts(facts: GraphFacts, results: readonly string[]): number | null {
  const { graph } = facts;
  const lengthOf = (value: string): Size | undefined => graph.tensors.get(value)?.sizes.at(-1);
  const seen = new Set(results);
  for (const value of seen) {
    const slices: GraphNode[] = [];
    for (const reader of facts.readersOf(value)) {
      const parts = reader.outputs.map(lengthOf);
      if (isCut(reader) && parts.length > 1 && isEqual(parts)) return parts.length;
      if (opName(reader.target) === "slice" && (reader.inputs.get("step") ?? 1) === 1) slices.push(reader);
      if (isByElement(reader)) for (const output of reader.outputs) seen.add(output);
    }
    if (slices.length > 1 && isEqual(slices.map(({ outputs }) => lengthOf(at(outputs, 0))))) return slices.length;
  }
  return null;
}

function isByElement({ target }: GraphNode): boolean {
  return /^(?:add|mul|masked_fill|where|to|_to_copy|clone|contiguous)_?$/u.test(opName(target));
}

function isCut({ target }: GraphNode): boolean {
  return /\.(?:chunk|split|split_with_sizes)\.\w+$/u.test(target);
}

function isEqual(sizes: readonly (Size | undefined)[]): boolean {
  return sizes.every((size) => typeof size === "number" && size === sizes[0]);
}
