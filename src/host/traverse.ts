/**
 * Traversal of host programs: which statements are ops, their reads and writes, their scopes, and their paths. Passes,
 * the validator and the recorder use it.
 */
import type { TensorId } from "../ir/domain.ts";
import { type Op, outputsOf } from "../ir/ops/op.ts";
import { opRows } from "../ir/ops/rows.ts";
import { dispatch, type RuleTable } from "../support/invariant.ts";
import type { HirAliasSelect, ShardByStream, Statement, TeamCommunication } from "./nodes.ts";

/** Whether a statement is an op of the Fusion IR, rather than one of the Host IR's own kinds. */
export function isTeamCommunication(statement: Statement): statement is TeamCommunication {
  return statement.kind === "Communication" || statement.kind === "CollectivePermute";
}

export function isOp(statement: Statement): statement is Op {
  return statement.kind in opRows;
}

/** The tensors whose elements or binding a statement uses. A view reads its source. */
type Access = { readonly reads: readonly TensorId[]; readonly writes: readonly TensorId[] };

const none: Access = { reads: [], writes: [] };

const accesses: RuleTable<Exclude<Statement, Op>, Access> = {
  Allocate: ({ tensor }) => ({ reads: [], writes: [tensor] }),
  Deallocate: ({ tensor }) => ({ reads: [tensor], writes: [] }),
  GetCurrentStream: () => none,
  SetCurrentStream: () => none,
  Synchronize: () => none,
  ForLoop: () => none,
  IfThenElse: () => none,
  HirAliasSelect: ({ input, output }) => ({ reads: [input], writes: [output] }),
  ShardByStream: ({ input, output }) => ({ reads: [input], writes: [output] }),
  Define: () => none,
  CollectivePermute: ({ input, output }) => ({ reads: [input], writes: [output] }),
  Communication: ({ input, output }) => ({ reads: [input], writes: [output] }),
  P2PCommunication: ({ type, buffer }) =>
    type === "send" ? { reads: [buffer], writes: [] } : { reads: [], writes: [buffer] },
  StartCoalescing: () => none,
  EndCoalescing: () => none,
  ShareMemHandles: ({ communications }) => ({ reads: communications.map(({ buffer }) => buffer), writes: [] }),
  Wait: () => none,
  PostOnStream: ({ inputs, outputs }) => ({ reads: inputs, writes: outputs }),
  LaunchKernel: ({ inputs, outputs }) => ({
    reads: inputs.filter((input) => typeof input === "number"),
    writes: outputs,
  }),
};

function accumulates(op: Op): boolean {
  return (op.kind === "Matmul" || op.kind === "Linear") && op.accumulate === true;
}

/** The statement's own accesses, without those of the statements in it. */
export function statementAccess(statement: Statement): Access {
  if (!isOp(statement)) return dispatch(accesses, statement);
  const { inputs, output } = statement;
  return { reads: accumulates(statement) ? [...inputs, output] : inputs, writes: outputsOf(statement) };
}

/** The tensors that the statement itself writes or binds. */
export const writesOf = (statement: Statement): readonly TensorId[] => statementAccess(statement).writes;

/** The statement lists inside a statement; empty for all but loops and branches. */
export function scopesOf(statement: Statement): readonly (readonly Statement[])[] {
  switch (statement.kind) {
    case "ForLoop":
      return [statement.body];
    case "IfThenElse":
      return [statement.then, statement.else];
    default:
      return noScopes;
  }
}

const noScopes: readonly never[] = [];

/** All statements in program order, outer before inner. */
export function walk(body: readonly Statement[]): readonly Statement[] {
  const statements: Statement[] = [];
  const visit = (scope: readonly Statement[]): void => {
    for (const statement of scope) {
      statements.push(statement);
      if (statement.kind === "ForLoop") visit(statement.body);
      else if (statement.kind === "IfThenElse") {
        visit(statement.then);
        visit(statement.else);
      }
    }
  };
  visit(body);
  return statements;
}

/**
 * The path to the first occurrence of the very object `statement` in a scope: `body[4].then[2]`. It distinguishes
 * statements that print alike, and needs no valid ids. Null if the scope does not contain it. Only diagnostics look
 * paths up; no statement stores its path.
 */
export function pathOf(scope: readonly Statement[], statement: Statement, scopePath = "body"): string | null {
  for (const [i, each] of scope.entries()) {
    const path = `${scopePath}[${i}]`;
    if (each === statement) return path;
    const inside =
      each.kind === "ForLoop"
        ? pathOf(each.body, statement, `${path}.body`)
        : each.kind === "IfThenElse"
          ? (pathOf(each.then, statement, `${path}.then`) ?? pathOf(each.else, statement, `${path}.else`))
          : null;
    if (inside !== null) return inside;
  }
  return null;
}

/** A statement that binds a slice. */
export type Slicing = HirAliasSelect | ShardByStream;

export function isSlicing(statement: Statement): statement is Slicing {
  return statement.kind === "HirAliasSelect" || statement.kind === "ShardByStream";
}

/** The tensor with the memory of a slice, and of a slice of a slice. All other tensors are their own. */
export function ownersOf(body: readonly Statement[]): (tensor: TensorId) => TensorId {
  const sources = new Map(walk(body).flatMap((each) => (isSlicing(each) ? [[each.output, each.input] as const] : [])));
  return (tensor) => {
    let owner = tensor;
    for (let next = sources.get(owner); next !== undefined; next = sources.get(owner)) owner = next;
    return owner;
  };
}
