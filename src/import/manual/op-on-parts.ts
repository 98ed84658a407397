/** An op on one device's part, as an op on the parts of all devices: tensors with leading axes (parts.ts). */
import { fail } from "../../diagnostics/diagnostic.ts";
import {
  add,
  broadcast,
  cast,
  expand,
  gather,
  matmul,
  permute,
  reshape,
  squeeze,
  unsqueeze,
} from "../../ir/api/ops.ts";
import { applyAll, applyIn, callOf } from "../../ir/api/ops/apply.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { fusionState } from "../../ir/api/handle.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { type Tensor, withoutReductions } from "../../ir/domain.ts";
import { call } from "../../ir/ops/call.ts";
import { type Op, type OpSpec, outputsOf } from "../../ir/ops/op.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";
import {
  type DevicePart,
  knownExtent,
  type ManualSizes,
  sizesAlong,
  tensorOnAxes,
  unionOfAxes,
  wholeOnAxes,
} from "./parts.ts";

/** The parts that `op` makes of `operands`; `tensors`: of the program of one device. */
export function opOnParts(
  fusion: Fusion,
  sizes: ManualSizes,
  op: Op,
  tensors: readonly Tensor[],
  operands: readonly DevicePart[],
): readonly DevicePart[] {
  const axes = unionOfAxes(
    sizes,
    operands.map((part) => part.axes),
  );
  const [own, output] = [op.inputs.map((id) => at(tensors, id)), at(tensors, op.output)];
  const spec = rowOf(op).respec(op, own, output, call(op.kind));
  const views = results(fusion, sizes, spec, axes, operands);
  return views.map((tensor, i): DevicePart => {
    const { domain } = at(tensors, at(outputsOf(op), i));
    return { tensor, axes, shape: withoutReductions(domain.logical).map(({ extent }) => knownExtent(extent)) };
  });
}

function results(
  fusion: Fusion,
  sizes: ManualSizes,
  spec: OpSpec,
  axes: readonly string[],
  operands: readonly DevicePart[],
): readonly TensorView[] {
  if (axes.length === 0) {
    const given = operands.map(({ tensor }) => tensor);
    if (given.length > 0) return applyAll(spec, given, callOf(spec.kind, given));
    return [applyIn(fusion[fusionState], spec, [], call(spec.kind))];
  }
  const applied = (shifted: OpSpec, wide: boolean): readonly TensorView[] => {
    const given = operands.map((part) => (wide ? wholeOnAxes(sizes, part, axes) : tensorOnAxes(part, axes)));
    return applyAll(shifted, given, callOf(spec.kind, given));
  };
  const count = axes.length;
  const leading = sizesAlong(sizes, axes).map((size) => constant(size));
  switch (spec.kind) {
    case "Set":
    case "Unary":
    case "Cast":
    case "Binary":
    case "Ternary":
      return applied(spec, false);
    case "GroupedMatmul":
    case "Sdpa":
    case "SdpaBackward":
    case "Full":
    case "Iota":
    case "RandomBits":
      return applied(spec, true);
    case "Reduction":
    case "Squeeze":
      return applied({ ...spec, axes: spec.axes.map((axis) => axis + count) }, false);
    case "Select":
    case "Scan":
    case "Argsort":
    case "Cat":
    case "Gather":
    case "ScatterAdd":
      return applied({ ...spec, axis: spec.axis + count }, true);
    case "Broadcast":
      return applied({ ...spec, flags: [...axes.map(() => false), ...spec.flags] }, false);
    case "Permute":
      return applied({ ...spec, order: [...axes.keys(), ...spec.order.map((axis) => axis + count)] }, false);
    case "Expand":
    case "Reshape":
      return applied({ ...spec, extents: [...leading, ...spec.extents] }, true);
    case "Slice":
      return applied(
        { ...spec, ranges: [...leading.map((stop) => ({ start: constant(0), stop })), ...spec.ranges] },
        true,
      );
    case "Pad":
      return applied({ ...spec, widths: [...axes.map(() => ({ before: 0, after: 0 })), ...spec.widths] }, true);
    case "Matmul":
      return [matmulOf(axes, operands)];
    case "Linear": {
      const [x, ...others] = operands;
      // Only x differs between the devices: its leading axes are further rows.
      if (x !== undefined && others.every((part) => part.axes.length === 0)) {
        const given = operands.map(({ tensor }) => tensor);
        return applyAll(spec, given, callOf(spec.kind, given));
      }
      if (spec.to !== undefined) refuseScaled();
      return [linearOf(sizes, axes, operands)];
    }
    case "IndexSelect":
      return [selectedOf(sizes, axes, at(operands, 0), at(operands, 1), spec.axis)];
  }
}

function refuseScaled(): never {
  return fail("model-unsupported", "Braid has no products of 8-bit floats with weights of each device", {
    place: { kind: "call", text: "scaledLinear" },
    found: "scales of weights that differ between devices",
    expected: "weights that are equal on all devices, or wider dtypes",
    help: "export the model of one device, and say with --plan how it lies on several",
  });
}

/** The tensor with the leading axes and `rank` more, of which those in front of its own have the extent 1. */
function padded(part: DevicePart, axes: readonly string[], rank: number): TensorView {
  const tensor = tensorOnAxes(part, axes);
  if (part.shape.length >= rank) return tensor;
  const added = Array.from({ length: rank - part.shape.length }, () => true);
  return broadcast(tensor, [...axes.map(() => false), ...added, ...part.shape.map(() => false)]);
}

function matmulOf(axes: readonly string[], operands: readonly DevicePart[]): TensorView {
  const [a, b] = [at(operands, 0), at(operands, 1)];
  // A vector is a matrix of one row or column.
  const isColumn = b.shape.length === 1;
  const right = isColumn ? { ...b, tensor: unsqueeze(b.tensor, -1), shape: [...b.shape, 1] } : b;
  const rank = Math.max(a.shape.length, right.shape.length, 2);
  const product = matmul(padded(a, axes, rank), padded(right, axes, rank));
  const last = axes.length + rank - 1;
  const dropped = [...(a.shape.length === 1 ? [last - 1] : []), ...(isColumn ? [last] : [])];
  return dropped.length === 0 ? product : squeeze(product, dropped);
}

/** Rows times weights of each device: one matrix each, so that rows of any shape become one axis. */
function linearOf(sizes: ManualSizes, axes: readonly string[], operands: readonly DevicePart[]): TensorView {
  const [x, weight, bias] = [at(operands, 0), at(operands, 1), operands[2]];
  const leading = sizesAlong(sizes, axes);
  const depth = x.shape.at(-1) ?? 1;
  const rows = x.shape.slice(0, -1);
  const features = weight.shape.slice(0, -1);
  const flat = reshape(wholeOnAxes(sizes, x, axes), [...leading, elementCount(rows), depth]);
  const matrix = reshape(wholeOnAxes(sizes, weight, axes), [...leading, elementCount(features), depth]);
  const order = [...axes.keys(), axes.length + 1, axes.length];
  const product = reshape(matmul(flat, permute(matrix, order)), [...leading, ...rows, ...features]);
  if (bias === undefined) return product;
  return cast(add(product, padded(bias, axes, rows.length + features.length)), product.dtype);
}

/** `indexSelect` of a table and indices of each device. */
function selectedOf(
  sizes: ManualSizes,
  axes: readonly string[],
  table: DevicePart,
  index: DevicePart,
  axis: number,
): TensorView {
  const count = axes.length;
  const own = sizesAlong(sizes, axes);
  const before = table.shape.slice(0, axis);
  const after = table.shape.slice(axis + 1);
  const length = elementCount(index.shape);
  const wide = [...own, ...before, length, ...after];
  const flags = wide.map((_, i) => i >= count && i !== count + axis);
  const flat = reshape(wholeOnAxes(sizes, index, axes), [...own, length]);
  const taken = gather(wholeOnAxes(sizes, table, axes), count + axis, expand(broadcast(flat, flags), wide));
  return reshape(taken, [...own, ...before, ...index.shape, ...after]);
}
