/**
 * Whether a host program is well-formed: faults that nvFuser's constructors and evaluator refuse, found before anything
 * runs. The rules come in three groups: ids (ids.ts); each statement by itself (statement.ts); the order of statements,
 * which is when tensors and streams are bound and how coalesced groups stand (bindings.ts).
 * `record` checks what depends on sizes and the rank.
 */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { at } from "../../support/invariant.ts";
import type { HostProgram, HostStream, Statement, StreamId } from "../nodes.ts";
import { createStatementText } from "../print/print.ts";
import { pathOf, walk } from "../traverse.ts";
import { checkAwaited, checkBindings, checkGroups } from "./bindings.ts";
import { checkIds, type Fault, type Report } from "./ids.ts";
import { checkStatement } from "./statement.ts";

/** All findings, in program order; empty for a valid program. */
export function validateHostProgram(program: HostProgram): readonly Diagnostic[] {
  const statements = walk(program.body);
  const broken = checkIds(program, statements);
  // Statements with invalid ids can be neither checked nor printed.
  if (broken.length > 0) return broken;
  const findings: Diagnostic[] = [];
  const report = reportInto(findings, program);
  for (const statement of statements) {
    for (const fault of checkStatement(statement, program)) report(statement, fault);
  }
  checkBindings(program, report);
  checkGroups(program.body, report);
  checkAwaited(statements, report);
  checkStreams(statements, program.streams, report);
  return findings;
}

/** The findings of each statement by itself, of those that are not in `before`, an earlier form of the program. */
export function validateStatements(program: HostProgram, before: HostProgram | null): readonly Diagnostic[] {
  const checked = new Set(before === null ? [] : walk(before.body));
  const findings: Diagnostic[] = [];
  const report = reportInto(findings, program);
  for (const statement of walk(program.body)) {
    if (checked.has(statement)) continue;
    for (const fault of checkStatement(statement, program)) report(statement, fault);
  }
  return findings;
}

function reportInto(findings: Diagnostic[], program: HostProgram): Report {
  const textOf = createStatementText(program);
  return (statement, fault) => {
    const path = pathOf(program.body, statement) ?? "body";
    const text = `${textOf(statement)} at ${path}`;
    findings.push({ ...fault, code: "host-program-invalid", place: { kind: "statement", text } });
  };
}

/**
 * Checks that streams exist before they are used. A stream without an index exists from the GetCurrentStream that binds
 * it or, if there is none, from the first SetCurrentStream that makes it current. Before that, there is nothing to wait
 * for, or it becomes another stream later:
 *
 *   Synchronize Stream 0                 rejected: the next line binds Stream 0
 *   GetCurrentStream into Stream 0
 *
 * As for tensors, every path that may run counts: a use is reported if no path makes the stream.
 */
function checkStreams(statements: readonly Statement[], streams: readonly HostStream[], report: Report): void {
  const bound = new Set<StreamId>();
  for (const each of statements) if (each.kind === "GetCurrentStream") bound.add(each.stream);
  const known = new Set<StreamId>();
  for (const statement of statements) {
    if (statement.kind === "GetCurrentStream") known.add(statement.stream);
    else if (statement.kind === "SetCurrentStream" || statement.kind === "Synchronize") {
      const { kind, stream } = statement;
      const own = kind === "SetCurrentStream" && !bound.has(stream);
      if (at(streams, stream).index === null && !known.has(stream) && !own) {
        report(statement, unknownFault(stream, bound.has(stream)));
      }
      // Each stream is reported once.
      known.add(stream);
    }
  }
}

function unknownFault(stream: StreamId, later: boolean): Fault {
  return {
    message: `Stream ${stream} is used before it exists`,
    found: later
      ? `the GetCurrentStream into Stream ${stream} comes later`
      : `nothing has made Stream ${stream} current`,
    expected: "a stream that an earlier GetCurrentStream binds or SetCurrentStream makes current",
    help: later ? "move the GetCurrentStream before its first use" : "synchronize with a stream that has work",
  };
}
