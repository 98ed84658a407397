/** matmul and linear. Unlike nvFuser's, Braid's may read an operand permuted in place and may add to the output. */
import { isScaled } from "../../../ir/ops/kinds/contractions.ts";
import type { Tensor, TensorId } from "../../../ir/domain.ts";
import { accumulatorOf, type DType, isPacked } from "../../../numerics/dtype.ts";
import type { GroupedMatmulOp, LinearOp, MatmulOp, Op, SdpaBackwardOp, SdpaOp } from "../../../ir/ops/op.ts";
import {
  expect,
  expectAcrossLines,
  expectField,
  expectNumber,
  failExpected,
  skipSpace,
  take,
} from "../text/scanner.ts";
import {
  readTensorOperand,
  type OpContext,
  type OpSyntax,
  printOperand,
  printNumber,
  readNumber,
} from "./op-syntax.ts";
import type { PrintContext } from "../context.ts";

export const matmulSyntax: OpSyntax<MatmulOp> = {
  print: (op, context, indent) => {
    const [a, b] = [printOperand(op, 0, context), printOperand(op, 1, context)];
    return `matmul(${a},\n${indent}            ${b}${accumulationText(op)})`;
  },
  readers: { matmul },
};

/** The output's dtype says in which one the sums are. */
function matmul(context: OpContext, output: Tensor): Op {
  expect(context.scanner, "(");
  const a = readOperand(context);
  expectAcrossLines(context.scanner, ",");
  const operands = [a, readOperand(context)];
  skipSpace(context.scanner);
  const accumulate = take(context.scanner, ",") ? flagField(context, "accumulate") : null;
  expectAcrossLines(context.scanner, ")");
  const to = isPacked(a.dtype) && output.dtype === accumulatorOf(a.dtype) ? { to: output.dtype } : {};
  return { kind: "Matmul", ...to, ...contraction(operands, accumulate), output: output.id };
}

/** The blanks before commas and before the bias, and the indent in the middle of a line, are nvFuser's. */
export const linearSyntax: OpSyntax<LinearOp> = {
  print: (op, context, indent) => {
    if (isScaled(op)) {
      const operands = op.inputs.map((_, i) => printOperand(op, i, context)).join(", ");
      return `scaled_linear( ${operands}${op.fastAccumulation === true ? ", fast_accumulation = true" : ""} )`;
    }
    const inner = `${indent}  `;
    const [x, weight] = [printOperand(op, 0, context), printOperand(op, 1, context)];
    const bias = op.inputs.length > 2 ? `,\n          ${printOperand(op, 2, context)}${inner}` : "";
    return `linear(${x},\n${indent}            ${weight}${inner}${bias}${accumulationText(op)})`;
  },
  readers: {
    linear,
    scaled_linear: (context, output) => {
      const operands = readOperands(context, 4);
      const isFast = take(context.scanner, ",") && flagField(context, "fast_accumulation");
      skipSpace(context.scanner);
      expect(context.scanner, ")");
      return {
        kind: "Linear",
        to: output.dtype,
        ...(isFast ? { fastAccumulation: true } : {}),
        ...contraction(operands, null),
        output: output.id,
      };
    },
  },
};

function linear(context: OpContext, output: Tensor): Op {
  const { scanner } = context;
  expect(scanner, "(");
  const operands = [readOperand(context)];
  expectAcrossLines(scanner, ",");
  operands.push(readOperand(context));
  skipSpace(scanner);
  let accumulate: boolean | null = null;
  while (accumulate === null && take(scanner, ",")) {
    skipSpace(scanner);
    if (operands.length > 2 || scanner.text.startsWith("accumulate", scanner.position)) {
      accumulate = flagField(context, "accumulate");
    } else operands.push(readPlain(context));
    skipSpace(scanner);
  }
  expectAcrossLines(scanner, ")");
  return { kind: "Linear", ...contraction(operands, accumulate), output: output.id };
}

/** `grouped_matmul( T0, T1, T2 )`: the rows, the matrices or rows, and the ends of the groups. */
export const groupedMatmulSyntax: OpSyntax<GroupedMatmulOp> = {
  print: (op, context) => `grouped_matmul( ${[0, 1, 2].map((i) => printOperand(op, i, context)).join(", ")} )`,
  readers: {
    grouped_matmul: (context, output) => {
      const operands = readOperands(context, 3);
      skipSpace(context.scanner);
      expect(context.scanner, ")");
      return { kind: "GroupedMatmul", ...contraction(operands, null), output: output.id };
    },
  },
};

function accumulationText({ accumulate }: MatmulOp | LinearOp): string {
  return accumulate === undefined ? "" : `, accumulate = ${accumulate}`;
}

interface ReadOperand {
  readonly id: TensorId;
  readonly dtype: DType;
  readonly order: readonly number[] | null;
}

/** So many operands, from their bracket on. */
function readOperands(context: OpContext, count: number): readonly ReadOperand[] {
  expect(context.scanner, "(");
  const operands = [readOperand(context)];
  while (operands.length < count) {
    expect(context.scanner, ",");
    operands.push(readOperand(context));
  }
  return operands;
}

/** A tensor, or `permute( T0, order = {1, 0} )`. */
function readOperand(context: OpContext): ReadOperand {
  const { scanner } = context;
  skipSpace(scanner);
  if (!take(scanner, "permute(")) return readPlain(context);
  const { id, dtype } = readTensorOperand(context);
  expect(scanner, ",");
  expectField(scanner, "order");
  expect(scanner, "{");
  const order: number[] = [];
  do {
    skipSpace(scanner);
    order.push(expectNumber(scanner, "the number of an axis"));
    skipSpace(scanner);
  } while (take(scanner, ","));
  expect(scanner, "}");
  expect(scanner, ")");
  return { id, dtype, order };
}

function readPlain(context: OpContext): ReadOperand {
  const { id, dtype } = readTensorOperand(context);
  return { id, dtype, order: null };
}

function flagField({ scanner }: OpContext, name: string): boolean {
  expectField(scanner, name);
  if (take(scanner, "true")) return true;
  return take(scanner, "false") ? false : failExpected(scanner, "true or false");
}

function contraction(
  operands: readonly ReadOperand[],
  accumulate: boolean | null,
): Pick<MatmulOp, "inputs" | "orders" | "accumulate"> {
  const orders = operands.map(({ order }) => order);
  return {
    inputs: operands.map(({ id }) => id),
    ...(orders.every((order) => order === null) ? {} : { orders }),
    ...(accumulate === null ? {} : { accumulate }),
  };
}

export const sdpaSyntax: OpSyntax<SdpaOp> = {
  print: (op, context, indent) => `sdpa(${printArguments(op, context, `${indent}          `)})`,
  readers: { sdpa: (context, output) => ({ kind: "Sdpa", ...attention(context, output) }) },
};

export const sdpaBackwardSyntax: OpSyntax<SdpaBackwardOp> = {
  print: (op, context, indent) => `sdpa_bwd(${printArguments(op, context, `${indent}              `)})`,
  readers: { sdpa_bwd: (context, output) => ({ kind: "SdpaBackward", ...attention(context, output) }) },
};

const masks = [
  { causal: null, text: "false" },
  { causal: "topLeft", text: "true" },
  { causal: "bottomRight", text: "bottomRight" },
] as const;

function printArguments(op: SdpaOp | SdpaBackwardOp, context: PrintContext, indent: string): string {
  const operands = op.inputs.map((_, position) => `${printOperand(op, position, context)},\n${indent}`);
  const mask = masks.find(({ causal }) => causal === op.causal)?.text ?? "";
  const scale = op.scale === null ? "" : `, scale = ${printNumber({ position: 0, text: op.scale }, "double")}`;
  const window = op.window === null ? "" : `, window = ${op.window}`;
  return `${operands.join("")}is_causal = ${mask}${window}${scale}`;
}

/**
 * Attention, which has several outputs, in nvFuser's form. nvFuser also prints the state of its random numbers, and has no
 * window; Braid's dropout is ops of its own.
 *
 *   T3_g_float[..],
 *   T4_g_float[..]
 *      = sdpa(T0_g_float[..],
 *             T1_g_float[..],
 *             T2_g_float[..],
 *             is_causal = true, window = 4096, scale = double(0.125))
 */
function attention(context: OpContext, output: Tensor): Omit<Extract<Op, SdpaOp>, "kind"> {
  const { scanner, further = [] } = context;
  expect(scanner, "(");
  const inputs: TensorId[] = [];
  do {
    inputs.push(readTensorOperand(context).id);
    expectAcrossLines(scanner, ",");
    skipSpace(scanner);
  } while (!scanner.text.startsWith("is_causal", scanner.position));
  expectField(scanner, "is_causal");
  const mask = masks.find(({ text }) => take(scanner, text)) ?? failExpected(scanner, "true, false or bottomRight");
  skipSpace(scanner);
  let [window, scale]: [number | null, string | null] = [null, null];
  while (scale === null && take(scanner, ",")) {
    skipSpace(scanner);
    const hasWindow = window === null && mask.causal !== null && scanner.text.startsWith("window", scanner.position);
    if (hasWindow) window = windowField(context);
    else scale = scaleField(context);
    skipSpace(scanner);
  }
  expectAcrossLines(scanner, ")");
  return { causal: mask.causal, window, scale, inputs, output: output.id, further: further.map(({ id }) => id) };
}

function windowField({ scanner }: OpContext): number {
  expectField(scanner, "window");
  const window = expectNumber(scanner, "a number of keys");
  return window > 0 ? window : failExpected(scanner, "at least one key");
}

function scaleField({ scanner }: OpContext): string {
  skipSpace(scanner);
  expectField(scanner, "scale");
  return readNumber(scanner) ?? failExpected(scanner, "a number, such as double(0.125)");
}
