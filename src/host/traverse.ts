/**
 * What every statement reads and writes, and which scopes it has: one row per kind. Passes, the validator and the
 * recorder walk host programs through these tables.
 */
import type { TensorId } from "../ir/domain.ts";
import type { Op } from "../ir/ops/op.ts";
import { dispatch, type RuleTable } from "../support/dispatch.ts";
import type { Statement } from "./nodes.ts";
import { isOp } from "./statement-kinds.ts";

/** The tensors whose elements or binding a statement uses. A view's source counts as read. */
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
  Communication: ({ input, output }) => ({ reads: [input], writes: [output] }),
  P2PCommunication: ({ type, buffer }) =>
    type === "send" ? { reads: [buffer], writes: [] } : { reads: [], writes: [buffer] },
  StartCoalescing: () => none,
  EndCoalescing: () => none,
  ShareMemHandles: ({ communications }) => ({ reads: communications.map(({ buffer }) => buffer), writes: [] }),
  Wait: () => none,
  PostOnStream: ({ inputs, outputs }) => ({ reads: inputs, writes: outputs }),
};

function accumulates(op: Op): boolean {
  return (op.kind === "Matmul" || op.kind === "Linear") && op.accumulate === true;
}

/** The statement's own accesses: those of its scopes are not included. */
export function accessesOf(statement: Statement): Access {
  if (!isOp(statement)) return dispatch(accesses, statement);
  const { inputs, output } = statement;
  return { reads: accumulates(statement) ? [...inputs, output] : inputs, writes: [output] };
}

/** The tensors that the statement itself writes or binds. */
export const writesOf = (statement: Statement): readonly TensorId[] => accessesOf(statement).writes;

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
