/**
 * What passes ask about the rank that they lower for, answered for all ranks of its class: a decision must be the same
 * on all of them, and a team or a number is noted as each rank has it.
 */
import { agreed } from "../host/alike/classes.ts";
import type { CommunicatorBackend } from "../host/collectives.ts";
import type { DeviceMesh } from "../ir/device-mesh.ts";
import type { DIDType } from "../ir/parallel-type.ts";
import { constant, type Scalar } from "../ir/scalar/scalar.ts";
import type { PassContext } from "./pass.ts";
import { teamBackend } from "./team-backend.ts";

export type RankContext = Pick<PassContext, "rank" | "rules">;

/** What all ranks of the class decide. Throws UnlikeError. */
export function decided<T>({ rank, rules }: RankContext, decide: (rank: number) => T): T {
  return rules === undefined ? decide(rank) : agreed(rules.ranks.map(decide));
}

/** The number of this rank, noted as each rank has it. */
export function numberOfRank({ rank, rules }: RankContext, numberOn: (rank: number) => number): Scalar {
  const own = numberOn(rank);
  const number = constant(own);
  if (rules?.ranks.some((other) => numberOn(other) !== own) === true) {
    rules.scalars.set(number, { scalarOn: (other) => constant(numberOn(other)), valueOn: numberOn });
  }
  return number;
}

/** The devices of this rank's team, noted as each rank has it. All teams have as many. */
export function teamOfRank(context: RankContext, teamOn: (rank: number) => readonly number[]): readonly number[] {
  const { rank, rules } = context;
  const team = teamOn(rank);
  if (rules === undefined) return team;
  decided(context, (other) => teamOn(other).length);
  const isSame = (other: readonly number[]): boolean =>
    other === team || other.every((device, i) => device === team[i]);
  if (rules.ranks.every((other) => isSame(teamOn(other)))) return team;
  // A list of its own: another communication of the first rank may have this one by another rule.
  const own = [...team];
  rules.teams.set(own, teamOn);
  return own;
}

/** The devices that differ from this rank, which must be in the mesh, only along a dimension. */
export function sliceOfRank(context: RankContext, mesh: DeviceMesh, type: DIDType): readonly number[] {
  return teamOfRank(context, (rank) => mesh.slice(rank, type));
}

/** The library of the team, which must be the same for all ranks of the class. */
export function backendOfTeam(
  context: Pick<PassContext, "rank" | "rules" | "options">,
  team: readonly number[],
): CommunicatorBackend {
  const { rules, options } = context;
  const teamOn = rules?.teams.get(team);
  return teamOn === undefined
    ? teamBackend(team, options)
    : decided(context, (rank) => teamBackend(teamOn(rank), options));
}
