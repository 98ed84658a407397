/** Compares PyTorch's flight records of all ranks: where ranks first differ, who waits for whom, and what is unknown. */
import { type Diagnostic, fail } from "../../diagnostics/diagnostic.ts";
import { type Disagreement, firstDisagreements, pairMismatches } from "./disagreements.ts";
import { causeFinding, cycleFinding, disagreementFinding, limitFindings, pairFinding } from "./findings.ts";
import { groupsByRank, type Issued, rankOfRecord, type TorchGroup, type TorchRank } from "./issued.ts";
import { collectivesOf, type GroupCollectives, sidesOf, transfersOf } from "./peers.ts";
import { contentText, groupText, ranksText, issuedStandingText, transferText } from "./texts.ts";
import type { TorchRecord } from "./torch-record.ts";
import { flightWaits } from "./waits.ts";

export interface TorchReport {
  readonly findings: readonly Diagnostic[];
  readonly groups: readonly TorchGroupLine[];
  readonly ranks: readonly TorchRankLine[];
}

/** A process group that has collectives. */
export interface TorchGroupLine {
  readonly name: string;
  readonly description: string;
  readonly ranks: readonly number[];
  /** The last number that all ranks with a record have issued alike; null for none. */
  readonly lastInCommon: number | null;
  readonly text: string;
}

export interface TorchRankLine {
  readonly rank: number;
  readonly file: string;
  /** How many transfers the record has. */
  readonly transfers: number;
  /** The oldest unfinished transfer of each communicator, oldest first. */
  readonly waits: readonly string[];
}

/** Throws `record-invalid` for two records of one rank. */
export function compareTorchRecords(records: readonly TorchRecord[]): TorchReport {
  const groupOf = groupsByRank(records);
  const ranks = new Map<number, TorchRank>();
  for (const record of records.toSorted((a, b) => a.rank - b.rank)) {
    const other = ranks.get(record.rank);
    if (other !== undefined) twice(other.record, record);
    ranks.set(record.rank, rankOfRecord(record, groupOf));
  }
  const groups = collectivesOf(ranks);
  const differing = new Map(groups.map((each) => [each.group, firstDisagreements(each)]));
  const alikeUpTo = (group: TorchGroup): number => {
    const first = differing.get(group)?.find(({ aspect }) => aspect !== "shape");
    return first?.number ?? Infinity;
  };
  const transfers = transfersOf(ranks, groups, alikeUpTo);
  const mismatched = pairMismatches(ranks, transfers);
  const pairs = new Set(mismatched.flatMap(({ send, recv }) => [send.issued.queue, recv.issued.queue]));
  const disagreed = (issued: Issued): boolean =>
    issued.isPointToPoint ? pairs.has(issued.queue) : issued.number >= alikeUpTo(issued.group);
  const { causes, cycles } = flightWaits(transfers, disagreed);
  const errors = [
    ...groups.flatMap((each) =>
      (differing.get(each.group) ?? []).map((found) => disagreementFinding(each, found, issuedBefore(each, found))),
    ),
    ...mismatched.map(pairFinding),
    ...cycles.map(cycleFinding),
    ...causes.flatMap((cause) => causeFinding(cause, transfers) ?? []),
  ];
  return {
    findings: [...errors, ...limitFindings(transfers, causes)],
    groups: groups.flatMap((each) => (each.byNumber.size === 0 ? [] : [groupLine(each, alikeUpTo(each.group), ranks)])),
    ranks: [...ranks.values()].map(rankLine),
  };
}

function issuedBefore(each: GroupCollectives, { number }: Disagreement): Issued | null {
  return sidesOf(each, number - 1)[0] ?? null;
}

function groupLine(each: GroupCollectives, first: number, ranks: ReadonlyMap<number, TorchRank>): TorchGroupLine {
  const { name, description, ranks: members } = each.group;
  const recorded = members.filter((rank) => ranks.has(rank)).length;
  const common = [...each.byNumber].flatMap(([number, of]) => (number < first && of.size === recorded ? [number] : []));
  const lastInCommon = common.at(-1) ?? null;
  const [issued] = lastInCommon === null ? [] : sidesOf(each, lastInCommon);
  const upTo =
    issued === undefined
      ? "no collective is in all records"
      : `alike up to ${issued.last.op} ${issued.number}: ${contentText(issued)}`;
  const last = Math.max(...each.byNumber.keys());
  const rest = lastInCommon === last ? "" : `; the last is ${last}`;
  return {
    name,
    description,
    ranks: members,
    lastInCommon,
    text: `${groupText(each.group)}, ${ranksText(members)}: ${upTo}${rest}`,
  };
}

function rankLine({ record, issued, open }: TorchRank): TorchRankLine {
  return {
    rank: record.rank,
    file: record.path,
    transfers: issued.length,
    waits: open.map((each) => `${transferText(each)}, which ${issuedStandingText(each)}`),
  };
}

function twice(a: TorchRecord, b: TorchRecord): never {
  return fail("record-invalid", `two flight records are of rank ${a.rank}`, {
    place: { kind: "file", path: b.path },
    found: `${a.path} and ${b.path}`,
    expected: "one record of each rank",
    help: "pass one of them; the last number of a file's name is its rank",
  });
}
