/**
 * Coalesced groups: StartCoalescing and EndCoalescing in one scope, with point-to-point communications between them.
 */
import type { ExprId, Statement, StatementKind } from "../nodes.ts";
import { scopesOf, walk } from "../traverse.ts";
import type { Fault, Report } from "./fault.ts";

const allowedInGroup: ReadonlySet<StatementKind> = new Set([
  "P2PCommunication",
  "HirAliasSelect",
  "Allocate",
  "ForLoop",
  "IfThenElse",
]);

/** Reports groups that are not opened and closed in one scope, and statements that a group may not contain. */
export function checkGroups(scope: readonly Statement[], report: Report): void {
  let open: Statement | null = null;
  for (const statement of scope) {
    if (statement.kind === "StartCoalescing") {
      if (open !== null) report(statement, groupFault("a coalesced group is opened inside another", "StartCoalescing"));
      open = statement;
    } else if (statement.kind === "EndCoalescing") {
      if (open === null) {
        report(statement, groupFault("a coalesced group is closed without being open", "EndCoalescing"));
      }
      open = null;
    } else if (open === null) {
      for (const inner of scopesOf(statement)) checkGroups(inner, report);
    } else {
      for (const inner of walk([statement])) checkInGroup(inner, report);
    }
  }
  if (open !== null) report(open, groupFault("a coalesced group is not closed in its scope", "no EndCoalescing"));
}

function checkInGroup(statement: Statement, report: Report): void {
  if (statement.kind === "P2PCommunication" && statement.backend !== "nccl") {
    report(statement, {
      message: "only the nccl backend coalesces",
      found: `the ${statement.backend} backend`,
      expected: "the nccl backend",
      help: "remove StartCoalescing and EndCoalescing, or change the backend",
    });
  }
  if (allowedInGroup.has(statement.kind)) return;
  report(statement, {
    message: `${statement.kind} is inside a coalesced group`,
    found: statement.kind,
    expected: `one of ${[...allowedInGroup].join(", ")}`,
    help: "move the statement before StartCoalescing or after EndCoalescing",
  });
}

function groupFault(message: string, found: string): Fault {
  return {
    message,
    found,
    expected: "StartCoalescing and EndCoalescing in pairs, in one scope",
    help: "give every StartCoalescing one EndCoalescing in the same scope",
  };
}

/** Reports Waits for one communication of a group: it completes with the whole group. */
export function checkAwaited(statements: readonly Statement[], report: Report): void {
  const grouped = new Set<ExprId>();
  let open = false;
  for (const statement of statements) {
    if (statement.kind === "StartCoalescing" || statement.kind === "EndCoalescing") {
      open = statement.kind === "StartCoalescing";
    } else if (statement.kind === "P2PCommunication" && open) grouped.add(statement.id);
  }
  for (const statement of statements) {
    if (statement.kind !== "Wait" || !grouped.has(statement.target)) continue;
    report(statement, {
      message: "a Wait names a communication inside a coalesced group",
      found: `P2PCommunication ${statement.target}`,
      expected: "the number of the group's EndCoalescing",
      help: "wait for the EndCoalescing",
    });
  }
}
