/**
 * What differs between the host programs of a class's ranks: the devices of teams, a rank's position in a mesh, peers.
 * Lowering writes those of the first rank and notes here how each of the others has them, by the team or scalar itself.
 * The host program of another rank is made when it is asked for.
 */
import { binary, printScalar, type Scalar } from "../../ir/scalar/scalar.ts";
import { at, keysIn, getOrMake } from "../../support/invariant.ts";
import type { HostProgram, HostStream, P2PCommunication, Statement } from "../nodes.ts";

/** A scalar as each rank has it. */
export interface ScalarRule {
  readonly scalarOn: (rank: number) => Scalar;
  /** Its value on each rank, if `valueOf` evaluates the scalars that it consists of. */
  readonly valueOn: (rank: number, valueOf: (scalar: Scalar) => number) => number;
}

export interface RankRules {
  /** Of one class, in ascending order. The host program is that of the first. */
  readonly ranks: readonly number[];
  readonly teams: Map<readonly number[], (rank: number) => readonly number[]>;
  readonly scalars: Map<Scalar, ScalarRule>;
}

export function createRankRules(ranks: readonly number[]): RankRules {
  return { ranks, teams: new Map(), scalars: new Map() };
}

/** The scalar as `rank` has it; the same object if all ranks have it. */
export function scalarOn(rules: RankRules, scalar: Scalar, rank: number): Scalar {
  const rule = rules.scalars.get(scalar);
  if (rule !== undefined) return rule.scalarOn(rank);
  if (scalar.kind !== "binary") return scalar;
  const [lhs, rhs] = [scalarOn(rules, scalar.lhs, rank), scalarOn(rules, scalar.rhs, rank)];
  return lhs === scalar.lhs && rhs === scalar.rhs ? scalar : binary(scalar.op, lhs, rhs, scalar.name);
}

/** What differs from rank to rank in statements. */
interface Change {
  readonly team: (team: readonly number[]) => readonly number[];
  readonly scalar: (scalar: Scalar) => Scalar;
}

/** The statement as `rank` has it; the same object if all ranks have it. */
export function statementOn(rules: RankRules, statement: Statement, rank: number): Statement {
  return withChange(statement, changeOn(rules, rank));
}

function changeOn(rules: RankRules, rank: number): Change {
  return {
    team: (team) => rules.teams.get(team)?.(rank) ?? team,
    scalar: (scalar) => scalarOn(rules, scalar, rank),
  };
}

/** Equal for ranks that have the statement alike; null if all ranks of the class do. */
export function keyOfStatement(rules: RankRules, statement: Statement): ((rank: number) => string) | null {
  const teams: ((rank: number) => readonly number[])[] = [];
  const scalars: Scalar[] = [];
  withChange(statement, {
    team: (team) => {
      const teamOn = rules.teams.get(team);
      if (teamOn !== undefined) teams.push(teamOn);
      return team;
    },
    scalar: (scalar) => {
      if (isRuled(rules, scalar)) scalars.push(scalar);
      return scalar;
    },
  });
  if (teams.length === 0 && scalars.length === 0) return null;
  const ids = new Map<readonly number[], number>();
  const idOf = (team: readonly number[]): number => {
    return getOrMake(ids, team, () => ids.size);
  };
  return (rank) =>
    [
      ...teams.map((teamOn) => idOf(teamOn(rank))),
      ...scalars.map((scalar) => printScalar(scalarOn(rules, scalar, rank))),
    ].join(" ");
}

function isRuled(rules: RankRules, scalar: Scalar): boolean {
  if (rules.scalars.has(scalar)) return true;
  return scalar.kind === "binary" && (isRuled(rules, scalar.lhs) || isRuled(rules, scalar.rhs));
}

function withChange(statement: Statement, change: Change): Statement {
  const { team: teamOf, scalar } = change;
  const scope = (body: readonly Statement[]): readonly Statement[] => each(body, (inner) => withChange(inner, change));
  switch (statement.kind) {
    case "Communication": {
      const { team, root } = statement;
      return changed(statement, { team: teamOf(team), root: root === null ? null : scalar(root) });
    }
    case "CollectivePermute": {
      const { team, sendPeer, recvPeer } = statement;
      return changed(statement, { team: teamOf(team), sendPeer: scalar(sendPeer), recvPeer: scalar(recvPeer) });
    }
    case "P2PCommunication":
      return changed(statement, { peer: scalar(statement.peer) });
    case "ShareMemHandles": {
      const { communications } = statement;
      const peerOn = (post: P2PCommunication): P2PCommunication => changed(post, { peer: scalar(post.peer) });
      return changed(statement, { communications: each(communications, peerOn) });
    }
    case "ForLoop": {
      const { start, stop, step, body } = statement;
      return changed(statement, { start: scalar(start), stop: scalar(stop), step: scalar(step), body: scope(body) });
    }
    case "IfThenElse": {
      const { predicate, then, else: otherwise } = statement;
      return changed(statement, { predicate: scalar(predicate), then: scope(then), else: scope(otherwise) });
    }
    case "HirAliasSelect":
      return changed(statement, { index: scalar(statement.index) });
    case "ShardByStream":
      return changed(statement, { parts: scalar(statement.parts), index: scalar(statement.index) });
    case "Define":
      return changed(statement, { value: scalar(statement.value) });
    case "Allocate":
      return changed(statement, { size: scalar(statement.size) });
    default:
      return statement;
  }
}

export function hostOn(rules: RankRules, host: HostProgram, rank: number): HostProgram {
  if (!differs(rules) || rank === at(rules.ranks, 0)) return host;
  const body = each(host.body, (statement) => statementOn(rules, statement, rank));
  const streams = each(host.streams, (stream): HostStream => {
    const { index } = stream;
    return index === null ? stream : changed(stream, { index: scalarOn(rules, index, rank) });
  });
  return changed(host, { body, streams });
}

/** Whether the ranks have different host programs. */
export function differs({ teams, scalars }: RankRules): boolean {
  return teams.size > 0 || scalars.size > 0;
}

function changed<T extends object>(before: T, fields: Partial<T>): T {
  return keysIn(fields).every((key) => fields[key] === before[key]) ? before : { ...before, ...fields };
}

function each<T>(items: readonly T[], change: (item: T) => T): readonly T[] {
  const made = items.map(change);
  return made.every((item, i) => item === items[i]) ? items : made;
}
