/**
 * Statements in nvFuser's dump text: one template per kind. A statement prints at an indent level; templates that break lines
 * place the rest relative to it.
 */
import { type TensorId, withoutReductions } from "../../ir/domain.ts";
import { binaryFunctions } from "../../ir/ops/functions/binary.ts";
import { reductionFunctions } from "../../ir/ops/functions/reduction.ts";
import { operandOrder } from "../../ir/ops/axis-map.ts";
import type { LinearOp, MatmulOp, Op, ReductionOpType } from "../../ir/ops/op.ts";
import type { IrSpelling } from "../../ir/print-style.ts";
import { printIterDomain, printTensor } from "../../ir/print-tensor.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { isConstant, sameScalar } from "../../ir/scalar/fold.ts";
import { printScalar, printScalarName } from "../../ir/scalar/print.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { backendNames, reduceOpNames } from "../collectives.ts";
import { dispatch, type RuleTable } from "../../support/dispatch.ts";
import { at } from "../../support/invariant.ts";
import type { Communication, ForLoop, HostProgram, P2PCommunication, Statement, StreamId } from "../nodes.ts";

export interface PrintContext {
  readonly program: Pick<HostProgram, "tensors" | "streams">;
  readonly spelling: IrSpelling;
  /** Whether slices print their mesh: not before 2025-05. */
  readonly sliceMeshes: boolean;
  /** Tensors bound by HirAliasSelect. */
  readonly slices: ReadonlySet<TensorId>;
}

type Template<S extends Statement> = (statement: S, context: PrintContext, indent: string) => string;

/** The text of a statement with its scopes; lines are separated by newlines, with none at the end. */
export function printStatement(statement: Statement, context: PrintContext, level: number): string {
  return dispatch(templates, statement, context, "  ".repeat(level));
}

export function printTensorOf(id: TensorId, { program, spelling, sliceMeshes, slices }: PrintContext): string {
  return printTensor(at(program.tensors, id), spelling, sliceMeshes || !slices.has(id));
}

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

const templates: RuleTable<Statement, string, [PrintContext, string]> = {
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
  Allocate: ({ tensor, memory, size, zeroInit }, context, indent) => {
    const text = printTensorOf(tensor, context);
    const bytes = printScalar(size, context.spelling);
    return `${indent}${text} = ALLOCATE(buffer=${text}, mem_type=${memory}, size=${bytes}, zero_init=${zeroInit}, resets_to_zero=false)`;
  },
  Deallocate: ({ tensor }, context, indent) =>
    `${indent}Deallocate {\n${indent}  ${printTensorOf(tensor, context)}\n${indent}}`,
  GetCurrentStream: ({ stream }, context, indent) => `${indent}GetCurrentStream into ${streamText(stream, context)}`,
  SetCurrentStream: ({ stream }, context, indent) => `${indent}SetCurrentStream to ${streamText(stream, context)}`,
  Synchronize: ({ stream }, context, indent) => `${indent}Synchronize ${streamText(stream, context)}`,
  ForLoop: (loop, context, indent) => {
    const { index, body } = loop;
    const name = printScalar(index, context.spelling);
    const range = loopRange(loop, context.spelling);
    return [`${indent}FOR ${name} ${range}:`, ...scope(body, context, indent)].join("\n");
  },
  IfThenElse: (statement, context, indent) => {
    const lines = [
      `${indent}IF Manual ${printScalar(statement.predicate, context.spelling)}:`,
      ...scope(statement.then, context, indent),
    ];
    if (statement.else.length > 0) lines.push(`${indent}ELSE:`, ...scope(statement.else, context, indent));
    return lines.join("\n");
  },
  HirAliasSelect: ({ input, output, axis, index }, context, indent) => {
    const source = at(context.program.tensors, input);
    const id = printIterDomain(at(source.domain.logical, axis), context.spelling);
    const select = `HirAliasSelect( ${printTensorOf(input, context)}, axis = ${id}, index = ${printScalarName(index, context.spelling)} )`;
    return `${indent}${printTensorOf(output, context)}\n${indent}   = ${select}`;
  },
  Communication: (statement, context, indent) => {
    const { id, type, team, root, input, output, backend } = statement;
    const rootText = root === null ? "" : `root=${printRoot(root, team, context.spelling)}, `;
    const tensors = `input=${printTensorOf(input, context)}, output=${printTensorOf(output, context)}`;
    return `${indent}Communication ${id} (type=${type}, team=(${team.join(" ")}), ${rootText}${reduceText(statement)}${tensors}, backend=${backendNames[backend]})`;
  },
  P2PCommunication: (statement, context, indent) => `${indent}${pointToPointText(statement, context)}`,
  StartCoalescing: (_, _context, indent) => `${indent}StartCoalescing`,
  EndCoalescing: ({ id }, _, indent) => `${indent}EndCoalescing ${id}`,
  // nvFuser leaves the parenthesis open.
  ShareMemHandles: ({ communications }, context, indent) =>
    `${indent}ShareMemHandles(${communications.map((each) => `${pointToPointText(each, context)}, `).join("")}`.trimEnd(),
  Wait: ({ target }, _, indent) => `${indent}Wait Communication ${target}`,
  PostOnStream: ({ unit, inputs, outputs }, context, indent) =>
    `${indent}PostOnStream (HostUnit${unit}, Inputs:{${listText(inputs, context)}}, Outputs:{${listText(outputs, context)}})`,
};

/** An axis stands for all of its indices, one after the other; other ranges print their bounds. nvFuser's loops have step 1. */
function loopRange({ iterDomain, start, stop, step }: ForLoop, spelling: IrSpelling): string {
  const everyIndex = isConstant(start, 0) && isConstant(step, 1);
  if (iterDomain !== null && everyIndex && sameScalar(stop, iterDomain.extent)) {
    return `in ${printIterDomain(iterDomain, spelling)}`;
  }
  const bounds = `from ${printScalar(start, spelling)} to ${printScalar(stop, spelling)}`;
  return isConstant(step, 1) ? bounds : `${bounds} step ${printScalar(step, spelling)}`;
}

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

function scope(body: readonly Statement[], context: PrintContext, indent: string): string[] {
  return body.map((statement) => dispatch(templates, statement, context, `${indent}  `));
}

function streamText(id: StreamId, { program, spelling }: PrintContext): string {
  const index: Scalar | null = at(program.streams, id).index;
  if (index === null) return `Stream ${id}`;
  // Without parentheses it would be the number of a stream.
  return index.kind === "constant" ? `Stream ( ${index.value} )` : `Stream ${printScalar(index, spelling)}`;
}

/** As in nvFuser's dumps of 2025: a constant root is a device id. Other roots count the team, as in the IR. */
function printRoot(root: Scalar, team: readonly number[], spelling: IrSpelling): string {
  return root.kind === "constant" ? String(team[root.value] ?? root.value) : printScalarName(root, spelling);
}

/** nvFuser prints no reduction op; all but the usual sum would be lost, so they print. */
function reduceText({ reduceOp }: Communication): string {
  return reduceOp === null || reduceOp === "sum" ? "" : `op=${reduceOpNames[reduceOp]}, `;
}

function pointToPointText({ id, type, buffer, peer, backend }: P2PCommunication, context: PrintContext): string {
  const peerText = printScalarName(peer, context.spelling);
  return `P2PCommunication ${id} (type=${type}, buffer=${printTensorOf(buffer, context)}, peer=${peerText}, backend=${backendNames[backend]})`;
}

function listText(ids: readonly TensorId[], context: PrintContext): string {
  return ids.map((id) => `${printTensorOf(id, context)}, `).join("");
}
