/** The rules of reverse mode: one row per kind of op. Null if no kind of operand has a cotangent. */
import {
  broadcast,
  cast,
  gather,
  pad,
  permute,
  reshape,
  sdpaBackward,
  type SdpaGradients,
  squeeze,
  unsqueeze,
  where,
} from "../api/ops.ts";
import { inDType, wide } from "../api/ops/compositions/compose.ts";
import type { TensorView } from "../api/tensor-view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import type { BinaryOp, Op, OpKind, SdpaOp } from "../ops/op.ts";
import { type NumberOperand, numberValue } from "../ops/number-operand.ts";
import { foldAdd } from "../scalar/fold.ts";
import { constant } from "../scalar/scalar.ts";
import { linearVjp, matmulVjp } from "./contractions.ts";
import { gatherCotangent, indexCotangent, partOf, sliceCotangent } from "./moves.ts";
import { binaryVjps, type Operand, reductionVjps, unaryVjps } from "./functions.ts";
import { sumTo } from "./shapes.ts";
import type { Cotangent, Step, Vjp } from "./vjp.ts";

export const vjps: { readonly [K in OpKind]: Vjp<Extract<Op, { readonly kind: K }>> | null } = {
  // The cotangent gets the sharding of the set's input: a gather becomes a reduce-scatter.
  Set: (_, { g }) => [() => g],
  // 16-bit floats are computed in float, and rounded once.
  Unary: ({ op }, { g, operands, output }) => {
    const rule = unaryVjps[op];
    const x = at(operands, 0);
    const applied = {
      get x() {
        return wide(x);
      },
      get y() {
        return wide(output);
      },
    };
    return [rule === null ? null : () => inDType(rule(wide(g), applied), x.dtype)];
  },
  Cast: (_, { g, operands }) => {
    const { dtype } = at(operands, 0);
    return [dtypes[dtype].family === "float" ? () => cast(g, dtype) : null];
  },
  Binary: binaryVjp,
  Ternary: ({ scalar }, { g, operands }) => {
    const condition = at(operands, 0);
    const taken = [() => where(condition, g, 0), () => where(condition, 0, g)].filter(
      (_, i) => scalar?.position !== i + 1,
    );
    return [
      null,
      ...taken.map(
        (each, i): Cotangent =>
          () =>
            sumTo(each(), at(operands, i + 1)),
      ),
    ];
  },
  Reduction: ({ op, axes }, { g, operands, output }) => {
    const rule = reductionVjps[op];
    return [rule === null ? null : () => rule(g, at(operands, 0), output, axes)];
  },
  Broadcast: ({ flags }, { g }) => [
    () =>
      squeeze(
        g,
        [...flags.keys()].filter((axis) => flags[axis]),
      ),
  ],
  Expand: (_, { g, operands }) => [() => sumTo(g, at(operands, 0))],
  Squeeze: ({ axes }, { g, operands }) => {
    const flags = Array.from({ length: at(operands, 0).rank }, (_, axis) => axes.includes(axis));
    return [() => broadcast(g, flags)];
  },
  Permute: ({ order }, { g }) => [
    () =>
      permute(
        g,
        order.map((_, axis) => order.indexOf(axis)),
      ),
  ],
  Reshape: (_, { g, operands }) => [() => reshape(g, at(operands, 0).extents)],
  Slice: ({ ranges }, { g, operands }) => [() => sliceCotangent(g, at(operands, 0), ranges)],
  Select: ({ axis, index }, { g, operands }) => [
    () => {
      const x = at(operands, 0);
      const range = { start: index, stop: foldAdd(index, constant(1)) };
      const whole = { start: constant(0), stop: at(x.extents, 0) };
      return sliceCotangent(
        unsqueeze(g, axis),
        x,
        x.extents.map((stop, i) => (i === axis ? range : { ...whole, stop })),
      );
    },
  ],
  Pad: ({ widths }, { g }) => [
    () =>
      pad(
        g,
        widths.map(({ before, after }) => [-before, -after]),
      ),
  ],
  Cat: ({ axis }, { g, operands }) => operands.map((_, operand) => () => partOf(g, operands, axis, operand)),
  IndexSelect: ({ axis }, { g, operands }) => [() => indexCotangent(g, at(operands, 0), axis, at(operands, 1)), null],
  Gather: ({ axis }, { g, operands }) => [() => gatherCotangent(g, at(operands, 0), axis, at(operands, 1)), null],
  ScatterAdd: ({ axis }, { g, operands }) => [() => g, null, () => gather(g, axis, at(operands, 1))],
  Matmul: matmulVjp,
  Linear: linearVjp,
  Full: null,
  Iota: null,
  RandomBits: null,
  Sdpa: sdpaVjp,
  SdpaBackward: null,
};

function sdpaVjp({ causal, scale }: SdpaOp, { g, operands, outputs }: Step): readonly Cotangent[] {
  const [q, k, v] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const results = { output: at(outputs, 0), logsumexp: at(outputs, 1) };
  const options = { causal, ...(scale === null ? {} : { scale: Number(scale) }) };
  let made: SdpaGradients | null = null;
  const gradients = (): SdpaGradients => (made ??= sdpaBackward(g, q, k, v, results, options));
  return [() => gradients().dq, () => gradients().dk, () => gradients().dv];
}

function binaryVjp({ op, scalar }: BinaryOp, { g, operands, output }: Step): readonly Cotangent[] {
  const [a, b] = withNumber(operands, scalar);
  return operands.map((operand, i): Cotangent => {
    const rule = at(binaryVjps[op], scalar === undefined ? i : 1 - scalar.position);
    return rule === null ? null : () => sumTo(rule(g, a, b, output), operand);
  });
}

/** Both operands, of which one may be a number. */
function withNumber(operands: readonly TensorView[], number?: NumberOperand): readonly [Operand, Operand] {
  const first = at(operands, 0);
  if (number === undefined) return [first, at(operands, 1)];
  const value = Number(numberValue(number, "f64"));
  return number.position === 0 ? [value, first] : [first, value];
}
