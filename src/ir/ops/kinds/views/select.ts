/** Removes an axis by fixing its index. */
import { at } from "../../../../support/invariant.ts";
import { type Tensor, withoutReductions } from "../../../domain.ts";
import { constantValue, foldAdd, sameScalar } from "../../../scalar/fold.ts";
import { printScalar } from "../../../scalar/print.ts";
import { constant, type Scalar } from "../../../scalar/scalar.ts";
import { type Call, reject, resolveAxis } from "../../call.ts";
import type { OpBase, OpRow, SpecOf } from "../../row.ts";
import { axisView, shifted, sourcesWithout } from "../families.ts";
import { indexMisfit } from "./slice.ts";

export interface SelectOp extends OpBase {
  readonly kind: "Select";
  readonly axis: number;
  readonly index: Scalar;
}

/** A negative number counts from the end of the axis. Throws `axis-out-of-range`, `index-out-of-range`. */
export function selectSpec(tensor: Tensor, axis: number, index: number | Scalar, place: Call): SpecOf<SelectOp> {
  const domain = withoutReductions(tensor.domain.logical);
  const resolved = resolveAxis(axis, domain.length, place);
  const { extent } = at(domain, resolved);
  if (typeof index === "object") {
    if (sameScalar(index, extent)) failIndex(printScalar(index), resolved, extent, place);
    return { kind: "Select", axis: resolved, index };
  }
  const limit = constantValue(extent) ?? Number.MAX_SAFE_INTEGER;
  if (!Number.isSafeInteger(index) || index >= limit || index < -limit) {
    failIndex(String(index), resolved, extent, place);
  }
  return { kind: "Select", axis: resolved, index: index < 0 ? foldAdd(extent, constant(index)) : constant(index) };
}

function failIndex(index: string, axis: number, extent: Scalar, place: Call): never {
  return reject(place, {
    code: "index-out-of-range",
    message: `index ${index} is outside axis ${axis}`,
    found: `index ${index} of extent ${printScalar(extent)}`,
    expected: `a whole number from -${printScalar(extent)} to ${printScalar(extent)} - 1`,
    help: "choose an index inside the axis",
  });
}

export const selectRow: OpRow<SelectOp> = {
  ...axisView<SelectOp>(({ axis }, rank, [index = 0]) => sourcesWithout([axis], rank, index)),
  standalone: true,
  shape: ({ axis }, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical).toSpliced(axis, 1) }),
  // `record` checks the index, because it may depend on loops.
  respec: (op) => op,
  sliced: (op, [cut]) => ({ ...op, axis: shifted(op.axis, cut) }),
  whole: ({ axis }, operands) => [{ operand: 0, axis: at(at(operands, 0), axis) }],
  misfit: ({ axis, index }, { input, valueOf }) => {
    const position = valueOf(index);
    const size = at(input, axis);
    return position < 0 || position >= size ? indexMisfit("Select", axis, String(position), size) : null;
  },
};
