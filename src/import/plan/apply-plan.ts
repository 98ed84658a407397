/** Annotates the tensors of a model as a plan says. Parameters and inputs that it does not name are on every device. */
import { DeviceMesh } from "../../ir/device-mesh.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { TensorId } from "../../ir/domain.ts";
import { outputsOf } from "../../ir/ops/op.ts";
import { constantValue } from "../../ir/scalar/fold.ts";
import { at } from "../../support/invariant.ts";
import { suggestion } from "../../support/wording.ts";
import { buildModel, copyTarget, float8Target } from "../torch-export/build.ts";
import { type Argument, type ExportedGraph, type GraphNode, isList, isValue } from "../torch-export/graph.ts";
import type { ExportedModel } from "../torch-export/model.ts";
import type { ExportedProgram } from "../torch-export/read.ts";
import { factsOf, type GraphFacts, graphFacts, type ModelFacts, packedParts, resultsWith } from "./model-facts.ts";
import {
  invalidPlan,
  patternOf,
  type PlacementLine,
  type PlanLine,
  resolvedIn,
  type ShardingPlan,
  type StyleLine,
} from "./parse-plan.ts";
import { placeTensor, type Placement, placementText, replicate, resolved, shard } from "./placement.ts";
import { type StyleFacts, styles } from "./styles.ts";

/** The layouts that lines of a plan give, by tensor, and the line of each. */
type Layouts = Map<
  TensorView["id"],
  { readonly tensor: TensorView; readonly placements: readonly Placement[]; readonly line: PlanLine }
>;

/** The model of a program on the devices of a plan. Throws `sharding-plan-invalid`, and what `buildModel` throws. */
export function shardedModel(program: ExportedProgram, plan: ShardingPlan, fold = true): ExportedModel {
  const [group] = Object.keys(plan.groups);
  if (group !== undefined) {
    invalidPlan(plan.path, `groups.${group}`, {
      message: "the model has no collectives of its own",
      found: `the group ${group}`,
      expected: "groups for a model that was exported in parallel",
      help: "remove the line",
    });
  }
  const model = buildModel({ ...program, graph: inFloat8(withCopies(program.graph, plan), plan) }, fold);
  applyPlan(model, plan);
  return model;
}

/** Devices quantize the parts of rows that they have of cut weights' inputs and outputs with scales of their own. */
function inFloat8(graph: ExportedGraph, plan: ShardingPlan): ExportedGraph {
  const { fp8 } = plan;
  if (fp8 === null) return graph;
  const [cuts, sizes] = [cutsOfWeights(graph, plan), Object.values(plan.mesh)];
  const nodes = graph.nodes.map((node) => {
    if (node.target !== linearTarget) return node;
    const placements = resolved(cuts.get(weightOf(node)) ?? [], 2) ?? [];
    const partsOf = (axis: number): number =>
      placements.reduce(
        (parts, each, i) => (each.kind === "shard" && each.axis === axis ? parts * at(sizes, i) : parts),
        1,
      );
    const inputs = new Map([...node.inputs, ["parts of inputs", partsOf(1)], ["parts of outputs", partsOf(0)]]);
    return { ...node, target: float8Target(fp8), inputs };
  });
  return { ...graph, nodes };
}

const linearTarget = "torch.ops.aten.linear.default";

/** The value that a linear reads as its weight, or "". */
function weightOf({ inputs }: GraphNode): string {
  const weight = inputs.get("weight");
  return weight !== undefined && isValue(weight) ? weight.name : "";
}

/** By the values of weights of linears, as lines for modules and parameters say. */
function cutsOfWeights(graph: ExportedGraph, plan: ShardingPlan): ReadonlyMap<string, readonly Placement[]> {
  const found = new Map<string, readonly Placement[]>();
  const { modules, nodesOf, parameterValues } = graphFacts(graph);
  for (const line of plan.modules) {
    const { cut } = styles[line.style];
    if (cut === null) continue;
    const own = along(plan, shard(cut === "out" ? 0 : 1));
    if (namesParameters({ modules, parameterValues }, line)) {
      for (const value of matching(plan, line, parameterValues, "parameter")) found.set(value, own);
      continue;
    }
    for (const path of matching(plan, line, modules, "module")) {
      for (const node of nodesOf(path)) {
        if (node.target === linearTarget) found.set(weightOf(node), own);
      }
    }
  }
  for (const line of plan.parameters) {
    for (const value of matching(plan, line, parameterValues, "parameter")) found.set(value, line.placements);
  }
  return found;
}

/**
 * The graph with a copy of what modules return that every device is to have. Without it, an op whose weight is cut and
 * whose result is not would have its weight gathered.
 */
function withCopies(graph: ExportedGraph, plan: ShardingPlan): ExportedGraph {
  const facts = graphFacts(graph);
  const lines = plan.modules.filter(
    (line) => styles[line.style].output === "replicated" && !namesParameters(facts, line),
  );
  const values = new Set(
    lines.flatMap((line) => matching(plan, line, facts.modules, "module").flatMap((path) => facts.valuesOf(path))),
  );
  if (values.size === 0) return graph;
  const copyOf = (value: string): string => `${value}_copy`;
  const renamed = (argument: Argument): Argument => {
    if (isList(argument)) return argument.map(renamed);
    return isValue(argument) && values.has(argument.name) ? { kind: "value", name: copyOf(argument.name) } : argument;
  };
  const tensors = new Map(graph.tensors);
  const nodes = graph.nodes.flatMap((node): readonly GraphNode[] => {
    const own = { ...node, inputs: new Map([...node.inputs].map(([name, argument]) => [name, renamed(argument)])) };
    const copies = node.outputs.flatMap((value): readonly GraphNode[] => {
      const meta = graph.tensors.get(value);
      if (!values.has(value) || meta === undefined) return [];
      tensors.set(copyOf(value), meta);
      const inputs = new Map([["self", { kind: "value", name: value } as const]]);
      return [{ ...node, target: copyTarget, inputs, outputs: [copyOf(value)] }];
    });
    return [own, ...copies];
  });
  return {
    ...graph,
    nodes,
    tensors,
    outputs: graph.outputs.map((value) => (values.has(value) ? copyOf(value) : value)),
  };
}

/** Throws `sharding-plan-invalid`. */
function applyPlan(model: ExportedModel, plan: ShardingPlan): void {
  const facts = factsOf(model);
  const mesh = DeviceMesh.of(plan.mesh);
  const layouts: Layouts = new Map();
  const add = (tensor: TensorView, placements: readonly Placement[], line: PlanLine): void => {
    addLayout(plan, layouts, tensor, placements, line);
  };
  for (const line of plan.modules) applyStyle(facts, plan, line, add);
  for (const [tensor, line] of placedTensors(plan, facts)) add(tensor, line.placements, line);
  for (const line of plan.activations) {
    for (const path of matching(plan, line, facts.modules, "module")) {
      for (const tensor of facts.resultsOf(path)) add(tensor, line.placements, line);
    }
  }
  for (const tensor of [...model.inputs.map((each) => each.tensor), ...constantOutputs(model)]) {
    if (!layouts.has(tensor.id)) tensor.setDeviceMesh(mesh);
  }
  for (const { tensor, placements } of layouts.values()) {
    // Braid decides where sums are added, unless the layout of the sum is given.
    if (placements.every(({ kind }) => kind !== "partial")) placeTensor(tensor, mesh, placements);
  }
  for (const line of plan.stream) {
    for (const path of matching(plan, line, facts.modules, "module")) {
      for (const tensor of facts.resultsOf(path)) stream(plan, line, tensor);
    }
  }
}

/** The outputs that depend on no input, to which no placement spreads. */
function constantOutputs({ fusion, outputs }: ExportedModel): readonly TensorView[] {
  const { inputs, ops } = fusion.data();
  const reached = new Set<TensorId>(inputs);
  for (const op of ops) {
    if (op.inputs.some((id) => reached.has(id))) for (const id of outputsOf(op)) reached.add(id);
  }
  return outputs.flatMap(({ tensor }) => (reached.has(tensor.id) ? [] : [tensor]));
}

/** What a plan says of parameters, inputs and outputs. Throws `sharding-plan-invalid`. */
export function placedTensors(
  plan: ShardingPlan,
  { parameters, inputs, outputs }: ModelFacts,
): readonly (readonly [TensorView, PlacementLine])[] {
  const all = [
    [plan.parameters, parameters, "parameter"],
    [plan.inputs, inputs, "input"],
    [plan.outputs, outputs, "output"],
  ] as const;
  return all.flatMap(([lines, named, what]) =>
    lines.flatMap((line) => matching(plan, line, named, what).map((tensor) => [tensor, line] as const)),
  );
}

/** A placement along the dimension of the mesh that the words of Hugging Face are about. */
function along({ mesh }: ShardingPlan, placement: Placement): readonly Placement[] {
  const names = Object.keys(mesh);
  const own = names.includes("tp") ? names.indexOf("tp") : names.length - 1;
  return names.map((_, i) => (i === own ? placement : replicate));
}

function applyStyle(
  facts: ModelFacts,
  plan: ShardingPlan,
  line: StyleLine,
  add: (tensor: TensorView, placements: readonly Placement[], line: PlanLine) => void,
): void {
  const style: StyleFacts = styles[line.style];
  const { cut } = style;
  if (namesParameters(facts, line)) {
    for (const [name, tensor] of facts.parameters) {
      if (!patternOf(line.pattern).test(name)) continue;
      const axis = cut === null ? null : tensor.rank - (cut === "out" && tensor.rank > 1 ? 2 : 1);
      const results = resultsWith(facts, facts.parameterValues.get(name) ?? "");
      add(tensor, along(plan, cutAlong(facts, plan, line, name, axis, results)), line);
    }
    return;
  }
  for (const path of matching(plan, line, facts.modules, "module")) {
    if (cut !== null) {
      const used = facts.parametersOf(path);
      if (!used.some(({ axes }) => axes[cut] !== null)) noWeight(plan, line, path, style);
      for (const { name, tensor, axes } of used) {
        add(tensor, along(plan, cutAlong(facts, plan, line, name, axes[cut], facts.valuesOf(path))), line);
      }
    }
    if (style.output === null) continue;
    for (const tensor of facts.resultsOf(path)) {
      // Rows of a batch of sequences: [B, S, h], or [S, h].
      add(tensor, along(plan, style.output === "sequence" ? shard(Math.max(0, tensor.rank - 2)) : replicate), line);
    }
  }
}

/** A cut of the axis, or of each of the parts into which `results`, which the parameter made, are cut. */
function cutAlong(
  facts: GraphFacts,
  plan: ShardingPlan,
  line: StyleLine,
  name: string,
  axis: number | null,
  results: readonly string[],
): Placement {
  if (axis === null) return replicate;
  return shard(axis, styles[line.style].packed ? (packedParts(facts, results) ?? unevenParts(plan, line, name)) : 1);
}

/** Whether a line with a word names parameters, such as the weights of all experts, and no module. */
function namesParameters(facts: Pick<GraphFacts, "modules" | "parameterValues">, { pattern }: PlanLine): boolean {
  const names = (each: ReadonlyMap<string, unknown>): boolean =>
    [...each.keys()].some((name) => patternOf(pattern).test(name));
  return !names(facts.modules) && names(facts.parameterValues);
}

function noWeight(plan: ShardingPlan, { key }: PlanLine, path: string, { cut }: StyleFacts): never {
  return invalidPlan(plan.path, key, {
    message: `${path} has no weight whose ${cut === "in" ? "inputs" : "outputs"} can be cut`,
    found: "a module without a linear map or an embedding of its own",
    expected: "the path of a Linear, Conv1D or Embedding",
    help: "name the module that has the weight, or use replicated or sequence_parallel",
  });
}

function unevenParts(plan: ShardingPlan, { key }: PlanLine, name: string): never {
  return invalidPlan(plan.path, key, {
    message: `${name} is not packed of equal parts`,
    found: "no chunk or split of the result into equal parts",
    expected: "a weight that holds several of one size, as gate_up_proj or c_attn",
    help: "use colwise_gather_output for parts of different sizes",
  });
}

/** Throws `sharding-plan-invalid` where two lines contradict each other, or a tensor has no such axis. */
function addLayout(
  plan: ShardingPlan,
  layouts: Layouts,
  tensor: TensorView,
  given: readonly Placement[],
  line: PlanLine,
): void {
  const name = tensor.name ?? `T${tensor.id}`;
  const placements = resolvedIn(plan.path, line, given, name, tensor.rank);
  const text = placements.map(placementText).join(", ");
  const other = layouts.get(tensor.id);
  const before = other?.placements.map(placementText).join(", ") ?? text;
  if (before !== text) {
    invalidPlan(plan.path, line.key, {
      message: `two lines of the plan place ${name}`,
      found: `${text}, and ${before} of ${other?.line.key ?? ""}`,
      expected: "one layout for each tensor",
      help: "remove one of the two lines, or make them equal: a weight may be that of two modules",
    });
  }
  layouts.set(tensor.id, { tensor, placements, line });
}

/** The values whose names a line matches. Throws `sharding-plan-invalid` if there are none. */
function matching<T>(
  plan: ShardingPlan,
  { key, pattern }: PlanLine,
  named: ReadonlyMap<string, T>,
  what: string,
): readonly T[] {
  const expression = patternOf(pattern);
  const found = [...named].flatMap(([name, value]) => (expression.test(name) ? [value] : []));
  if (found.length > 0) return found;
  // Names with their numbers as in patterns, and by every end that a pattern may name.
  const known = new Set(
    [...named.keys()].flatMap((name) => {
      const parts = name.replaceAll(/(?<=\.|^)\d+(?=\.|$)/gu, "*").split(".");
      return parts.map((_, i) => parts.slice(i).join("."));
    }),
  );
  return invalidPlan(plan.path, key, {
    message: `the model has no ${what} ${pattern}`,
    found: pattern,
    expected: `the path of ${/^[aeiou]/u.test(what) ? "an" : "a"} ${what}, in which * stands for one segment`,
    help: suggestion(
      pattern,
      [...known],
      `name one of its ${what}s, such as ${[...named.keys()].slice(-3).join(", ")}`,
    ),
  });
}

function stream(
  plan: ShardingPlan,
  line: PlanLine & { readonly axis: number; readonly chunks: number },
  tensor: TensorView,
): void {
  const axis = line.axis < 0 ? line.axis + tensor.rank : line.axis;
  const extent = tensor.extents[axis];
  if (extent === undefined || constantValue(extent) === 1 || tensor.nDims !== tensor.rank + reducedAxes(tensor)) {
    invalidPlan(plan.path, line.key, {
      message: `${tensor.name ?? `T${tensor.id}`} cannot be cut in chunks along axis ${line.axis}`,
      found: String(tensor),
      expected: "an axis of several elements of a tensor that no other line cuts",
      help: "choose the axis of the tokens",
    });
  }
  tensor.outerSplit(axis, line.chunks).parallelize("Stream");
}

/** The axes of the loop domain that do not exist at run time. */
function reducedAxes(tensor: TensorView): number {
  return tensor.data().domain.logical.filter(({ iterType }) => iterType === "reduction").length;
}
