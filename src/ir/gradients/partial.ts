/**
 * A gradient as the parts that devices add to it: a sum over rows, which the devices share, stops in front of the sum
 * over the devices. The part of each is its own, so nothing is sent.
 *
 *   dw[N, K] = matmul(g[N, R], x[R, K])     becomes     [D, N, K] = matmul(g[D, N, R/D], x[D, R/D, K])
 */
import { at } from "../../support/invariant.ts";
import { add, cast, matmul, mul, neg, permute, reshape, sum } from "../api/ops.ts";
import type { FusionBuilder } from "../api/fusion-builder.ts";
import { TensorView } from "../api/tensor-view.ts";
import { type DIDType, didTypes, isUnitAxis, type Tensor, withoutReductions } from "../domain.ts";
import { type Call, reject } from "../ops/call.ts";
import type { Op } from "../ops/op.ts";
import { foldDiv } from "../scalar/fold.ts";
import { constant } from "../scalar/scalar.ts";

/** The first dimension of its mesh along which the tensor is whole. Throws `bad-argument`. */
export function freeDimension(
  { id, mesh, domain }: Tensor,
  place: Call,
): { readonly type: DIDType; readonly size: number } {
  const used = new Set(domain.loop.map(({ parallelType }) => parallelType));
  const type = didTypes.find((each) => mesh?.hasAxis(each) === true && !used.has(each));
  if (type !== undefined && mesh !== null) return { type, size: mesh.size(type) };
  return reject(place, "bad-argument", `no devices share the gradient of T${id}`, {
    found: mesh === null ? "no mesh" : "an axis for each dimension of its mesh",
    expected: "a mesh with a dimension along which the tensor is whole",
    help: "leave the tensor out of partial",
  });
}

export function rejectParts({ id }: Tensor, gradient: TensorView, place: Call): never {
  return reject(place, "bad-argument", `the gradient of T${id} is no sum over rows`, {
    found: `T${gradient.id}`,
    expected: "a matmul, or a sum over the outermost axis, casts of these and their sums",
    help: "leave the tensor out of partial",
  });
}

/** The parts of `gradient`, with an axis of `devices` in front; null if it is no sum over rows. */
export function gradientParts(builder: FusionBuilder, gradient: TensorView, devices: number): TensorView | null {
  const op = builder.ops.find(({ output }) => output === gradient.id);
  const operands = (op?.inputs ?? []).map((id) => new TensorView({ builder, id }));
  const parts = (): readonly TensorView[] | null => {
    const each = operands.map((operand) => gradientParts(builder, operand, devices));
    return each.some((part) => part === null) ? null : each.filter((part) => part !== null);
  };
  switch (op?.kind) {
    case "Matmul":
      return contractionParts(at(operands, 0), at(operands, 1), devices);
    case "Reduction":
      return op.op === "sum" ? sumParts(at(operands, 0), op.axes, devices) : null;
    case "Cast": {
      const [x] = parts() ?? [];
      return x === undefined ? null : cast(x, op.to);
    }
    case "Unary": {
      const [x] = (op.op === "neg" ? parts() : null) ?? [];
      return x === undefined ? null : neg(x);
    }
    case "Binary":
      return linearParts(op, parts);
    default:
      return null;
  }
}

function linearParts(
  op: Extract<Op, { kind: "Binary" }>,
  parts: () => readonly TensorView[] | null,
): TensorView | null {
  const number = op.scalar === undefined ? null : Number(op.scalar.text);
  if (op.op === "mul" && number !== null) {
    const [x] = parts() ?? [];
    return x === undefined ? null : mul(x, number);
  }
  if (op.op !== "add" || number !== null) return null;
  const [a, b] = parts() ?? [];
  return a === undefined || b === undefined ? null : add(a, b);
}

/** a[N, R] b[R, K] */
function contractionParts(a: TensorView, b: TensorView, devices: number): TensorView | null {
  if (a.rank !== 2 || b.rank !== 2) return null;
  const share = foldDiv(at(b.extents, 0), constant(devices));
  const left = permute(reshape(a, [at(a.extents, 0), devices, share]), [1, 0, 2]);
  return matmul(left, reshape(b, [devices, share, at(b.extents, 1)]));
}

function sumParts(x: TensorView, axes: readonly number[], devices: number): TensorView | null {
  const [outermost] = withoutReductions(x.data().domain.logical);
  if (!axes.includes(0) || outermost === undefined || isUnitAxis(outermost)) return null;
  const share = foldDiv(outermost.extent, constant(devices));
  return sum(
    reshape(x, [devices, share, ...x.extents.slice(1)]),
    axes.map((axis) => axis + 1),
  );
}
