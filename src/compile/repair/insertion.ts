/** Statements to insert into host programs, at the same place of several ranks. */
import type { HostProgram, Statement } from "../../host/nodes.ts";
import { scopesOf } from "../../host/traverse.ts";
import { at } from "../../support/invariant.ts";

/** A position in a host program: through these scopes, before statement `index`. */
export interface InsertionPlace {
  readonly scopes: readonly { readonly index: number; readonly scope: number }[];
  readonly index: number;
  /** How many statements precede it, as `walk` counts. */
  readonly order: number;
}

export interface StatementInsertion {
  readonly ranks: readonly number[];
  readonly place: InsertionPlace;
  readonly statement: Statement;
}

/** Ranks that share a program still do. */
export function withInsertion(
  hosts: readonly HostProgram[],
  { ranks, place, statement }: StatementInsertion,
): readonly HostProgram[] {
  const edited = new Map<HostProgram, HostProgram>();
  for (const rank of ranks) {
    const host = at(hosts, rank);
    if (!edited.has(host))
      edited.set(host, { ...host, body: insertedIn(host.body, place.scopes, place.index, statement) });
  }
  return hosts.map((host, rank) => (ranks.includes(rank) ? (edited.get(host) ?? host) : host));
}

function insertedIn(
  body: readonly Statement[],
  [step, ...inner]: InsertionPlace["scopes"],
  index: number,
  statement: Statement,
): readonly Statement[] {
  if (step === undefined) return body.toSpliced(index, 0, statement);
  return body.with(
    step.index,
    withScope(at(body, step.index), step.scope, (scope) => insertedIn(scope, inner, index, statement)),
  );
}

function withScope(
  statement: Statement,
  scope: number,
  edit: (body: readonly Statement[]) => readonly Statement[],
): Statement {
  if (statement.kind === "ForLoop") return { ...statement, body: edit(statement.body) };
  if (statement.kind !== "IfThenElse") return statement;
  return scope === 0 ? { ...statement, then: edit(statement.then) } : { ...statement, else: edit(statement.else) };
}

/** Removes the very object `statement`. */
export function without(hosts: readonly HostProgram[], statement: Statement): readonly HostProgram[] {
  const edit = (body: readonly Statement[]): readonly Statement[] =>
    body
      .filter((each) => each !== statement)
      .map((each) => {
        if (each.kind === "ForLoop") return { ...each, body: edit(each.body) };
        return each.kind === "IfThenElse" ? { ...each, then: edit(each.then), else: edit(each.else) } : each;
      });
  return hosts.map((host) => ({ ...host, body: edit(host.body) }));
}

/** The scope that the place is in. */
export function bodyOf(host: HostProgram, { scopes }: InsertionPlace): readonly Statement[] {
  return scopes.reduce((outer, step) => at(scopesOf(at(outer, step.index)), step.scope), host.body);
}
