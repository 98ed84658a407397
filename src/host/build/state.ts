/**
 * The growing tables of a HostProgramBuilder, and the checks of its methods' arguments. Tensors live in the tables of a
 * FusionBuilder, so that both builders have the TensorViews of the Fusion API. Its list of ops stays empty.
 */
import { type Call, call, reject } from "../../ir/ops/call.ts";
import { internals, requireTensor } from "../../ir/api/handle.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { TensorId } from "../../ir/domain.ts";
import { createFusionBuilder, type FusionBuilder } from "../../ir/api/fusion-builder.ts";
import { constant, type Scalar } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { HostStream, HostUnit, Statement } from "../nodes.ts";
import type { Awaitable, ScalarLike } from "./options.ts";

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
}

export interface UnitSource {
  readonly fusion: FusionData;
  /** The extents of its symbols, as text. */
  readonly extents: string;
}

export function createBuilderState(): BuilderState {
  return { tensors: createFusionBuilder(), streams: [], units: [], unitSources: [], awaitables: [], scopes: [[]] };
}

export function append(state: BuilderState, statement: Statement): void {
  at(state.scopes, state.scopes.length - 1).push(statement);
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
  return reject(place, {
    code: "foreign-tensor",
    message: `T${tensor.id} belongs to another program`,
    found: `T${tensor.id} of a Fusion or of another HostProgramBuilder`,
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
  reject(place, {
    code: "bad-argument",
    message: `a ${what} belongs to another builder`,
    found: `${what} ${row.id}`,
    expected: `a ${what} of this HostProgramBuilder`,
    help: `make the ${what} with this builder`,
  });
}

/** Throws `bad-argument` inside a loop or branch, and if an op of the Fusion API has a tensor of the builder. */
export function requireBuildable({ scopes, tensors: { ops } }: BuilderState): void {
  const place = call("build");
  if (scopes.length > 1) {
    reject(place, {
      code: "bad-argument",
      message: "the program is built inside a loop or branch",
      found: "build() in the body of forLoop or ifThenElse",
      expected: "build() after the last statement",
      help: "call build() outside",
    });
  }
  // The free functions `add(a, b)` of the Fusion API take the same handles, and append to a Fusion.
  const [first] = ops;
  if (first === undefined) return;
  reject(place, {
    code: "bad-argument",
    message: "an op of the Fusion API was called with a tensor of a HostProgramBuilder",
    found: `T${first.output} = ${first.kind}(${first.inputs.map((id) => `T${id}`).join(", ")})`,
    expected: "computations by the builder's own methods",
    help: "call builder.add(a, b) instead of add(a, b), or put the op into a Fusion and post it with postOnStream",
  });
}
