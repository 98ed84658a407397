/**
 * Two programs of one: the forward pass, which also gives the saved tensors, and the backward pass, which takes them. A
 * saved tensor lies on the devices of the backward pass as the forward pass leaves it.
 */
import { elementCount } from "../numerics/tensor/host-tensor.ts";
import { Fusion } from "../ir/api/fusion.ts";
import { type GradientRequest, jointOf } from "../ir/api/gradients.ts";
import type { TensorView } from "../ir/api/tensor-view.ts";
import { plainDomain, type Tensor, type TensorId, withoutReductions } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import { layoutOf } from "../ir/layout.ts";
import { call, reject } from "../ir/ops/call.ts";
import { type Op, type OpKind, outputsOf } from "../ir/ops/op.ts";
import { rowOf } from "../ir/ops/rows.ts";
import { shapeOf } from "../ir/sizes.ts";
import { dtypes } from "../numerics/dtype.ts";
import type { TensorEdit } from "../passes/edit/tensor-edit.ts";
import { withLayout } from "../passes/routes/layouts.ts";
import { at, invariant } from "../support/invariant.ts";
import { placedData } from "./lower.ts";

/**
 * Which tensors the forward pass saves. `all`: those that the backward pass reads, except views and casts. `minimal`:
 * results of matmul and linear; all else is computed again. `save`: these, and no others. `bytes`: those that save the
 * most work per byte, within so many bytes of whole tensors, which needs constant extents.
 */
export type SavePolicy = "all" | "minimal" | { readonly save: readonly TensorView[] } | { readonly bytes: number };

/** A tensor as an output of the forward pass and as an input of the backward pass. */
export interface SavedTensor {
  readonly forward: TensorView;
  readonly backward: TensorView;
}

export interface SplitPrograms {
  /** Its outputs are those of the Fusion, then the saved tensors that are not among them. */
  readonly forward: Fusion;
  /**
   * Its inputs are those of the Fusion that it reads, cotangents among them, then the saved tensors. Its outputs are
   * the gradients, in the order of `wrt`, without nulls.
   */
  readonly backward: Fusion;
  readonly saved: readonly SavedTensor[];
  /** Whether there is a gradient, for each tensor of `wrt`. */
  readonly gradients: readonly boolean[];
}

/**
 * Differentiates as `gradients` does, and cuts the result in two programs. The Fusion stays as it is. Stream is left out
 * of the backward pass, and so is state: the forward pass has written it. Throws what `gradients` throws, `size-missing`
 * for `bytes`, and `alias-invalid` for state that the backward pass reads.
 */
export function splitBackward(fusion: Fusion, request: GradientRequest, policy: SavePolicy = "all"): SplitPrograms {
  const data = fusion.data();
  const { data: whole, gradients } = jointOf(fusion, request);
  const found = gradients.flatMap((id) => (id === null ? [] : [id]));
  const joint: Joint = { data: whole, known: data.tensors.length, gradients: found };
  const part = backwardPart(joint, savesOf(policy, joint));
  for (const { output, input } of data.aliases ?? []) {
    const made = at(data.outputs, output);
    const copy = "splitBackward(fusion, request, { save: [old] }) with old = set(state)";
    if (part.inputs.includes(input)) overwritten(input, `let the forward pass save a copy: ${copy}`);
    if (part.saved.includes(made)) overwritten(made, "let a copy be the state: fusion.output(set(value), { alias })");
  }
  const forward: FusionData = {
    ...data,
    outputs: [...data.outputs, ...part.saved.filter((id) => !data.outputs.includes(id))],
  };
  const placed = placedData({ data: () => forward }, {});
  // A cotangent without a mesh lies like the tensor that it is the cotangent of, as `gradients` places it.
  const primals = new Map(request.cotangents?.map(({ id }, i) => [id, at(request.of, i).id]));
  const placeOf = (id: TensorId): Tensor => {
    const own = at(placed.tensors, id);
    return own.mesh === null ? at(placed.tensors, primals.get(id) ?? id) : own;
  };
  // Other options may place them otherwise: what is saved is then annotated where the backward pass takes it.
  const kept = new Set(part.saved);
  const pinned: FusionData = {
    ...forward,
    tensors: forward.tensors.map((tensor, id) => (kept.has(tensor.id) ? at(placed.tensors, id) : tensor)),
    iterDomainCount: placed.iterDomainCount,
  };
  const programs = { forward: new Fusion(pinned), backward: new Fusion(backwardData(joint, part, placeOf)) };
  const viewOf = (views: readonly TensorView[], id: TensorId): TensorView =>
    at(
      views,
      views.findIndex((each) => each.id === id),
    );
  const saved = part.saved.map((id) => ({
    forward: viewOf(programs.forward.outputs, id),
    backward: viewOf(programs.backward.inputs, id),
  }));
  return { ...programs, saved, gradients: gradients.map((id) => id !== null) };
}

function backwardData(
  { data, known, gradients }: Joint,
  part: BackwardPart,
  placeOf: (id: TensorId) => Tensor,
): FusionData {
  const inputs = [...part.inputs, ...part.saved];
  const edit: TensorEdit = { tensors: [], iterDomainCount: data.iterDomainCount };
  const tensors = data.tensors.map((tensor, id): Tensor => {
    if (id >= known) return tensor;
    const isInput = inputs.includes(tensor.id);
    const like = isInput ? placeOf(tensor.id) : tensor;
    return hasStream(like) || like !== tensor ? withoutStream(edit, tensor, like, isInput) : tensor;
  });
  const { aliases: _, ...stateless } = data;
  const whole = { ops: data.ops, inputs: data.inputs };
  const derivations = (data.derivations ?? []).slice(-1).map((derivation) => ({ ...derivation, whole }));
  return {
    ...stateless,
    tensors,
    ops: part.ops,
    inputs,
    outputs: gradients,
    iterDomainCount: edit.iterDomainCount,
    derivations,
  };
}

function overwritten(id: TensorId, help: string): never {
  return reject(call("splitBackward", { code: "fusion" }, { code: "request" }), {
    code: "alias-invalid",
    message: "the backward pass reads state that a forward pass overwrites",
    found: `T${id}`,
    expected: "state that only the forward pass reads",
    help,
  });
}

function hasStream({ domain }: Tensor): boolean {
  return domain.loop.some(({ parallelType }) => parallelType === "Stream");
}

/** The tensor on the devices of `like`, in one piece on each. An input has no reduced axes. */
export function withoutStream(edit: TensorEdit, tensor: Tensor, like: Tensor, isInput: boolean): Tensor {
  const axes = tensor.domain.logical.map((axis) => ({ ...axis, parallelType: "Serial" as const }));
  const domain = plainDomain(isInput ? withoutReductions(axes) : axes);
  const plain: Tensor = { ...tensor, domain, mesh: null };
  const to = layoutOf(like);
  return to === null ? plain : withLayout(edit, plain, withoutReductions(domain.logical), to, null);
}

function savesOf(policy: SavePolicy, joint: Joint): Saves {
  if (policy === "all" || policy === "minimal") return savePolicies[policy];
  if ("save" in policy) {
    const saved = new Set(policy.save.map(({ id }) => id));
    return (op) => outputsOf(op).some((id) => saved.has(id));
  }
  return withinBytes(policy.bytes, joint);
}

/** Adds the tensors that save the most work per byte, as long as what is saved then fits. */
function withinBytes(limit: number, joint: Joint): Saves {
  const noSizes = new Map<string, number>();
  const { tensors } = joint.data;
  const shape = (id: TensorId): readonly number[] => shapeOf(at(tensors, id), noSizes);
  const bytesOf = (id: TensorId): number => elementCount(shape(id)) * dtypes[at(tensors, id).dtype].bytes;
  const workPerByte = (op: Op): number => {
    const shapes = { operands: op.inputs.map(shape), output: shape(op.output) };
    return rowOf(op).work(op, shapes) / Math.max(bytesOf(op.output), 1);
  };
  const candidates = rerunnable(joint)
    .filter(savePolicies.all)
    .map((op) => ({ id: op.output, worth: workPerByte(op) }))
    .toSorted((a, b) => b.worth - a.worth);
  const chosen = new Set<TensorId>();
  for (const { id } of candidates) {
    chosen.add(id);
    const { saved } = backwardPart(joint, ({ output }) => chosen.has(output));
    if (saved.reduce((sum, each) => sum + bytesOf(each), 0) > limit) chosen.delete(id);
  }
  return ({ output }) => chosen.has(output);
}

// Cuts a Fusion with its backward pass in two. A tensor of the forward pass that the backward pass reads is saved, or
// the ops that make it run again in the backward pass, from what is saved or from inputs.

/** A Fusion with its backward pass. */
interface Joint {
  readonly data: FusionData;
  /** How many tensors the forward pass has. */
  readonly known: number;
  readonly gradients: readonly TensorId[];
}

interface BackwardPart {
  /** Of the backward pass, in order: ops of the forward pass that run again, then those of the cotangents. */
  readonly ops: readonly Op[];
  /** The inputs of the Fusion that the backward pass reads. */
  readonly inputs: readonly TensorId[];
  readonly saved: readonly TensorId[];
}

/** Whether a tensor of the forward pass, of which `op` is the producer, is saved. */
type Saves = (op: Op) => boolean;

/** The kinds of ops that are not worth running again. */
const contractions: ReadonlySet<OpKind> = new Set(["Matmul", "Linear", "GroupedMatmul", "Sdpa"]);

const savePolicies = {
  /** Whatever the backward pass reads but views and casts: these cost no more than to read what is saved. */
  all: (op) => !rowOf(op).isView && op.kind !== "Cast",
  /** Results of contractions. */
  minimal: ({ kind }) => contractions.has(kind),
} as const satisfies Readonly<Record<string, Saves>>;

function backwardPart({ data, known, gradients }: Joint, saves: Saves): BackwardPart {
  const producers = new Map(data.ops.flatMap((op) => outputsOf(op).map((id) => [id, op] as const)));
  const inputs = new Set(data.inputs);
  const read = new Set<TensorId>(gradients);
  const saved = new Set<TensorId>();
  for (const id of read) {
    const op = producers.get(id);
    if (op === undefined) {
      invariant(inputs.has(id), "a tensor is an input or made by an op", id);
    } else if (id < known && saves(op)) {
      saved.add(id);
    } else {
      for (const input of op.inputs) read.add(input);
    }
  }
  return {
    ops: lateOrder(
      data.ops.filter((op) => outputsOf(op).some((id) => read.has(id) && !saved.has(id))),
      known,
    ),
    inputs: data.inputs.filter((id) => read.has(id)),
    saved: data.ops.flatMap((op) => outputsOf(op).filter((id) => saved.has(id))),
  };
}

/** The ops of the forward pass as late as those of the backward pass allow, so that their results live shortly. */
function lateOrder(ops: readonly Op[], known: number): readonly Op[] {
  const again = new Map(ops.flatMap((op) => (op.output < known ? outputsOf(op).map((id) => [id, op] as const) : [])));
  const ordered = new Set<Op>();
  for (const op of ops) {
    if (op.output < known) continue;
    // A stack, because a program may be deeper than recursion.
    const open = [op];
    for (let next = open.at(-1); next !== undefined; next = open.at(-1)) {
      const missing = next.inputs.flatMap((id) => again.get(id) ?? []).filter((each) => !ordered.has(each));
      open.push(...missing.toReversed());
      if (missing.length > 0) continue;
      ordered.add(next);
      open.pop();
    }
  }
  return [...ordered];
}

/** The ops of the forward pass that may run again, if nothing is saved: those on which the gradients depend. */
function rerunnable(joint: Joint): readonly Op[] {
  return backwardPart(joint, () => false).ops.filter(({ output }) => output < joint.known);
}
