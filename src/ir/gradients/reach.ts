/** Which tensors a derivative reaches, and the diagnostics for those that it does not reach. */
import { isScaled } from "../ops/kinds/contractions.ts";
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { computedFloats, dtypes, isComputed } from "../../numerics/dtype.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Tensor, TensorId } from "../domain.ts";
import type { FusionData } from "../fusion-data.ts";
import { type Call, reject } from "../ops/call.ts";
import { type Op, outputsOf } from "../ops/op.ts";
import { originated } from "../origin.ts";
import { compositionVjps, markedRegions } from "./compositions.ts";
import { unaryVjps } from "./functions.ts";
import { vjps } from "./rules.ts";

/** The float tensors that depend on `wrt` by ops with rules, or by compositions with rules where their ops have none. */
export function activeTensors(
  { ops, tensors, markers = [] }: FusionData,
  wrt: readonly TensorId[],
): ReadonlySet<TensorId> {
  const operands = new Map<TensorId, readonly TensorId[]>(
    markers.flatMap(({ name, operands: own, outputs }) =>
      compositionVjps[name] === null ? [] : outputs.map((id) => [id, Object.values<TensorId>(own)] as const),
    ),
  );
  return dependents(ops, wrt, (op, reached) =>
    isBlocked(op, tensors)
      ? operands.get(op.output)?.some((id) => reached.has(id)) === true
      : op.inputs.some((id) => reached.has(id)),
  );
}

function isFloat({ dtype }: Tensor): boolean {
  return dtypes[dtype].family === "float" && isComputed(dtype);
}

/** Whether no derivative passes the op. */
function isBlocked(op: Op, tensors: readonly Tensor[]): boolean {
  const isFlat = op.kind === "Unary" && unaryVjps[op.op] === null;
  return isFlat || isScaled(op) || vjps[op.kind] === null || !isFloat(at(tensors, op.output));
}

function dependents(
  ops: readonly Op[],
  from: readonly TensorId[],
  follows: (op: Op, reached: ReadonlySet<TensorId>) => boolean,
): ReadonlySet<TensorId> {
  const reached = new Set(from);
  for (const op of ops) {
    if (follows(op, reached)) for (const id of outputsOf(op)) reached.add(id);
  }
  return reached;
}

/** Throws `not-differentiable`. */
export function requireFloatTensor(tensor: Tensor, place: Call): void {
  if (isFloat(tensor)) return;
  reject(place, "not-differentiable", `T${tensor.id} is not a tensor of floats`, {
    found: tensor.dtype,
    expected: computedFloats.join(", "),
    help: "differentiate tensors of these dtypes; others have no gradients",
  });
}

/** Null if no tensor of `of` depends on `id`. Otherwise throws `not-differentiable`, with the op that is in the way. */
export function requireIndependent(data: FusionData, of: readonly TensorId[], id: TensorId, place: Call): null {
  const { ops, tensors } = data;
  const from = dependents(ops, [id], (op, reached) => op.inputs.some((each) => reached.has(each)));
  if (!of.some((each) => from.has(each))) return null;
  const needed = new Set(of);
  for (const op of ops.toReversed())
    if (outputsOf(op).some((id) => needed.has(id))) for (const input of op.inputs) needed.add(input);
  // The last one of all paths that a derivative reaches: what is before may have other paths.
  const active = activeTensors(data, [id]);
  const blocking = ops.findLast(
    (op) =>
      isBlocked(op, tensors) &&
      outputsOf(op).some((output) => needed.has(output)) &&
      op.inputs.some((input) => active.has(input)),
  );
  invariant(blocking !== undefined, "an op is in the way where a tensor depends on another without a derivative", id);
  const { name, inputs, output } = asWritten(data, blocking);
  const found = `T${output} = ${name}(${inputs.map((input) => `T${input}`).join(", ")})`;
  const about: Diagnostic = { code: "not-differentiable", message: found };
  const { tensors: mentions } = originated(about, tensors);
  return reject(place, "not-differentiable", `no gradient of T${id} passes ${name}`, {
    found,
    expected: "at least one path of differentiable ops",
    help: `leave T${id} out of wrt, or compute the result without this op`,
    ...(mentions === undefined ? {} : { tensors: mentions }),
  });
}

/** The op, or the composition without a derivative that it is part of. */
function asWritten(
  data: FusionData,
  op: Op,
): { readonly name: string; readonly inputs: readonly TensorId[]; readonly output: TensorId } {
  const region = [...markedRegions(data).values()]
    .flat()
    .find(({ marker, made }) => compositionVjps[marker.name] === null && made.includes(op.output));
  if (region === undefined) return { name: opName(op), inputs: op.inputs, output: op.output };
  const { name, operands, outputs } = region.marker;
  return { name, inputs: Object.values<TensorId>(operands), output: at(outputs, 0) };
}

function opName(op: Op): string {
  return "op" in op ? op.op : op.kind.toLowerCase();
}
