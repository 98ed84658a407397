/**
 * The growing tables of a HostProgramBuilder, and the checks of its methods' arguments. Tensors live in the tables of a
 * FusionBuilder, so that both builders have the TensorViews of the Fusion API. Its list of ops stays empty.
 */
import { createFusionBuilder, type FusionBuilder, makeAxes, markTensor } from "../../ir/api/fusion-builder.ts";
import { requireDType } from "../../ir/api/fusion.ts";
import { foreignText, internals, requireTensor } from "../../ir/api/handle.ts";
import { TensorView } from "../../ir/api/tensor-view.ts";
import { type AxisShape, plainDomain, type TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type Call, call, type CallArgument, reject, requireExtent } from "../../ir/ops/call.ts";
import { constant, type Scalar, symbol } from "../../ir/scalar/scalar.ts";
import type { DType } from "../../numerics/dtype.ts";
import { type CallMark, type CallSite, markCall, siteOf } from "../../support/call-site.ts";
import { makeId, at } from "../../support/invariant.ts";
import type { HostStream, HostUnit, Statement } from "../nodes.ts";
import { walk } from "../traverse.ts";
import type { Awaitable, AxisSpec, ScalarLike, TensorOptions } from "./options.ts";

export interface BuilderState {
  readonly tensors: FusionBuilder;
  readonly streams: HostStream[];
  readonly units: HostUnit[];
  /** units[i] was made from unitSources[i]. */
  readonly unitSources: UnitSource[];
  /** Indexed by ExprId. */
  readonly awaitables: Awaitable[];
  /** The open statement lists, innermost last. */
  readonly scopes: Statement[][];
  /** The user's calls that made the first statements. */
  readonly marks: Map<Statement, CallMark>;
}

export interface UnitSource {
  readonly fusion: FusionData;
  /** The extents of its symbols, as text. */
  readonly extents: string;
}

export function createBuilderState(): BuilderState {
  return {
    tensors: createFusionBuilder(),
    streams: [],
    units: [],
    unitSources: [],
    awaitables: [],
    scopes: [[]],
    marks: new Map(),
  };
}

/** Programs with more statements are generated, not written, and a line takes 5 to 15 microseconds to find. */
const mostMarks = 200;

export function append(state: BuilderState, statement: Statement): void {
  at(state.scopes, state.scopes.length - 1).push(statement);
  const mark = state.marks.size < mostMarks ? markCall() : null;
  if (mark !== null) state.marks.set(statement, mark);
}

/** The user's calls that made the statements of `body`, as `walk` counts these. */
export function callsOf({ marks }: BuilderState, body: readonly Statement[]): readonly (CallSite | null)[] {
  return walk(body).map((statement) => {
    const mark = marks.get(statement);
    return mark === undefined ? null : siteOf(mark);
  });
}

/** The statements that `body` appends, as a scope. */
export function collect(state: BuilderState, body: () => void): readonly Statement[] {
  const scope: Statement[] = [];
  const depth = state.scopes.push(scope);
  try {
    body();
    return scope;
  } finally {
    state.scopes.length = depth - 1;
  }
}

export function toScalar(value: ScalarLike): Scalar {
  return typeof value === "number" ? constant(value) : value;
}

/**
 * The tensor's id. Throws `foreign-tensor` for a tensor of a Fusion or another builder, `bad-argument` for any other
 * value.
 */
export function ownId(state: BuilderState, tensor: TensorView, place: Call): TensorId {
  requireTensor(tensor, place.text.split("(", 1)[0] ?? "", 0);
  if (tensor[internals].builder === state.tensors) return tensor.id;
  return reject(place, "foreign-tensor", "the tensor belongs to another program", {
    found: foreignText(tensor, "program"),
    expected: "tensors of this HostProgramBuilder",
    help: "make the tensor with input() or tensor() of this builder",
  });
}

/** Throws `bad-argument` unless `row` is one of `table`. */
export function requireRow<T extends { readonly id: number }>(
  table: readonly T[],
  row: T,
  what: string,
  place: Call,
): void {
  if (table[row.id] === row) return;
  reject(place, "bad-argument", `a ${what} belongs to another builder`, {
    found: `${what} ${row.id}`,
    expected: `a ${what} of this HostProgramBuilder`,
    help: `make the ${what} with this builder`,
  });
}

/** Throws `bad-argument` inside a loop or branch, and if an op of the Fusion API has a tensor of the builder. */
export function requireBuildable({ scopes, tensors: { ops } }: BuilderState): void {
  const place = call("build");
  if (scopes.length > 1) {
    reject(place, "bad-argument", "the program is built inside a loop or branch", {
      found: "build() in the body of forLoop or ifThenElse",
      expected: "build() after the last statement",
      help: "call build() outside",
    });
  }
  // The free functions `add(a, b)` of the Fusion API take the same handles, and append to a Fusion.
  const [first] = ops;
  if (first === undefined) return;
  reject(place, "bad-argument", "an op of the Fusion API was called with a tensor of a HostProgramBuilder", {
    found: `T${first.output} = ${first.kind}(${first.inputs.map((id) => `T${id}`).join(", ")})`,
    expected: "computations by the builder's own methods",
    help: "call builder.add(a, b) instead of add(a, b), or put the op into a Fusion and post it with postOnStream",
  });
}

// New tensors of a HostProgramBuilder: axes from extents, annotations from options.

/** Throws `bad-extent`, `bad-argument`, and any error of the annotations. */
export function addBuiltTensor(
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
    reject(place, "bad-argument", "more parallel types than axes", {
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
