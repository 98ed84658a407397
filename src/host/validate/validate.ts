/**
 * Whether a host program is well-formed: faults that nvFuser's constructors and evaluator refuse, found before anything
 * runs. The rules come in three groups: ids (ids.ts); each statement by itself (statement.ts); the order of statements,
 * which is when tensors and streams are bound and how coalesced groups stand (bindings.ts).
 * `record` checks what depends on sizes and the rank.
 */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { at, once } from "../../support/invariant.ts";
import type { HostProgram, HostStream, Statement, StreamId, ExprId, StatementKind } from "../nodes.ts";
import { createStatementText } from "../print/print.ts";
import { pathOf, walk, statementAccess, isOp, scopesOf } from "../traverse.ts";
import { checkIds, type Fault, type Report } from "./ids.ts";
import { checkStatement } from "./statement.ts";
import type { TensorId } from "../../ir/domain.ts";

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

/*
 * Checks that a tensor is bound before it is used. Bindings are followed along every path that may run; a use is
 * reported if no path binds the tensor. If nothing in the program binds a tensor with a mesh, the tensor may be on
 * other devices: `record` knows the rank and checks it.
 */

/** Reports every use of a tensor that no path has bound. */
function checkBindings(program: HostProgram, report: Report): void {
  const written = once(() => new Set(writtenIn(program.body)));
  const bound = createBoundTensors([...program.inputs, ...program.outputs]);
  /**
   * `carried`: tensors that earlier iterations may have bound. Only a branch can use them, since the first iteration
   * has none.
   */
  const visit = (scope: readonly Statement[], carried: () => ReadonlySet<TensorId>, branch: boolean): void => {
    for (const statement of scope) {
      for (const tensor of needsBound(statement)) {
        if (bound.has(tensor) || (branch && carried().has(tensor))) continue;
        if (at(program.tensors, tensor).mesh !== null && !written().has(tensor)) continue;
        report(statement, unboundFault(tensor, statement.kind, written().has(tensor)));
        // Each tensor is reported once.
        bound.add(tensor);
      }
      if (statement.kind === "Deallocate") bound.delete(statement.tensor);
      else for (const tensor of statementAccess(statement).writes) bound.add(tensor);
      if (statement.kind === "ForLoop") {
        visit(
          statement.body,
          once(() => new Set([...carried(), ...writtenIn(statement.body)])),
          false,
        );
      } else if (statement.kind === "IfThenElse") {
        bound.either(
          () => {
            visit(statement.then, carried, true);
          },
          () => {
            visit(statement.else, carried, true);
          },
        );
      }
    }
  };
  visit(program.body, () => new Set(), false);
}

function writtenIn(scope: readonly Statement[]): readonly TensorId[] {
  return walk(scope).flatMap((statement) => statementAccess(statement).writes);
}

/** Excludes buffers of communications: a rank's role determines which of them it needs, and `record` knows the role. */
function needsBound(statement: Statement): readonly TensorId[] {
  const bindsOutput =
    isOp(statement) ||
    statement.kind === "HirAliasSelect" ||
    statement.kind === "ShardByStream" ||
    statement.kind === "PostOnStream" ||
    statement.kind === "LaunchKernel";
  return bindsOutput || statement.kind === "Deallocate" ? statementAccess(statement).reads : [];
}

function unboundFault(tensor: TensorId, kind: StatementKind, later: boolean): Fault {
  const state = later ? "bound only on other paths, later, or freed" : "never bound";
  return {
    message: kind === "Deallocate" ? `T${tensor} is freed and not bound` : `T${tensor} is used before it is bound`,
    found: `T${tensor} ${state}`,
    expected: "an input, an output, or a tensor that an earlier statement allocates or computes",
    help: later ? "move the statement after the one that binds the tensor" : "allocate or compute the tensor first",
  };
}

/** The tensors that are bound at a point, while statements are walked in order. */
export interface BoundTensors {
  readonly has: (tensor: TensorId) => boolean;
  readonly add: (tensor: TensorId) => void;
  readonly delete: (tensor: TensorId) => void;
  /** Walks both sides of a branch from the same state. A tensor is bound afterwards if either side leaves it bound. */
  readonly either: (then: () => void, otherwise: () => void) => void;
}

/**
 * The state with the tensors `initial` bound. The changes of a side are undone instead of made on a copy of the set, so
 * that a program with many branches takes linear time.
 */
export function createBoundTensors(initial: Iterable<TensorId>): BoundTensors {
  const bound = new Set(initial);
  /** The tensors that the current side has changed, with their state before it. */
  let changes = new Map<TensorId, boolean>();
  const set = (tensor: TensorId, now: boolean): void => {
    const before = bound.has(tensor);
    if (before === now) return;
    if (!changes.has(tensor)) changes.set(tensor, before);
    if (now) bound.add(tensor);
    else bound.delete(tensor);
  };
  /** Walks a side and undoes its changes. Returns the changed tensors with their state at its end. */
  const attempt = (side: () => void): ReadonlyMap<TensorId, boolean> => {
    const outer = changes;
    changes = new Map();
    side();
    const left = new Map([...changes.keys()].map((tensor) => [tensor, bound.has(tensor)]));
    for (const [tensor, before] of changes) {
      if (before) bound.add(tensor);
      else bound.delete(tensor);
    }
    changes = outer;
    return left;
  };
  return {
    has: (tensor) => bound.has(tensor),
    add: (tensor) => {
      set(tensor, true);
    },
    delete: (tensor) => {
      set(tensor, false);
    },
    either: (then, otherwise) => {
      const afterThen = attempt(then);
      const afterElse = attempt(otherwise);
      for (const tensor of new Set([...afterThen.keys(), ...afterElse.keys()])) {
        const before = bound.has(tensor);
        set(tensor, (afterThen.get(tensor) ?? before) || (afterElse.get(tensor) ?? before));
      }
    },
  };
}

// Coalesced groups: StartCoalescing and EndCoalescing in one scope, with point-to-point communications between them.

const allowedInGroup: ReadonlySet<StatementKind> = new Set([
  "P2PCommunication",
  "HirAliasSelect",
  "Allocate",
  "ForLoop",
  "IfThenElse",
]);

/** Reports groups that are not opened and closed in one scope, and statements that a group may not contain. */
function checkGroups(scope: readonly Statement[], report: Report): void {
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
function checkAwaited(statements: readonly Statement[], report: Report): void {
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
