/**
 * Attention, which has several outputs, in nvFuser's form. nvFuser also prints the state of its random numbers; Braid's
 * dropout is ops of its own.
 *
 *   T3_g_float[..],
 *   T4_g_float[..]
 *      = sdpa(T0_g_float[..],
 *             T1_g_float[..],
 *             T2_g_float[..],
 *             is_causal = true, scale = double(0.125))
 */
import type { Tensor } from "../../../ir/domain.ts";
import type { Op, SdpaBackwardOp, SdpaOp } from "../../../ir/ops/op.ts";
import type { PrintContext } from "../context.ts";
import { expect, expectAcrossLines, expectField, failExpected, skipSpace, take } from "../text/scanner.ts";
import {
  type OpContext,
  readTensorOperand,
  type OpSyntax,
  printNumber,
  printOperand,
  readNumber,
} from "./op-syntax.ts";

export const sdpaSyntax: OpSyntax<SdpaOp> = {
  print: (op, context, indent) => `sdpa(${printArguments(op, context, `${indent}          `)})`,
  readers: { sdpa: (context, output) => ({ kind: "Sdpa", ...attention(context, output, 3) }) },
};

export const sdpaBackwardSyntax: OpSyntax<SdpaBackwardOp> = {
  print: (op, context, indent) => `sdpa_bwd(${printArguments(op, context, `${indent}              `)})`,
  readers: { sdpa_bwd: (context, output) => ({ kind: "SdpaBackward", ...attention(context, output, 6) }) },
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
  return `${operands.join("")}is_causal = ${mask}${scale}`;
}

function attention(context: OpContext, output: Tensor, count: number): Omit<Extract<Op, SdpaOp>, "kind"> {
  const { scanner, further = [] } = context;
  expect(scanner, "(");
  const inputs = Array.from({ length: count }, () => {
    const { id } = readTensorOperand(context);
    expectAcrossLines(scanner, ",");
    return id;
  });
  skipSpace(scanner);
  expectField(scanner, "is_causal");
  const mask = masks.find(({ text }) => take(scanner, text)) ?? failExpected(scanner, "true, false or bottomRight");
  skipSpace(scanner);
  const scale = take(scanner, ",") ? scaleField(context) : null;
  expectAcrossLines(scanner, ")");
  return { causal: mask.causal, scale, inputs, output: output.id, further: further.map(({ id }) => id) };
}

function scaleField({ scanner }: OpContext): string {
  skipSpace(scanner);
  expectField(scanner, "scale");
  return readNumber(scanner) ?? failExpected(scanner, "a number, such as double(0.125)");
}
