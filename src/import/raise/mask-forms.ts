/** The index forms (../index-forms.ts) of masks as ops of a Fusion make them, over the axes of the probabilities. */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { BinaryOp, Op, TernaryOp, UnaryOp } from "../../ir/ops/op.ts";
import { constantValue } from "../../ir/scalar/fold.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import {
  addedForm,
  countForm,
  equalForm,
  type IndexForm,
  logicalForm,
  mapped,
  orderForm,
  uniform,
  uniformIn,
} from "../index-forms.ts";
import { type AxisNumbers, axesBefore, type Extents, sizesOfTensor } from "./axes.ts";

export interface MadeTensors {
  readonly tensors: readonly Tensor[];
  readonly makers: ReadonlyMap<TensorId, Op>;
}

interface Scope extends MadeTensors {
  /** Of the probabilities, by their number. */
  readonly sizes: readonly number[];
  readonly extents: Extents;
}

/** The form of a tensor whose axes are these of the probabilities; null where it is another one. */
export function formOf(scope: Scope, id: TensorId, axes: AxisNumbers): IndexForm | null {
  const op = scope.makers.get(id);
  if (op === undefined) return null;
  const rank = scope.sizes.length;
  const operand = (input: TensorId): IndexForm | null => {
    const shape = sizesOfTensor(at(scope.tensors, input));
    return formOf(
      scope,
      input,
      axes.map((own, axis) => (shape[axis] === 1 ? [] : own)),
    );
  };
  switch (op.kind) {
    case "Full":
      return uniform(Number(op.value), rank);
    case "Iota": {
      const [start, step] = [constantValue(op.start), constantValue(op.step)];
      const [own = []] = axes;
      return start === null || step === null || own.length > 1
        ? null
        : countForm({ offset: start, steps: scope.sizes.map((_, axis) => (own.includes(axis) ? step : 0)) });
    }
    case "Binary":
      return binaryForm(op, operand, scope.sizes);
    case "Ternary":
      return chosenForm(op, operand, rank);
    case "Unary":
      return notForm(op, operand(at(op.inputs, 0)), rank);
    default: {
      const input = at(op.inputs, 0);
      const before = axesBefore(op, axes, at(scope.tensors, input), scope.extents);
      const family = (tensor: TensorId): string => dtypes[at(scope.tensors, tensor).dtype].family;
      return before === null || family(input) !== family(id) ? null : formOf(scope, input, before);
    }
  }
}

type FormOf = (input: TensorId) => IndexForm | null;

function binaryForm({ op, inputs, scalar }: BinaryOp, operand: FormOf, sizes: readonly number[]): IndexForm | null {
  const rank = sizes.length;
  const forms = inputs.map(operand);
  const number = scalar === undefined ? null : uniform(Number(scalar.text), rank);
  const [a = null, b = null] =
    number === null ? forms : scalar?.position === 0 ? [number, ...forms] : [...forms, number];
  if (a === null || b === null) return null;
  switch (op) {
    case "add":
      return addedForm(a, b, rank, 1);
    case "sub":
      return addedForm(a, b, rank, -1);
    case "ge":
      return orderForm(a, b, 0, sizes);
    case "gt":
      return orderForm(a, b, 1, sizes);
    case "le":
      return orderForm(b, a, 0, sizes);
    case "lt":
      return orderForm(b, a, 1, sizes);
    case "eq":
      return equalForm(a, b, true, rank);
    case "ne":
      return equalForm(a, b, false, rank);
    case "logicalAnd":
      return logicalForm([a, b], 1, rank);
    case "logicalOr":
      return logicalForm([a, b], 0, rank);
    default:
      return null;
  }
}

/** Of conditions: c ? a : b. */
function chosenForm({ op, inputs, scalar }: TernaryOp, operand: FormOf, rank: number): IndexForm | null {
  if (op !== "where" || scalar !== undefined) return null;
  const [c, a, b] = inputs.map(operand);
  if (!c || !a || !b) return null;
  return uniformIn(b) === 0 ? logicalForm([c, a], 1, rank) : uniformIn(a) === 1 ? logicalForm([c, b], 0, rank) : null;
}

/** Of one condition: sum < 0 is -sum - 1 >= 0. */
function notForm({ op }: UnaryOp, form: IndexForm | null, rank: number): IndexForm | null {
  if (op !== "logicalNot" || form === null || form.sums.length > 1) return null;
  const known = uniformIn(form);
  if (known !== null) return uniform(known === 0 ? 1 : 0, rank);
  return mapped(form, ({ offset, steps }) => ({ offset: -offset - 1, steps: steps.map((step) => -step) }));
}
