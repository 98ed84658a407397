/** Ops in nvFuser's dump text: one template per kind. Lines after the first are placed relative to the statement's indent. */
import { withoutReductions } from "../../ir/domain.ts";
import { operandOrder } from "../../ir/ops/axis-map.ts";
import { binaryFunctions } from "../../ir/ops/functions/binary.ts";
import { reductionFunctions } from "../../ir/ops/functions/reduction.ts";
import type { LinearOp, MatmulOp, Op, ReductionOpType } from "../../ir/ops/op.ts";
import { printIterDomain } from "../../ir/print-tensor.ts";
import { printScalarName } from "../../ir/scalar/print.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { dispatch, type RuleTable } from "../../support/dispatch.ts";
import { at } from "../../support/invariant.ts";
import type { PrintContext } from "../syntax/context.ts";
import { printTensorOf } from "../syntax/fields.ts";

/** The text of an op, from its output on. */
export function printOp(op: Op, context: PrintContext, indent: string): string {
  return dispatch(templates, op, context, indent);
}

type Template<S extends Op> = (op: S, context: PrintContext, indent: string) => string;

/** The neutral element of a reduction, in nvFuser's form. */
function initialValue(op: ReductionOpType, dtype: DType): string {
  const value = reductionFunctions[op].identity[dtype];
  if (dtype === "bool") return String(value !== 0);
  if (dtypes[dtype].family !== "float") return String(value);
  // The sum's identity is -0, which prints as 0.
  return Number.isFinite(Number(value))
    ? `float(${Math.abs(Number(value))})`
    : String(value).replace("Infinity", "inf");
}

const templates: RuleTable<Op, string, [PrintContext, string]> = {
  Set: unaryTemplate((input) => `Set( ${input}, cache_op=Streaming )`),
  Permute: unaryTemplate((input) => `Set.Permute( ${input}, cache_op=Streaming )`),
  Unary: (op, context, indent) => `${head(op, context, indent)}\n${indent}   = ${op.op}(${operand(op, 0, context)});`,
  Cast: unaryTemplate(
    (input, op, context) => `__cast( ${input}, ${dtypes[at(context.program.tensors, op.output).dtype].printed} )`,
  ),
  Broadcast: (op, context, indent) =>
    `${head(op, context, indent)}\n${indent}   = broadcast( ${operand(op, 0, context)}, flags = {${op.flags.join(", ")}} )`,
  Squeeze: (op, context, indent) => {
    const axes = withoutReductions(at(context.program.tensors, at(op.inputs, 0)).domain.logical);
    const flags = axes.map((_, i) => op.axes.includes(i)).join(", ");
    return `${head(op, context, indent)}\n${indent}   = squeeze( ${operand(op, 0, context)}, flags = {${flags}} )`;
  },
  Reshape: unaryTemplate((input) => `view( ${input} )`),
  Slice: (op, context, indent) => {
    const ranges = op.ranges.map(({ start, stop }) => `{${start}, ${stop}, 1}`).join(" ");
    return `${head(op, context, indent)}\n${indent}   = slice( ${operand(op, 0, context)}, { ${ranges} } )`;
  },
  Select: (op, context, indent) => {
    const axes = withoutReductions(at(context.program.tensors, at(op.inputs, 0)).domain.logical);
    const axis = printIterDomain(at(axes, op.axis), context.spelling);
    const index = printScalarName(op.index, context.spelling);
    return `${head(op, context, indent)}\n${indent}   = select( ${operand(op, 0, context)}, axis = ${axis}, index = ${index} )`;
  },
  Binary: (op, context, indent) =>
    `${head(op, context, indent)}\n${indent}   = ${operand(op, 0, context)}\n${indent}   ${binaryFunctions[op.op].symbol} ${operand(op, 1, context)};`,
  Reduction: (op, context, indent) => {
    const initial = initialValue(op.op, at(context.program.tensors, op.output).dtype);
    return `${head(op, context, indent)}\n${indent}   = reduction( ${operand(op, 0, context)}, op = ${reductionFunctions[op.op].printed}, initial value = ${initial}, allreduce = false )`;
  },
  Matmul: (op, context, indent) =>
    `${head(op, context, indent)}\n${indent}   = matmul(${operand(op, 0, context)},\n${indent}            ${operand(op, 1, context)}${accumulationText(op)})`,
  // The indent in the middle of a line and the bias line's ten blanks are nvFuser's.
  Linear: (op, context, indent) => {
    const inner = `${indent}  `;
    const bias = op.inputs.length > 2 ? `,\n          ${operand(op, 2, context)}${inner}` : "";
    return `${head(op, context, indent)}\n${indent}   = linear(${operand(op, 0, context)},\n${indent}            ${operand(op, 1, context)}${inner}${bias}${accumulationText(op)})`;
  },
};

function unaryTemplate<S extends Op>(value: (input: string, op: S, context: PrintContext) => string): Template<S> {
  return (op, context, indent) =>
    `${head(op, context, indent)}\n${indent}   = ${value(operand(op, 0, context), op, context)}`;
}

function head(op: Op, context: PrintContext, indent: string): string {
  return `${indent}${printTensorOf(op.output, context)}`;
}

function operand(op: Op, position: number, context: PrintContext): string {
  const text = printTensorOf(at(op.inputs, position), context);
  const order = operandOrder(op, position);
  return order === null ? text : `permute( ${text}, order = {${order.join(", ")}} )`;
}

/** nvFuser's contractions have neither. */
function accumulationText({ accumulate }: MatmulOp | LinearOp): string {
  return accumulate === undefined ? "" : `, accumulate = ${accumulate}`;
}
