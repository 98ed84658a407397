/** Uses of tensors in the scopes of a host program, and Deallocates after the last of them. */
import type { TensorId } from "../../ir/domain.ts";
import type { ExprId, HostProgram, Statement } from "../../host/nodes.ts";
import { ownersOf, scopesOf, statementAccess, walk } from "../../host/traverse.ts";
import { pushTo } from "../../support/invariant.ts";

/** Uses of tensors, directly or in inner scopes. A use of a view counts for the tensor that owns the memory. */
export interface Uses {
  /** A tensor may occur more than once. */
  readonly of: (statement: Statement) => Iterable<TensorId>;
  readonly inScope: (scope: readonly Statement[]) => ReadonlySet<TensorId>;
}

export function collectUses(program: HostProgram): Uses {
  const ownerOf = ownersOf(program.body);
  const operands = new Map<ExprId, readonly TensorId[]>();
  let group: TensorId[] | null = null;
  for (const statement of walk(program.body)) {
    switch (statement.kind) {
      case "Communication":
      case "CollectivePermute":
        operands.set(statement.id, [statement.input, statement.output]);
        break;
      case "P2PCommunication":
        operands.set(statement.id, [statement.buffer]);
        group?.push(statement.buffer);
        break;
      case "StartCoalescing":
        group = [];
        break;
      case "EndCoalescing":
        operands.set(statement.id, group ?? []);
        group = null;
        break;
      default:
    }
  }
  const ofScopes = new Map<readonly Statement[], ReadonlySet<TensorId>>();
  const inScope: Uses["inScope"] = (scope) => {
    const known = ofScopes.get(scope);
    if (known !== undefined) return known;
    const used = new Set<TensorId>();
    for (const statement of scope) for (const tensor of of(statement)) used.add(tensor);
    ofScopes.set(scope, used);
    return used;
  };
  const of: Uses["of"] = (statement) => {
    if (statement.kind === "Wait") return (operands.get(statement.target) ?? []).map(ownerOf);
    if (statement.kind === "ForLoop") return inScope(statement.body);
    if (statement.kind === "IfThenElse") return [...inScope(statement.then), ...inScope(statement.else)];
    const { reads, writes } = statementAccess(statement);
    return [...reads, ...writes].map(ownerOf);
  };
  return { of, inScope };
}

/**
 * Frees the tensors `owned`, which are used only in `scope`. A tensor that only one nested scope uses is freed there.
 */
export function freeInScope(
  scope: readonly Statement[],
  owned: ReadonlySet<TensorId>,
  uses: Uses,
): readonly Statement[] {
  if (owned.size === 0) return scope;
  const usersOf = new Map<TensorId, number[]>();
  scope.forEach((statement, position) => {
    for (const tensor of uses.of(statement)) {
      if (!owned.has(tensor)) continue;
      const users = usersOf.get(tensor);
      if (users === undefined) usersOf.set(tensor, [position]);
      else if (users.at(-1) !== position) users.push(position);
    }
  });
  const freedAfter = new Map<number, TensorId[]>();
  const nested = new Map<number, Set<TensorId>>();
  for (const [tensor, users] of usersOf) {
    const last = users.at(-1) ?? 0;
    const statement = scope[last];
    const holders =
      statement === undefined ? [] : scopesOf(statement).filter((inner) => uses.inScope(inner).has(tensor));
    if (users.length === 1 && holders.length === 1) nested.set(last, (nested.get(last) ?? new Set()).add(tensor));
    else {
      pushTo(freedAfter, last, tensor);
    }
  }
  if (freedAfter.size === 0 && nested.size === 0) return scope;
  return scope.flatMap((statement, position): readonly Statement[] => {
    const inner = nested.get(position);
    const kept = inner === undefined ? statement : freeInScopes(statement, inner, uses);
    const freed = (freedAfter.get(position) ?? []).toSorted((a, b) => a - b);
    return [kept, ...freed.map((tensor): Statement => ({ kind: "Deallocate", tensor }))];
  });
}

function freeInScopes(statement: Statement, owned: ReadonlySet<TensorId>, uses: Uses): Statement {
  if (statement.kind === "ForLoop") return { ...statement, body: freeInScope(statement.body, owned, uses) };
  if (statement.kind === "IfThenElse") {
    return {
      ...statement,
      then: freeInScope(statement.then, owned, uses),
      else: freeInScope(statement.else, owned, uses),
    };
  }
  return statement;
}
