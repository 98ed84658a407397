/** Statements in dump text, with their bodies or as single lines. */
import { defaultDumpStyle } from "../../ir/print-style.ts";
import { printScalar } from "../../ir/scalar/print.ts";
import type { HostProgram, Statement } from "../nodes.ts";
import { isOp } from "../traverse.ts";
import { plainContext, type PrintContext } from "../syntax/context.ts";
import { elseWord, indentation, rowOf } from "../syntax/statements/statements.ts";
import { printOp } from "../syntax/ops/ops.ts";

/** The lines of statements, including their bodies. */
export function printScope(body: readonly Statement[], context: PrintContext, indent: string): readonly string[] {
  const lines: string[] = [];
  addScope(lines, body, context, indent);
  return lines;
}

function addScope(lines: string[], body: readonly Statement[], context: PrintContext, indent: string): void {
  for (const statement of body) {
    lines.push(printHeader(statement, context, indent));
    if (statement.kind === "ForLoop") addScope(lines, statement.body, context, indent + indentation);
    if (statement.kind !== "IfThenElse") continue;
    addScope(lines, statement.then, context, indent + indentation);
    if (statement.else.length === 0) continue;
    lines.push(`${indent}${elseWord}:`);
    addScope(lines, statement.else, context, indent + indentation);
  }
}

/** The text of a statement without its bodies; computations and slices take several lines. */
function printHeader(statement: Statement, context: PrintContext, indent: string): string {
  return isOp(statement)
    ? printOp(statement, context, indent)
    : rowOf(statement.kind).print(statement, context, indent);
}

/**
 * A printer for the statements of one program, for diagnostics and the origins of commands: on one line, in style
 * 2025-10, index values in full, and for a loop or branch only the first line. The ids in the statements must be valid.
 */
export function createStatementText(
  program: Pick<HostProgram, "tensors" | "streams">,
): (statement: Statement) => string {
  const context: PrintContext = {
    ...plainContext(program, defaultDumpStyle),
    indexText: (value) => printScalar(value),
  };
  return (statement) => {
    const text = printHeader(statement, context, "");
    return text.includes("\n") ? text.replaceAll(/\s*\n\s*/gu, " ") : text;
  };
}
