/** Gradients of a Fusion's tensors: reverse mode (gradients/differentiate.ts), appended to the Fusion. */
import { markCall, siteOf } from "../../support/call-site.ts";
import { at } from "../../support/invariant.ts";
import type { Tensor, TensorId } from "../domain.ts";
import { type Differentiated, differentiate, requireFloatTensor } from "../gradients/differentiate.ts";
import { argumentText, type Call, call, callOn, reject, shapeText } from "../ops/call.ts";
import { extentsDiffer } from "../scalar/fold.ts";
import { type FusionBuilder, growTo } from "./fusion-builder.ts";
import type { Fusion } from "./fusion.ts";
import { argumentOf, fusionState, requireOwner, requireTensor } from "./handle.ts";
import { TensorView } from "./tensor-view.ts";

export interface GradientRequest {
  /** The tensors that are differentiated: a loss, or outputs with their cotangents. */
  readonly of: readonly TensorView[];
  /** One per tensor of `of`, of its shape and dtype. The default is 1, for tensors without axes only. */
  readonly cotangents?: readonly TensorView[];
  /** The tensors whose gradients are wanted: inputs, weights, or any other. */
  readonly wrt: readonly TensorView[];
  /**
   * Those of `wrt` whose gradients stay the parts of the devices, which no collective adds: with one more axis in front,
   * which has a DID type along which the tensor is whole. The tensor has its mesh before the call: it gives the extent.
   */
  readonly partial?: readonly TensorView[];
  /**
   * Gives null for a tensor of `wrt` that no derivative reaches, such as one whose only reader sorts, in place of
   * `not-differentiable`: as allow_unused of torch.autograd.grad.
   */
  readonly allowUnused?: boolean;
}

/**
 * Appends the backward pass to the Fusion. The result has the gradient for each tensor of `wrt`, of its shape and dtype,
 * and null where no tensor of `of` depends on it. Lowering places a gradient like its tensor, wherever the annotations
 * stand; Stream is not copied. Gradients are no outputs until `output` makes them so, and a program has only the ops that
 * its outputs need.
 * Throws `not-differentiable`, `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`, `bad-argument`.
 */
export function gradients(fusion: Fusion, request: GradientRequest): readonly (TensorView | null)[] {
  const { data, gradients: found } = jointOf(fusion, request);
  const builder = fusion[fusionState];
  growTo(builder, data);
  return found.map((id) => (id === null ? null : new TensorView({ builder, id })));
}

/** The data of the Fusion with the backward pass. The Fusion stays as it is. Throws what `gradients` throws. */
export function jointOf(fusion: Fusion, request: GradientRequest): Differentiated {
  const builder = fusion[fusionState];
  const { of, wrt, cotangents, partial = [], allowUnused = false } = request;
  const lists = { of, wrt, partial, cotangents: cotangents ?? [] };
  for (const [name, list] of Object.entries(lists)) requireList(list, name);
  const all = Object.values(lists).flat();
  all.forEach((tensor, i) => {
    requireTensor(tensor, "gradients", i);
  });
  const place = callIn(builder, request);
  for (const [name, list] of Object.entries(lists))
    for (const tensor of list) requireOwner(tensor, builder, `a tensor of \`${name}\``, place);
  // No cotangent helps integers.
  for (const tensor of of) requireFloatTensor(tensor.data(), place);
  const given = cotangentsOf(of, cotangents, place);
  const before = fusion.data();
  const ids = (tensors: readonly TensorView[]): readonly TensorId[] => tensors.map(({ id }) => id);
  const { data, gradients: found } = differentiate(
    before,
    {
      of: ids(of),
      cotangents: given.map((each) => each?.id ?? null),
      wrt: ids(wrt),
      partial: ids(partial),
      allowUnused,
    },
    place,
  );
  return { data: { ...data, tensors: madeHere(data.tensors, before.tensors.length) }, gradients: found };
}

/** Throws `bad-argument`. */
function requireList(list: unknown, name: string): void {
  if (Array.isArray(list)) return;
  reject(call("gradients", { code: `{ ${name} }` }), "bad-argument", `${name} is not a list of tensors`, {
    found: list === null ? "null" : list instanceof TensorView ? "a tensor" : typeof list,
    expected: "an array of tensors",
    help: "write the lists out: gradients(fusion, { of: [loss], wrt: [x, w] })",
  });
}

function callIn(builder: FusionBuilder, { of, wrt }: GradientRequest): Call {
  const list = (tensors: readonly TensorView[]): string =>
    `[${tensors.map((tensor) => argumentText(argumentOf(tensor, builder))).join(", ")}]`;
  return callOn(builder.tensors, "gradients", () => [{ code: `{ of: ${list(of)}, wrt: ${list(wrt)} }` }]);
}

function cotangentsOf(
  of: readonly TensorView[],
  cotangents: readonly TensorView[] | undefined,
  place: Call,
): readonly (TensorView | null)[] {
  if (cotangents === undefined) {
    for (const tensor of of) requireScalar(tensor, place);
    return of.map(() => null);
  }
  if (cotangents.length !== of.length) {
    reject(place, "bad-argument", "the number of cotangents is wrong", {
      found: `${cotangents.length} for ${of.length} tensor${of.length === 1 ? "" : "s"}`,
      expected: "one cotangent per tensor of `of`",
      help: "give one per tensor, in the order of `of`",
    });
  }
  of.forEach((tensor, i) => {
    requireAlike(tensor, at(cotangents, i), place);
  });
  return cotangents;
}

/** Throws `shape-mismatch`. */
function requireScalar(tensor: TensorView, place: Call): void {
  if (tensor.rank === 0) return;
  reject(place, "shape-mismatch", `T${tensor.id} needs a cotangent`, {
    found: shapeText(tensor.data()),
    expected: "a tensor without axes, such as a loss, or a cotangent of the same shape",
    help: "pass cotangents, or sum the tensor first",
  });
}

/** Throws `shape-mismatch`, `dtype-mismatch`. */
function requireAlike(tensor: TensorView, cotangent: TensorView, place: Call): void {
  const [extents, others] = [tensor.extents, cotangent.extents];
  if (extents.length !== others.length || extents.some((extent, i) => extentsDiffer(extent, at(others, i)))) {
    reject(place, "shape-mismatch", `the cotangent of T${tensor.id} has another shape`, {
      found: `${shapeText(cotangent.data())} for ${shapeText(tensor.data())}`,
      expected: "equal shapes",
      help: "give the cotangent the shape of the tensor",
    });
  }
  if (tensor.dtype === cotangent.dtype) return;
  reject(place, "dtype-mismatch", `the cotangent of T${tensor.id} has another dtype`, {
    found: `T${cotangent.id} ${cotangent.dtype}, T${tensor.id} ${tensor.dtype}`,
    expected: tensor.dtype,
    help: `convert with cast(tensor, "${tensor.dtype}")`,
  });
}

/** The tensors, of which those from `first` on were made by the user's current call. */
function madeHere(tensors: readonly Tensor[], first: number): readonly Tensor[] {
  const mark = markCall();
  const source = mark === null ? null : siteOf(mark);
  if (source === null) return tensors;
  return tensors.map((tensor, id) => (id < first ? tensor : { ...tensor, origin: { ...tensor.origin, source } }));
}
