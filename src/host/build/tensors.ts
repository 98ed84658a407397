/** New tensors of a HostProgramBuilder: axes from extents, annotations from options. */
import { TensorView } from "../../ir/api/tensor-view.ts";
import { requireDType } from "../../ir/api/fusion.ts";
import { type Call, call, type CallArgument, reject, requireExtent } from "../../ir/ops/call.ts";
import { type AxisShape, plainDomain, type TensorId } from "../../ir/domain.ts";
import { makeAxes, markTensor } from "../../ir/api/fusion-builder.ts";
import { constant, symbol } from "../../ir/scalar/scalar.ts";
import type { DType } from "../../numerics/dtype.ts";
import { makeId } from "../../support/ids.ts";
import type { AxisSpec, TensorOptions } from "./options.ts";
import type { BuilderState } from "./state.ts";

/** Throws `bad-extent`, `bad-argument`, and any error of the annotations. */
export function addTensor(
  state: BuilderState,
  method: "input" | "tensor",
  extents: readonly AxisSpec[],
  options: TensorOptions,
): TensorView {
  const place = call(method, { code: `[${extents.map(specText).join(", ")}]` }, ...optionsText(options));
  const { dtype = "float" } = options;
  requireDType(dtype, place);
  const axes = extents.map((spec) => axisOf(state, spec, method === "input", place));
  const view = addLike(state, dtype, axes);
  annotate(view, options, place);
  return view;
}

/** A tensor with known axes. Axis i takes the (numbering[i])-th new IterDomain number, or the i-th. */
export function addLike(
  { tensors: builder }: BuilderState,
  dtype: DType,
  axes: readonly AxisShape[],
  numbering?: readonly number[],
): TensorView {
  const id = makeId<TensorId>(builder.tensors.length);
  const logical = makeAxes(axes, builder.iterDomainCount, numbering);
  builder.iterDomainCount += logical.length;
  builder.tensors.push({ id, dtype, memory: "global", domain: plainDomain(logical), mesh: null });
  markTensor(builder, id);
  return new TensorView({ builder, id });
}

/** Parallel types come first, so that a mesh that does not fit is reported once. */
export function annotate(view: TensorView, { mesh, parallel = [], memory }: TensorOptions, place: Call): void {
  if (parallel.length > view.nDims) {
    reject(place, {
      code: "bad-argument",
      message: "more parallel types than axes",
      found: `${parallel.length} parallel types for ${view.nDims} axes`,
      expected: "at most one per axis",
      help: "remove the extra parallel types",
    });
  }
  parallel.forEach((type, i) => {
    if (type !== "Serial") view.axis(i).parallelize(type);
  });
  if (mesh !== undefined) view.setDeviceMesh(mesh);
  if (memory !== undefined) view.setMemoryType(memory);
}

function axisOf(state: BuilderState, spec: AxisSpec, isInput: boolean, place: Call): AxisShape {
  if (spec === "broadcast") return { extent: constant(1), iterType: "broadcast" };
  // As in the Fusion API, every extent of an input takes a number, even a constant one.
  const name = isInput || spec === null ? nextName(state) : "";
  if (spec === null) return { extent: symbol(name), iterType: "iteration" };
  if (typeof spec === "number") return { extent: constant(requireExtent(spec, place)), iterType: "iteration" };
  if (!("reduced" in spec)) return { extent: spec, iterType: "iteration" };
  const { reduced } = spec;
  const extent = typeof reduced === "number" ? constant(requireExtent(reduced, place)) : reduced;
  return { extent, iterType: "reduction" };
}

/** The next free `i<n>`. As in the Fusion API, `i1` is skipped. */
export function nextName({ tensors: builder }: BuilderState): string {
  const number = builder.scalarCount;
  builder.scalarCount += number === 0 ? 2 : 1;
  return `i${number}`;
}

function specText(spec: AxisSpec): string {
  if (spec === null || typeof spec !== "object") return String(spec);
  return "reduced" in spec ? "{ reduced }" : "scalar";
}

function optionsText({ dtype, parallel }: TensorOptions): readonly CallArgument[] {
  const parts = [
    ...(dtype === undefined ? [] : [`dtype: ${JSON.stringify(dtype)}`]),
    ...(parallel === undefined ? [] : [`parallel: ${JSON.stringify(parallel)}`]),
  ];
  return parts.length === 0 ? [] : [{ code: `{ ${parts.join(", ")} }` }];
}
