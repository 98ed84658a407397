/**
 * What the recordings of all ranks have in common. A text that names a mesh is as long as the mesh, and every rank has
 * it: one for each rank would take memory that grows with the square of the ranks. Lists of ranks are mostly equal
 * where they name no peer or buffer, so a rank shares such commands and origins with the rank before it.
 */
import type { CommandList } from "../commands/command-list.ts";
import type { HostProgram, Statement } from "../host/nodes.ts";
import { createStatementText } from "../host/print/print.ts";
import type { Runs } from "../ir/runs.ts";
import type { IterDomain, Tensor } from "../ir/domain.ts";
import { sizesFromMeshes } from "../ir/sizes.ts";
import { namesComment } from "../ir/origin.ts";
import { indicesOn } from "./local-layout.ts";
import { getOrMake } from "../support/invariant.ts";

export interface Common {
  readonly statements: (program: HostProgram) => (statement: Statement) => string;
  /** The sizes that the meshes of a table of tensors determine. */
  readonly meshSizes: (tensors: readonly Tensor[]) => ReadonlyMap<string, number>;
  /** The ranks of a team, separated by spaces. */
  readonly team: (team: readonly number[]) => string;
  /** The indices of an axis of `size` elements that a rank holds, as declared: ranks that exchange ask for all of them. */
  readonly shares: (tensor: Tensor, axis: IterDomain, size: number, rank: number) => Runs;
  /** Host programs that have been found valid. */
  readonly valid: Set<HostProgram>;
  /** The list of the rank before. */
  latest: Pick<CommandList, "commands" | "origins">;
}

export function createCommon(): Common {
  const byStatement = new Map<Statement, string>();
  const byTeam = new Map<readonly number[], string>();
  const byTable = new Map<readonly Tensor[], ReadonlyMap<string, number>>();
  const shared = new Map<string, string>();
  const shares = new Map<Tensor, Map<string, Map<number, Runs>>>();
  /** Equal texts are one. */
  const sharedText = (made: string): string => getOrMake(shared, made, () => made);
  return {
    statements: (program) => {
      const textOf = createStatementText(program);
      const isNamed = program.tensors.some(({ origin }) => origin?.name !== undefined);
      const commented = (text: string): string => (isNamed ? `${text}${namesComment(text, program.tensors)}` : text);
      return (statement) => getOrMake(byStatement, statement, () => sharedText(commented(textOf(statement))));
    },
    shares: (tensor, axis, size, rank) => {
      const ofTensor = getOrMake(shares, tensor, () => new Map<string, Map<number, Runs>>());
      const key = `${axis.id} ${size}`;
      const byRank = getOrMake(ofTensor, key, () => new Map<number, Runs>());
      return getOrMake(byRank, rank, () => indicesOn(tensor, axis, size, rank));
    },
    valid: new Set(),
    latest: { commands: [], origins: [] },
    meshSizes: (tensors) => getOrMake(byTable, tensors, () => sizesFromMeshes(tensors)),
    team: (team) => getOrMake(byTeam, team, () => sharedText(team.join(" "))),
  };
}
