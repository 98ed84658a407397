/**
 * A model that was exported in parallel, with its collectives: a program of one rank's parts becomes one of all ranks,
 * as a manual computation of StableHLO does. Groups of ranks lie along dimensions of the plan's mesh.
 */
import { replaceTensor } from "../../ir/api/fusion-builder.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { fusionState } from "../../ir/api/handle.ts";
import { set } from "../../ir/api/ops/views.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { DeviceMesh } from "../../ir/device-mesh.ts";
import type { TensorId, TensorOrigin } from "../../ir/domain.ts";
import { outputsOf } from "../../ir/ops/op.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";
import { opOnParts } from "../manual/op-on-parts.ts";
import {
  joinParts,
  type DevicePart,
  placeLeading,
  readExtents,
  reduceParts,
  sizesAlong,
  splitIntoParts,
  wholeOnAxes,
  type ManualSizes,
} from "../manual/parts.ts";
import { type ExportedModel, type ModelInput, withName } from "../torch-export/model.ts";
import { placedTensors } from "./apply-plan.ts";
import { factsOf } from "./model-facts.ts";
import { invalidPlan, type PlacementLine, resolvedIn, type ShardingPlan } from "./parse-plan.ts";
import { placeTensor, replicate } from "./placement.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { siteText } from "../../support/call-site.ts";
import type { ModelFault } from "../model.ts";
import { importedFusion } from "../origins.ts";
import type { GroupCollective } from "../torch-export/group-collective.ts";

/**
 * The program of all ranks; `devices`: how many there are if neither plan nor file says it. Throws `model-unsupported`,
 * `sharding-plan-invalid`.
 */
export function manualModel(
  model: ExportedModel,
  plan: ShardingPlan | null,
  devices: number,
): { readonly model: ExportedModel; readonly mesh: DeviceMesh } {
  if (plan !== null) refuseWords(plan);
  const ranks = groupsOfRanks([...model.collectives.values()], plan, devices);
  const { mesh, sizes } = ranks;
  const placements: Placements = new Map(
    (plan === null ? [] : placedTensors(plan, factsOf(model))).map(([{ id }, line]) => [id, line]),
  );
  const local = model.fusion.data();
  const fusion = importedFusion();
  /** By tensor of the rank's program. */
  const parts: DevicePart[] = [];
  const partOf = (id: TensorId): DevicePart => at(parts, id);
  const ops = new Map(local.ops.map((op) => [op.output, op]));
  const given = new Map(model.inputs.map((input) => [input.tensor.id, input]));
  const inputs: ModelInput[] = [];
  /** Those that lie where they are. */
  const placed = new Set<TensorId>();
  for (const { id, origin } of local.tensors) {
    const before = fusion[fusionState].tensors.length;
    const [op, collective, input] = [ops.get(id), model.collectives.get(id), given.get(id)];
    if (op !== undefined) {
      const results = opOnParts(fusion, sizes, op, local.tensors, op.inputs.map(partOf));
      outputsOf(op).forEach((output, i) => void (parts[output] = at(results, i)));
    } else if (collective !== undefined) {
      const part = collective.run(sizes, partOf(collective.operand.id), ranks.dimsOf(collective));
      if (!placed.has(part.tensor.id)) placeLeading(part.tensor, mesh, part.axes);
      placed.add(part.tensor.id);
      parts[id] = part;
    } else if (input !== undefined) {
      const { whole, part } = inputPart(ranks, fusion, input, placements.get(id) ?? null);
      // The file has the values of one rank.
      const isEqual = whole.rank === input.tensor.rank && part.axes.length === 0;
      inputs.push({ ...input, tensor: withName(whole, input.name), read: isEqual ? input.read : () => null });
      placed.add(part.tensor.id);
      parts[id] = part;
    }
    const tensor = parts[id]?.tensor;
    if (origin?.name !== undefined && tensor !== undefined && tensor.name === null) withName(tensor, origin.name);
    if (origin?.source !== undefined) locateAt(fusion, before, origin.source);
  }
  const outputs = model.outputs.map(({ name, tensor }) => {
    const line = placements.get(tensor.id) ?? null;
    const result = line === null ? stacked(ranks, partOf(tensor.id)) : joined(ranks, partOf(tensor.id), name, line);
    const isTaken = [...fusion.inputs, ...fusion.outputs].some(({ id }) => id === result.tensor.id);
    // A collective has placed its result as its parts lie.
    const isPlaced = placed.has(result.tensor.id);
    const output = isTaken || (isPlaced && line !== null) ? set(result.tensor) : result.tensor;
    if (output !== result.tensor || !isPlaced) result.place(output);
    fusion.output(output.name === null ? withName(output, name) : output);
    return { name, tensor: output };
  });
  fusion[fusionState].marksCalls = true;
  const tensorOf = (value: string): TensorView | null => {
    const found = model.tensorOf(value);
    return found === null ? null : (parts[found.id]?.tensor ?? null);
  };
  return { model: { ...model, fusion, inputs, outputs, tensorOf, collectives: new Map() }, mesh };
}

function locateAt(
  { [fusionState]: builder }: Fusion,
  first: number,
  source: NonNullable<TensorOrigin["source"]>,
): void {
  for (const tensor of builder.tensors.slice(first)) {
    replaceTensor(builder, { ...tensor, origin: { ...tensor.origin, source } });
  }
}

/** Throws `sharding-plan-invalid` for what a plan says of whole models. */
function refuseWords({ path, modules, activations, stream, fp8 }: ShardingPlan): void {
  const key = [...modules, ...activations, ...stream][0]?.key ?? (fp8 === null ? null : "fp8");
  if (key === null) return;
  invalidPlan(path, key, {
    message: "the model has collectives of its own, so that a plan cannot place its modules",
    found: key,
    expected: "mesh, groups, and placements of parameters, inputs and outputs",
    help: "remove the line, or export the model of one device",
  });
}

/** What a plan says of whole tensors, by those of the rank's program. */
type Placements = ReadonlyMap<TensorId, PlacementLine>;

/** The dimensions that cut each axis, outermost first. Throws `sharding-plan-invalid`. */
function cutsOf(ranks: Ranks, line: PlacementLine, name: string, rank: number): readonly (readonly string[])[] {
  const own = resolvedIn(ranks.path, line, line.placements, name, rank);
  return Array.from({ length: rank }, (_, axis) =>
    own.flatMap((each, i) => (each.kind === "shard" && each.axis === axis ? [at(ranks.mesh.names, i)] : [])),
  );
}

/**
 * An input of the program, and each rank's part of it. Without a placement the parts are one after the other along new
 * axes, one for each dimension; buffers are equal on all ranks.
 */
function inputPart(
  ranks: Ranks,
  fusion: Fusion,
  { name, kind, tensor }: ModelInput,
  line: PlacementLine | null,
): { readonly whole: TensorView; readonly part: DevicePart } {
  const { mesh, sizes } = ranks;
  const shape = readExtents(tensor);
  if (line !== null) {
    const cuts = cutsOf(ranks, line, name, shape.length);
    if (line.placements.some((each) => each.kind === "partial")) {
      invalidPlan(ranks.path, line.key, {
        message: `${name} is an input, which has no sum to add`,
        found: "Partial()",
        expected: "Shard(0) or Replicate()",
        help: "leave out the line: then each rank has a part of its own",
      });
    }
    const whole = fusion.input(
      shape.map((extent, i) => extent * elementCount(sizesAlong(sizes, at(cuts, i)))),
      tensor.dtype,
    );
    placeTensor(whole, mesh, line.placements);
    const part = splitIntoParts(sizes, { tensor: whole, axes: [], shape: readExtents(whole) }, cuts);
    if (part.axes.length > 0) placeLeading(part.tensor, mesh, part.axes);
    return { whole, part };
  }
  const axes = kind === "user" || kind === "parameter" ? mesh.names : [];
  const whole = fusion.input([...sizesAlong(sizes, axes), ...shape], tensor.dtype);
  placeLeading(whole, mesh, axes);
  return { whole, part: { tensor: whole, axes, shape } };
}

interface Result {
  readonly tensor: TensorView;
  readonly place: (tensor: TensorView) => void;
}

/** Without a placement an output has a first axis for each dimension over which it differs. */
function stacked({ mesh, sizes }: Ranks, part: DevicePart): Result {
  return {
    tensor: wholeOnAxes(sizes, part, part.axes),
    place: (tensor) => {
      placeLeading(tensor, mesh, part.axes);
    },
  };
}

function joined(ranks: Ranks, part: DevicePart, name: string, line: PlacementLine): Result {
  const { mesh, sizes } = ranks;
  const cuts = cutsOf(ranks, line, name, part.shape.length);
  const added = part.axes.filter((axis) => line.placements[mesh.names.indexOf(axis)]?.kind === "partial");
  const { tensor } = joinParts(sizes, reduceParts(sizes, part, added, "sum"), cuts, mesh.names);
  const placements = line.placements.map((each) => (each.kind === "partial" ? replicate : each));
  return {
    tensor,
    place: (own) => {
      placeTensor(own, mesh, placements);
    },
  };
}

/* How the groups of ranks of a model that was exported in parallel lie on a mesh. */

/** A mesh, and the dimensions of each group. */
interface Ranks {
  readonly mesh: DeviceMesh;
  readonly sizes: ManualSizes;
  /** Of the plan, for messages. */
  readonly path: string;
  readonly dimsOf: (collective: GroupCollective) => readonly string[];
}

/**
 * `devices`: the size of the group where neither plan nor file says it. Throws `model-unsupported`, `model-invalid`,
 * `sharding-plan-invalid`.
 */
function groupsOfRanks(collectives: readonly GroupCollective[], plan: ShardingPlan | null, devices: number): Ranks {
  const names = [...new Set(collectives.map(({ group }) => group))];
  const size = collectives.find((each) => each.size !== null)?.size ?? devices;
  if (plan === null && names.length > 1) {
    return atNode(at(collectives, 0), "model-unsupported", {
      message: "the file does not say how its groups of ranks lie",
      found: `the groups ${names.join(", ")}`,
      expected: "a plan with their mesh",
      help: `pass --plan with { "mesh": { "dp": 2, "tp": 4 }, "groups": { "${names[0] ?? ""}": "dp", "${names[1] ?? ""}": "tp" } }`,
    });
  }
  const mesh = DeviceMesh.of(plan?.mesh ?? { ranks: size });
  const sizes: ManualSizes = new Map(mesh.names.map((name, i) => [name, at(mesh.shape, i)]));
  const unknown = Object.keys(plan?.groups ?? {}).find((name) => !names.includes(name));
  if (plan !== null && unknown !== undefined) {
    invalidPlan(plan.path, `groups.${unknown}`, {
      message: `the model has no group ${unknown}`,
      found: unknown,
      expected: names.join(", "),
      help: "remove the line",
    });
  }
  const dimsOf = (collective: GroupCollective): readonly string[] => {
    const { group } = collective;
    const dims =
      plan?.groups[group] ?? (mesh.names.length === 1 ? mesh.names : mesh.names.filter((name) => name === group));
    if (plan !== null && dims.length === 0) {
      invalidPlan(plan.path, "groups", {
        message: `the plan does not say along which dimensions the group ${group} lies`,
        found: `a mesh of ${mesh.names.join(", ")}`,
        expected: `the dimensions of ${names.join(", ")}`,
        help: `add "groups": { "${group}": "${mesh.names.at(-1) ?? ""}" }`,
      });
    }
    const count = elementCount(sizesAlong(sizes, dims));
    if (collective.size !== null && collective.size !== count) {
      atNode(collective, plan === null ? "model-invalid" : "sharding-plan-invalid", {
        message: `the group ${group} has another size than the mesh says`,
        found: `${collective.size} ranks`,
        expected: `${count}, along ${dims.join(", ")}`,
        help: "give the mesh the sizes with which the model was exported",
      });
    }
    return dims;
  };
  return { mesh, sizes, path: plan?.path ?? "--plan", dimsOf };
}

function atNode(
  { node }: GroupCollective,
  code: "model-invalid" | "model-unsupported" | "sharding-plan-invalid",
  fault: ModelFault,
): never {
  return fail({
    code,
    ...fault,
    place: node.place(),
    ...(node.source === null ? {} : { source: siteText(node.source) }),
  });
}
