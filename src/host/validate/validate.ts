/**
 * Whether a host program is well-formed: what nvFuser's constructors and evaluator refuse, found before anything runs. Three
 * kinds of rules, in this order: the ids (validate-ids.ts), each statement for itself (validate-statement.ts), and the order of
 * statements (validate-order.ts). Sizes and the rank are not known here: `record` checks what depends on them.
 */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import type { Fault } from "./fault.ts";
import type { HostProgram, Statement } from "../nodes.ts";
import { pathOf } from "../statement-paths.ts";
import { createStatementText } from "../print/statement.ts";
import { walk } from "../traverse.ts";
import { checkIds } from "./ids.ts";
import { checkOrder } from "./order.ts";
import { checkStatement } from "./statement.ts";

/** Everything that is wrong, in program order; empty for a valid program. */
export function validateHostProgram(program: HostProgram): readonly Diagnostic[] {
  const broken = checkIds(program);
  // Statements whose ids lead nowhere can be neither checked nor printed.
  if (broken.length > 0) return broken;
  const textOf = createStatementText(program);
  const findings: Diagnostic[] = [];
  const report = (statement: Statement, fault: Fault): void => {
    const path = pathOf(program.body, statement) ?? "body";
    const text = `${textOf(statement)} at ${path}`;
    findings.push({ ...fault, code: "host-program-invalid", place: { kind: "statement", text } });
  };
  for (const statement of walk(program.body)) {
    for (const fault of checkStatement(statement, program)) report(statement, fault);
  }
  checkOrder(program, report);
  return findings;
}
