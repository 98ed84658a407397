/**
 * The growing tables behind a HostProgramBuilder, and the checks that every call makes of what it is given. Tensors live in the
 * tables of a FusionBuilder, so that the handles of the Fusion API serve both; its list of ops stays empty.
 */
import { type Call, reject } from "../../ir/ops/call.ts";
import { internals, requireTensor } from "../../ir/api/handle.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { TensorId } from "../../ir/domain.ts";
import { createFusionBuilder, type FusionBuilder } from "../../ir/api/fusion-builder.ts";
import { constant, type Scalar } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Communication, EndCoalescing, HostStream, HostUnit, P2PCommunication, Statement } from "../nodes.ts";

export interface BuilderState {
  readonly tensors: FusionBuilder;
  readonly streams: HostStream[];
  readonly units: HostUnit[];
  /** unitSources[i]: what units[i] was made from. */
  readonly unitSources: UnitSource[];
  /** Indexed by ExprId. */
  readonly awaitables: Awaitable[];
  /** The statement lists under way, innermost last. */
  readonly scopes: Statement[][];
}

/** What a Wait can name. */
export type Awaitable = Communication | P2PCommunication | EndCoalescing;

export interface UnitSource {
  readonly fusion: FusionData;
  /** The extents that its symbols stand for, as text. */
  readonly extents: string;
}

/** A number, or a scalar expression. */
export type ScalarLike = number | Scalar;

export function createBuilderState(): BuilderState {
  return { tensors: createFusionBuilder(), streams: [], units: [], unitSources: [], awaitables: [], scopes: [[]] };
}

export function append(state: BuilderState, statement: Statement): void {
  at(state.scopes, state.scopes.length - 1).push(statement);
}

/** What `body` appends, as a scope of its own. */
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

/** The tensor's id. Throws `foreign-tensor` for a tensor of a Fusion or another builder, `bad-argument` for what is no tensor. */
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
