/**
 * Whether a host program is well-formed: faults that nvFuser's constructors and evaluator refuse, found before anything
 * runs. The rules come in three groups: ids (ids.ts); each statement by itself (statement.ts); the order of statements,
 * which is when tensors and streams are bound (bindings.ts, streams.ts) and how coalesced groups stand (groups.ts).
 * `record` checks what depends on sizes and the rank.
 */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import type { HostProgram } from "../nodes.ts";
import { createStatementText } from "../print/statement.ts";
import { pathOf, walk } from "../traverse.ts";
import { checkBindings } from "./bindings.ts";
import type { Report } from "./fault.ts";
import { checkAwaited, checkGroups } from "./groups.ts";
import { checkIds } from "./ids.ts";
import { checkStatement } from "./statement.ts";
import { checkStreams } from "./streams.ts";

/** All findings in program order; empty for a valid program. */
export function validateHostProgram(program: HostProgram): readonly Diagnostic[] {
  const statements = walk(program.body);
  const broken = checkIds(program, statements);
  // Statements whose ids lead nowhere can be neither checked nor printed.
  if (broken.length > 0) return broken;
  const textOf = createStatementText(program);
  const findings: Diagnostic[] = [];
  const report: Report = (statement, fault) => {
    const path = pathOf(program.body, statement) ?? "body";
    const text = `${textOf(statement)} at ${path}`;
    findings.push({ ...fault, code: "host-program-invalid", place: { kind: "statement", text } });
  };
  for (const statement of statements) {
    for (const fault of checkStatement(statement, program)) report(statement, fault);
  }
  checkBindings(program, report);
  checkGroups(program.body, report);
  checkAwaited(statements, report);
  checkStreams(statements, program.streams, report);
  return findings;
}
