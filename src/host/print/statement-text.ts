/**
 * Statements on one line, as diagnostics and the origins of commands name them: the dump text of style 2025-10 with its line breaks
 * taken out, and of a loop or branch the header alone.
 */
import { defaultSpelling } from "../../ir/print-style.ts";
import type { HostProgram, Statement } from "../nodes.ts";
import { type PrintContext, printStatement } from "./statement.ts";

/** A printer for the statements of one program; the ids in them must be valid. */
export function createStatementText(
  program: Pick<HostProgram, "tensors" | "streams">,
): (statement: Statement) => string {
  const context: PrintContext = { program, spelling: defaultSpelling, sliceMeshes: true, slices: new Set() };
  return (statement) => {
    const text = printStatement(withoutScopes(statement), context, 0);
    return text.includes("\n") ? text.replaceAll(/\s*\n\s*/gu, " ") : text;
  };
}

function withoutScopes(statement: Statement): Statement {
  switch (statement.kind) {
    case "ForLoop":
      return { ...statement, body: [] };
    case "IfThenElse":
      return { ...statement, then: [], else: [] };
    default:
      return statement;
  }
}
