/**
 * What must hold for the order of statements: tensors and streams are bound before they are used, and coalesced groups are opened and
 * closed in one scope. Bindings are followed along every path that may run: a use is reported where no path binds the tensor.
 * A tensor with a mesh that nothing in the program binds may lie on other devices; `record` knows the rank and checks it.
 */
import type { TensorId } from "../../ir/domain.ts";
import { at } from "../../support/invariant.ts";
import { createBoundTensors } from "./bound-tensors.ts";
import type { Fault } from "./fault.ts";
import type { ExprId, HostProgram, Statement, StatementKind } from "../nodes.ts";
import { isOp } from "../statement-kinds.ts";
import { accessesOf, scopesOf, walk } from "../traverse.ts";
import { checkStreams } from "./streams.ts";

type Report = (statement: Statement, fault: Fault) => void;

/** Reports every statement that stands where it cannot run. */
export function checkOrder(program: HostProgram, report: Report): void {
  checkBindings(program, report);
  checkGroups(program.body, report);
  checkAwaited(program, report);
  checkStreams(program, report);
}

function checkBindings(program: HostProgram, report: Report): void {
  const written = once(() => new Set(writtenIn(program.body)));
  const bound = createBoundTensors([...program.inputs, ...program.outputs]);
  /** `carried`: what earlier iterations may have bound. Only a branch can use it: the first iteration has none. */
  const visit = (scope: readonly Statement[], carried: () => ReadonlySet<TensorId>, branch: boolean): void => {
    for (const statement of scope) {
      for (const tensor of needsBound(statement)) {
        if (bound.has(tensor) || (branch && carried().has(tensor))) continue;
        if (at(program.tensors, tensor).mesh !== null && !written().has(tensor)) continue;
        report(statement, unboundFault(tensor, statement.kind, written().has(tensor)));
        // Reported once.
        bound.add(tensor);
      }
      if (statement.kind === "Deallocate") bound.delete(statement.tensor);
      else for (const tensor of accessesOf(statement).writes) bound.add(tensor);
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

/** The value of `make`, made when it is first asked for: most programs never ask. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

function writtenIn(scope: readonly Statement[]): readonly TensorId[] {
  return walk(scope).flatMap((statement) => accessesOf(statement).writes);
}

/** Communications are left to `record`: which sides a member must have depends on the rank. */
function needsBound(statement: Statement): readonly TensorId[] {
  const bindsOutput = isOp(statement) || statement.kind === "HirAliasSelect" || statement.kind === "PostOnStream";
  return bindsOutput || statement.kind === "Deallocate" ? accessesOf(statement).reads : [];
}

function unboundFault(tensor: TensorId, kind: StatementKind, later: boolean): Fault {
  const state = later ? "bound only on other paths, later, or freed" : "never bound";
  return {
    message: kind === "Deallocate" ? `T${tensor} is freed and not bound` : `T${tensor} is used before it is bound`,
    found: `T${tensor} ${state}`,
    expected: "an input, an output, or a tensor that an earlier statement allocates or computes",
    help: later ? "move the statement behind the one that binds the tensor" : "allocate or compute the tensor first",
  };
}

/** What may stand between StartCoalescing and EndCoalescing. */
const allowedInGroup: ReadonlySet<StatementKind> = new Set([
  "P2PCommunication",
  "HirAliasSelect",
  "Allocate",
  "ForLoop",
  "IfThenElse",
]);

function checkGroups(scope: readonly Statement[], report: Report): void {
  let open: Statement | null = null;
  for (const statement of scope) {
    if (statement.kind === "StartCoalescing") {
      if (open !== null) report(statement, groupFault("a coalesced group is opened inside another", "StartCoalescing"));
      open = statement;
    } else if (statement.kind === "EndCoalescing") {
      if (open === null)
        report(statement, groupFault("a coalesced group is closed without being open", "EndCoalescing"));
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
      help: "leave StartCoalescing and EndCoalescing out, or change the backend",
    });
  }
  if (allowedInGroup.has(statement.kind)) return;
  report(statement, {
    message: `${statement.kind} stands in a coalesced group`,
    found: statement.kind,
    expected: `one of ${[...allowedInGroup].join(", ")}`,
    help: "move the statement before StartCoalescing or behind EndCoalescing",
  });
}

function groupFault(message: string, found: string): Fault {
  return {
    message,
    found,
    expected: "StartCoalescing and EndCoalescing in turn, in one scope",
    help: "give every StartCoalescing one EndCoalescing in the same scope",
  };
}

/** A member of a group completes with the group alone. */
function checkAwaited({ body }: HostProgram, report: Report): void {
  const grouped = new Set<ExprId>();
  let open = false;
  for (const statement of walk(body)) {
    if (statement.kind === "StartCoalescing" || statement.kind === "EndCoalescing") {
      open = statement.kind === "StartCoalescing";
    } else if (statement.kind === "P2PCommunication" && open) grouped.add(statement.id);
  }
  for (const statement of walk(body)) {
    if (statement.kind !== "Wait" || !grouped.has(statement.target)) continue;
    report(statement, {
      message: "a member of a coalesced group is waited for",
      found: `P2PCommunication ${statement.target}`,
      expected: "the number of the group's EndCoalescing",
      help: "wait for the EndCoalescing",
    });
  }
}
