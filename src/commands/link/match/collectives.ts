/** Matches the k-th collective of a communicator on every rank of its team. */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { counted } from "../../../support/wording.ts";
import type { CommandList } from "../../command-list.ts";
import type { Collective, CommandRef } from "../../command.ts";
import { type CollectiveUse, disagreement, unfitViews, mismatch } from "./problems.ts";
import { type Meanings, otherMeaning } from "./meaning.ts";
import { getOrMake, pushTo } from "../../../support/invariant.ts";

/** A transfer that one rank posts, with its buffers numbered over all ranks. */
export interface Posted<Operation> extends CommandRef {
  readonly communicator: string;
  readonly operation: Operation;
}

export interface MatchedCollective<Use extends CollectiveUse> {
  readonly communicator: string;
  /** In team order. */
  readonly participants: readonly Use[];
}

export interface MatchedCollectives<Use extends CollectiveUse> {
  readonly matched: readonly MatchedCollective<Use>[];
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
}

/**
 * `posted` is in order of ranks and, for each rank, of its list. The first mismatch shifts everything after it on its
 * communicator, so each communicator reports one problem and one warning.
 */
export function matchCollectives<Use extends Posted<Collective>>(
  meanings: Meanings,
  posted: readonly Use[],
): MatchedCollectives<Use> {
  const { lists } = meanings;
  const matched: MatchedCollective<Use>[] = [];
  const problems: Diagnostic[] = [];
  const warnings: Diagnostic[] = [];
  const communicators = queuesByCommunicator(posted);
  const misordered = new Set<string>();
  for (const [communicator, queues] of communicators) {
    let warning: Diagnostic | null = null;
    for (let k = 0; ; k++) {
      const uses = [...queues.values()].flatMap((queue) => queue[k] ?? []);
      const [anchor] = uses;
      if (anchor === undefined) break;
      const participants = anchor.operation.team.flatMap((rank) => queues.get(rank)?.[k] ?? []);
      const problem = findDisagreement(lists, anchor, uses, queues) ?? unfitViews(lists, participants);
      if (problem !== null) {
        const other = sameTeamOtherwise(anchor, communicators.values());
        const ranks = anchor.operation.team.toSorted((a, b) => a - b).join(" ");
        if (other === null) problems.push(problem);
        else if (!misordered.has(ranks)) problems.push(otherOrder(lists, anchor, other));
        if (other !== null) misordered.add(ranks);
        break;
      }
      const doubt = findOtherMeaning(meanings, anchor, uses, queues);
      if (doubt !== null && doubt.severity !== "warning") {
        problems.push(doubt);
        break;
      }
      warning ??= doubt;
      matched.push({ communicator, participants });
    }
    if (warning !== null) warnings.push(warning);
  }
  return { matched, problems, warnings };
}

/** queues.get(rank)[k]: the rank's k-th collective on a communicator. */
type Queues<Use> = ReadonlyMap<number, readonly Use[]>;

function queuesByCommunicator<Use extends Posted<Collective>>(
  posted: readonly Use[],
): ReadonlyMap<string, Queues<Use>> {
  const all = new Map<string, Map<number, Use[]>>();
  for (const use of posted) {
    const queues = getOrMake(all, use.communicator, () => new Map<number, Use[]>());
    pushTo(queues, use.rank, use);
  }
  return all;
}

/** A collective of the same ranks in another order, on a communicator that some of them do not use; null if none is. */
function sameTeamOtherwise<Use extends Posted<Collective>>(anchor: Use, all: Iterable<Queues<Use>>): Use | null {
  const { team } = anchor.operation;
  for (const queues of all) {
    for (const [use] of queues.values()) {
      const other = use?.operation.team ?? [];
      const isSame = other.length === team.length && other.every((rank) => team.includes(rank));
      const isOther = other.some((rank, i) => rank !== team[i]) && other.some((rank) => !queues.has(rank));
      if (use !== undefined && isSame && isOther) return use;
    }
  }
  return null;
}

function otherOrder(lists: readonly CommandList[], anchor: Posted<Collective>, other: Posted<Collective>): Diagnostic {
  const [own, others] = [anchor, other].map(({ operation }) => `[${operation.team.join(", ")}]`);
  return mismatch(lists, {
    message: `ranks ${anchor.rank} and ${other.rank} have a team in different orders`,
    at: other,
    against: anchor,
    found: `team ${others} on rank ${other.rank}, ${own} on rank ${anchor.rank}`,
    expected: "the same ranks in the same order on every rank of the team",
    help: "list the ranks of the team in one order on all of them",
  });
}

/** A use that means another collective than the anchor, preferably for certain; null if none does. */
function findOtherMeaning(
  meanings: Meanings,
  anchor: Posted<Collective>,
  uses: readonly Posted<Collective>[],
  queues: Queues<Posted<Collective>>,
): Diagnostic | null {
  let warning: Diagnostic | null = null;
  for (const use of uses) {
    const found = otherMeaning(meanings, anchor, use, queues.get(use.rank) ?? []);
    if (found === null) continue;
    if (found.severity !== "warning") return found;
    warning ??= found;
  }
  return warning;
}

/** Why `uses`, the k-th collective of every rank that has one, are not one collective of one team; null if they are. */
function findDisagreement(
  lists: readonly CommandList[],
  anchor: Posted<Collective>,
  uses: readonly Posted<Collective>[],
  queues: Queues<Posted<Collective>>,
): Diagnostic | null {
  for (const use of uses) {
    const problem = disagreement(lists, anchor, use);
    if (problem !== null) return problem;
  }
  const { team } = anchor.operation;
  const present = new Set(uses.map(({ rank }) => rank));
  const outsider = uses.find(({ rank }) => !team.includes(rank));
  if (outsider !== undefined) {
    return mismatch(lists, {
      message: `rank ${outsider.rank} posts a collective of a team that it is not in`,
      at: outsider,
      against: anchor === outsider ? null : anchor,
      found: `team [${team.join(", ")}]`,
      expected: `a team with rank ${outsider.rank}`,
      help: "remove the collective from this rank's program, or add the rank to the team",
    });
  }
  const missing = team.find((rank) => !present.has(rank));
  if (missing === undefined) return null;
  if (missing >= lists.length) {
    return mismatch(lists, {
      message: `a team names rank ${missing}, which the run does not have`,
      at: anchor,
      against: null,
      found: `team [${team.join(", ")}]`,
      expected: lists.length === 1 ? "rank 0, the only one" : `ranks from 0 to ${lists.length - 1}`,
      help: "correct the team, or run on more devices",
    });
  }
  const own = queues.get(missing) ?? [];
  return mismatch(lists, {
    message: `rank ${missing} does not take part in a collective of its team`,
    at: anchor,
    against: own.at(-1) ?? null,
    found: `${counted(own.length, "collective")} of rank ${missing} on ${anchor.communicator}`,
    expected: `${queues.get(anchor.rank)?.length ?? 0}, as on rank ${anchor.rank}`,
    help: "post the same collectives on a communicator in the same order on all ranks",
  });
}
