/**
 * Ops on partial results in place of ops on their sum (insert-routes.ts): views, and others that are linear in it. The
 * axis that numbers the devices is the last one, and stays. Another operand gets such an axis of extent 1.
 *
 *   T3 = reduction(T2[M, N, DIDx], {2}); T4 = slice(T3)   ->   T5 = slice(T2); T4 = reduction(T5[M, N', DIDx], {2})
 *   T3 = reduction(T2[M, N, DIDx], {2}); T4 = mul(T3, T0)
 *     ->   T5[M, N, 1] = broadcast(T0); T6 = mul(T2, T5); T4 = reduction(T6, {2})
 */
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import { type AxisShape, type DIDType, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { keepShares, layout, layoutOf } from "../../ir/layout.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import { wholeAxis } from "../../ir/parts.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { typeOfWhole } from "../../ir/shards.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { addSerialTensor } from "../edit/tensor-edit.ts";
import { reduceOverDevices } from "./merge-sums.ts";
import { moveTo } from "./layouts.ts";
import type { Routing } from "./routing.ts";

/** Adds the op on partial results and the sum of what it gives, in place of an op on late sums; false for other ops. */
export function computeOnParts(routing: Routing, op: Op): boolean {
  const { tensors } = routing;
  const output = at(tensors, op.output);
  const to = layoutOf(output);
  const sums = op.inputs.map((id) => lateSum(routing, id));
  const first = sums.find((sum) => sum !== null);
  if (first === undefined || to === null) return false;
  const { mesh, type } = first;
  if (!sums.every((sum) => sum === null || (sum.type === type && sum.mesh.equals(mesh)))) return false;
  const axes = withoutReductions(output.domain.logical);
  const program = { ops: routing.fusion.ops, tensors };
  const own = onParts(program, op, (id) => lateSum(routing, id) !== null, first.dtype, first.axis, mesh.size(type));
  if (own === null || !to.mesh.equals(mesh)) return false;
  const devices: AxisShape = { extent: constant(mesh.size(type)), iterType: "iteration" };
  const parts = addSerialTensor(routing, output, [...output.domain.logical, devices], mesh, "partial sum");
  const kept = keepShares(to, (share) => share.type !== type).axes;
  moveTo(
    routing,
    parts,
    withoutReductions(parts.domain.logical),
    layout(mesh, [...kept, wholeAxis(devices.extent, type)]),
    null,
  );
  const inputs = op.inputs.map((id, i) => {
    if (op.kind === "IndexSelect") return sums[i]?.parts ?? id;
    const unit = sums[i]?.parts ?? withUnitAxis(routing, id);
    return op.kind === "ScatterAdd" && sums[i] === null ? repeated(routing, unit, parts) : unit;
  });
  routing.ops.push({ ...own, inputs, output: parts.id });
  reduceOverDevices(routing, { tensor: parts.id, slots: [...axes.keys(), type] }, "sum", output);
  return true;
}

/** Adds a copy of a tensor with one more axis at the end, of extent 1, that lies as the tensor does. */
function withUnitAxis(routing: Routing, id: TensorId): TensorId {
  const source = at(routing.tensors, id);
  const axes = withoutReductions(source.domain.logical);
  const place = layoutOf(source);
  const made = addSerialTensor(routing, source, [...axes, { extent: constant(1), iterType: "broadcast" }], source.mesh);
  const unit = at(made.domain.logical, axes.length).extent;
  if (place !== null) {
    moveTo(routing, made, made.domain.logical, layout(place.mesh, [...place.axes, wholeAxis(unit)]), null);
  }
  routing.ops.push({ kind: "Broadcast", flags: [...axes.map(() => false), true], inputs: [id], output: made.id });
  return made.id;
}

/** Partial results whose innermost axis numbers the devices along a type. */
interface LateSum {
  readonly parts: TensorId;
  readonly axis: number;
  readonly type: DIDType;
  readonly mesh: DeviceMesh;
  /** In which the parts were made. */
  readonly dtype: DType;
}

function lateSum({ tensors, late, waiting }: Routing, id: TensorId): LateSum | null {
  const dtype = late.get(id);
  const sum = dtype === undefined ? undefined : waiting.get(id)?.op;
  if (dtype === undefined || sum?.kind !== "Reduction") return null;
  const parts = at(tensors, at(sum.inputs, 0));
  const axes = withoutReductions(parts.domain.logical);
  const axis = axes.length - 1;
  const type = typeOfWhole(parts, at(axes, axis));
  if (type === null || parts.mesh === null || sum.axes.join() !== `${axis}`) return null;
  return { parts: parts.id, axis, type, mesh: parts.mesh, dtype };
}

/** Adds what repeats a tensor along its last axis, of extent 1, as `like` is cut there. */
function repeated(routing: Routing, id: TensorId, like: Tensor): TensorId {
  const [source, last] = [at(routing.tensors, id), withoutReductions(like.domain.logical).length - 1];
  const [own, others] = [layoutOf(source), layoutOf(at(routing.tensors, like.id))];
  const axes = withoutReductions(source.domain.logical);
  const { extent } = at(withoutReductions(like.domain.logical), last);
  const made = addSerialTensor(
    routing,
    source,
    axes.with(last, { ...at(axes, last), extent, iterType: "iteration" }),
    source.mesh,
  );
  if (own !== null && others !== null) {
    const cut = layout(own.mesh, own.axes.with(last, at(others.axes, last)));
    moveTo(routing, made, made.domain.logical, cut, null);
  }
  routing.ops.push({ kind: "Expand", inputs: [id], output: made.id });
  return made.id;
}

function isZero({ ops }: Program, id: TensorId): boolean {
  return ops.some((op) => op.output === id && op.kind === "Full" && Number(op.value) === 0);
}

type Program = Pick<FusionData, "ops" | "tensors">;

/**
 * The op on partial results, which were made in `dtype` and have an axis more at the end: number `axis`, of as many
 * indices as there are `devices`. Null for an op that is not linear in them.
 */
export function onParts(
  program: Program,
  op: Op,
  isPartial: (id: TensorId) => boolean,
  dtype: DType,
  axis: number,
  devices: number,
): Op | null {
  const partial = op.inputs.map(isPartial);
  const isAlone = (operand: number): boolean => partial.every((each, i) => each === (i === operand));
  if (partial.every(Boolean)) {
    switch (op.kind) {
      case "Slice":
        return { ...op, ranges: [...op.ranges, { start: constant(0), stop: constant(devices) }] };
      case "Permute":
        return { ...op, order: [...op.order, axis] };
      case "Broadcast":
        return { ...op, flags: [...op.flags, false] };
      case "Cat":
      case "Reshape":
      case "Squeeze":
        return op;
      default:
    }
  }
  const [output, source] = [at(program.tensors, op.output), at(program.tensors, at(op.inputs, 0))];
  if (dtypes[output.dtype].family !== "float") return null;
  const isLinear = (): boolean => {
    switch (op.kind) {
      case "Unary":
        return op.op === "neg";
      case "Cast":
        // To fewer bits only where the parts were made with as many.
        return dtypes[output.dtype].epsilon <= Math.max(dtypes[source.dtype].epsilon, dtypes[dtype].epsilon);
      case "Reduction":
        return op.op === "sum";
      case "Binary":
        if (op.scalar !== undefined) return op.op === "mul" || (op.op === "div" && op.scalar.position === 1);
        return (op.op === "mul" && (isAlone(0) || isAlone(1))) || (op.op === "div" && isAlone(0));
      case "Ternary":
        // Zeros in place of some elements.
        return op.op === "where" && isAlone(1) && Number(op.scalar?.text) === 0;
      case "IndexSelect":
        return isAlone(0);
      case "ScatterAdd":
        return op.sets === undefined && isAlone(2) && isZero(program, at(op.inputs, 0));
      default:
        return false;
    }
  };
  return isLinear() ? op : null;
}
