/** Compares PyTorch's flight records of all ranks: where ranks first differ, who waits for whom, and what is unknown. */
import { type Diagnostic, fail, type Place } from "../../diagnostics/diagnostic.ts";
import {
  type Disagreement,
  firstDisagreements,
  pairMismatches,
  type Aspect,
  type PairMismatch,
  type Shift,
  recordedShapeText,
} from "./disagreements.ts";
import { rowOfOp } from "./collective-rows.ts";
import { groupsByRank, type Issued, rankOfRecord, type TorchGroup, type TorchRank } from "./issued.ts";
import { collectivesOf, type GroupCollectives, sidesOf, transfersOf, type Transfers } from "./peers.ts";
import { contentText, groupText, ranksText, issuedStandingText, transferText, placeIn, stackText } from "./texts.ts";
import type { TorchRecord } from "./torch-record.ts";
import { flightWaits, type WaitEdge, type WaitCause } from "./waits.ts";
import { at } from "../../support/invariant.ts";

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

/* Disagreements, causes of waits and cycles as findings, in the form of the verifier's. */

const mostNotes = 8;

/** Where a rank issued a transfer: the line of the user's program if the record has it, else the record. */
function placeOf({ record, last }: Issued): Place {
  const frame = placeIn(last.frames);
  return frame === null ? { kind: "file", path: record.path } : { kind: "file", path: frame.file, line: frame.line };
}

function ranksOf(all: readonly Issued[]): string {
  return ranksText(all.map(({ record }) => record.rank));
}

function sideText(side: readonly Issued[]): string {
  return `${ranksOf(side)}: ${contentText(at(side, 0))}`;
}

function stackNotes(all: readonly (Issued | undefined)[]): readonly string[] {
  return all.flatMap((issued) => {
    const text = issued === undefined ? null : stackText(issued);
    return issued === undefined || text === null ? [] : [`stack of rank ${issued.record.rank}: ${text}`];
  });
}

const aspects: Readonly<Record<Aspect, string>> = {
  op: "the collective",
  dtype: "its dtype",
  elements: "its number of elements",
  shape: "its shape",
};

/** `before`: the last collective of the group that all ranks have issued alike. */
function disagreementFinding(
  { group }: GroupCollectives,
  { number, aspect, sides, totals, shift }: Disagreement,
  before: Issued | null,
): Diagnostic {
  const [usual, ...others] = sides;
  const isUnclear = aspect === "shape";
  const odd = others[0] ?? usual;
  return {
    code: isUnclear ? "transfer-unclear" : "transfer-mismatch",
    severity: isUnclear ? "warning" : "error",
    message: `the ranks of ${groupText(group)} disagree on number ${number}: ${aspects[aspect]}`,
    ...(odd === undefined ? {} : { place: placeOf(at(odd, 0)) }),
    found: totals === null ? others.map(sideText).join("; ") : foundTotals(at(sides, 0), totals, group.ranks.length),
    expected:
      totals !== null
        ? "as many elements as the group has ranks times those of one"
        : `${isUnclear ? "one shape" : "the same"} on all ranks; ${usual === undefined ? "" : sideText(usual)}`,
    help: isUnclear
      ? "make sure that the ranks mean the same tensor: the library compares only the number of elements"
      : ((shift === null ? null : shiftHelp(shift, number)) ??
        "let every rank issue the same collective: look for a branch or a size that depends on the rank"),
    notes: [...beforeNotes(before), ...stackNotes([usual?.[0], ...others.map((side) => side[0])]).slice(0, mostNotes)],
  };
}

function foundTotals(
  side: readonly Issued[],
  { inputs, outputs }: { readonly inputs: number; readonly outputs: number },
  members: number,
): string {
  return `${ranksOf(side)}: ${at(side, 0).last.op} of ${members} ranks with ${inputs} elements of inputs and ${outputs} of outputs`;
}

/** Before what is left to look at: records do not show what an exchange sends to each rank. */
function nextStep({ last }: Issued): string {
  return rowOfOp(last).isExchange === true
    ? "compare what each rank sends to each other, which the records do not show; if it fits,"
    : "the order of transfers is not the cause:";
}

function shiftHelp({ kind, ranks }: Shift, number: number): string {
  const who = ranksText(ranks);
  switch (kind) {
    case "left out":
      return `look for why ${who} left out number ${number}: from there on it issues what the others issue one number later`;
    case "one more":
      return `look for why ${who} issued number ${number} in addition: it issues afterwards what the others issue one number earlier`;
    case "swapped":
      return `issue numbers ${number} and ${number + 1} in one order: ${who} issues them the other way round`;
  }
}

function beforeNotes(before: Issued | null): readonly string[] {
  if (before === null) return ["the records show no collective of the group before it"];
  return [`last in common: ${transferText(before)}, ${contentText(before)}`];
}

function pairFinding({ send, recv }: PairMismatch): Diagnostic {
  const shapes = (side: "inputs" | "outputs", { op }: PairMismatch["send"]): string =>
    op[side].map(recordedShapeText).join(" ");
  return {
    code: "transfer-mismatch",
    severity: "error",
    message: `rank ${send.issued.record.rank} sends what rank ${recv.issued.record.rank} does not receive in ${groupText(send.issued.group)}`,
    place: placeOf(recv.issued),
    found: `recv of ${shapes("outputs", recv)}`,
    expected: `as the send: ${shapes("inputs", send)}`,
    help: "send and receive in one order on both ranks, with the same shapes",
    notes: stackNotes([send.issued, recv.issued]),
  };
}

/** Null for what another finding says, or nothing can be said of. */
function causeFinding({ obstacles, waiters }: WaitCause, transfers: Transfers): Diagnostic | null {
  const first = at(obstacles, 0);
  const ranks = obstacles.flatMap((each) => ("rank" in each ? [each.rank] : []));
  const who = ranksText(ranks);
  const [has, it] = ranks.length === 1 ? ["has", "it"] : ["have", "them"];
  const waiting = `${ranksOf(waiters)} ${new Set(waiters.map(({ record }) => record.rank)).size === 1 ? "waits" : "wait"} for ${it}`;
  const notes = [
    ...stackNotes([first.kind === "not issued" ? first.awaited : waiters[0]]),
    ...waiters.slice(0, mostNotes).map(waitNote),
    ...(waiters.length > mostNotes ? [`and ${waiters.length - mostNotes} more wait`] : []),
  ];
  switch (first.kind) {
    case "not issued": {
      const { awaited } = first;
      return {
        code: "rank-behind",
        severity: "error",
        message: `${who} ${has} not issued ${awaited.isPointToPoint ? `the other side of ${transferText(awaited)}` : transferText(awaited)}: ${waiting}`,
        place: placeOf(awaited),
        found: ranks
          .slice(0, mostNotes)
          .map((rank) => lastText(rank, transfers))
          .join("; "),
        expected: `${contentText(awaited)}, as rank ${awaited.record.rank} issues it`,
        help: `look at what the host of ${who} does after that: an exception, another branch, or work that lasts (py-spy dump)`,
        notes: [...commonNote(awaited, transfers), ...notes],
      };
    }
    case "not started":
      return {
        code: "rank-behind",
        severity: "error",
        message: `${who} ${has} issued ${transferText(first.issued)}, which has not started: ${waiting}`,
        place: placeOf(first.issued),
        found: `${who} ${has} no unfinished transfer before it`,
        expected: "kernels before it that end",
        help: `look for a kernel of ${who} that does not end`,
        notes,
      };
    case "nothing":
      return {
        code: "stuck",
        severity: "error",
        message: `all ranks have issued ${transferText(first.issued)}, and it has not completed`,
        place: placeOf(first.issued),
        found: obstacles
          .flatMap((each) =>
            "issued" in each ? [`rank ${each.issued.record.rank}: ${issuedStandingText(each.issued)}`] : [],
          )
          .slice(0, mostNotes)
          .join("; "),
        expected: "a transfer that ends once all ranks have started it",
        help: `${nextStep(first.issued)} look at the network, at GPUs in error, and at kernels that its inputs come from`,
        notes,
      };
    case "absent":
      return {
        code: "rank-failed",
        severity: "error",
        message: `${who} ${has} left no record: ${waiting}`,
        found: `records of ${ranksText(transfers.ranks.keys())}`,
        expected: "one of each rank; a process that was killed writes none",
        help: `look for the end of ${who}: its own message, or the system's out-of-memory killer; else pass its file, too`,
        notes,
      };
    case "disagreement":
    case "unknown":
    case "transfer":
      return null;
  }
}

function waitNote(issued: Issued): string {
  return `rank ${issued.record.rank} waits in ${transferText(issued)}, which ${issuedStandingText(issued)}`;
}

function lastText(rank: number, { ranks }: Transfers): string {
  const last = ranks.get(rank)?.issued.at(-1);
  if (last === undefined) return `rank ${rank} has issued nothing`;
  const where = placeIn(last.last.frames);
  const place = where === null ? "" : ` at ${where.file}:${where.line}`;
  return `the last of rank ${rank} is ${transferText(last)}${place}, which ${issuedStandingText(last)}`;
}

/** The last collective of the group that all of its ranks have issued. */
function commonNote(awaited: Issued, { groups }: Transfers): readonly string[] {
  const group = groups.find((each) => each.group === awaited.group);
  if (awaited.isPointToPoint || group === undefined) return [];
  const before = group.byNumber.get(awaited.number - 1)?.get(awaited.record.rank) ?? null;
  return beforeNotes(before);
}

const assumed: Readonly<Record<WaitEdge["by"], string | null>> = {
  queue: null,
  host: "if its host waits for that before it goes on",
  device: "if the GPU runs them in the order of their issue",
};

function cycleFinding(cycle: readonly WaitEdge[]): Diagnostic {
  const steps = cycle.map(({ from, to, by }) => {
    const held = `rank ${to.record.rank} is held up by ${transferText(to)}`;
    const assumption = assumed[by];
    return `rank ${from.record.rank} waits in ${transferText(from)} for rank ${to.record.rank}; ${held}${assumption === null ? "" : `, ${assumption}`}`;
  });
  const first = at(cycle, 0).from;
  return {
    code: "deadlock",
    severity: "error",
    message: `${ranksOf(cycle.map(({ from }) => from))} wait for each other in a cycle`,
    place: placeOf(first),
    found: [...cycle.map(({ from }) => from), first]
      .map((each) => `rank ${each.record.rank} in ${transferText(each)}`)
      .join(" waits for "),
    expected: "transfers in one order on all ranks",
    help: "issue these transfers in the same order on all ranks, or sends and recvs in one batch_isend_irecv",
    notes: [...steps, ...stackNotes(cycle.map(({ from }) => from))].slice(0, mostNotes),
  };
}

/** What the records cannot show. */
function limitFindings({ ranks, groups, stale }: Transfers, causes: readonly WaitCause[]): readonly Diagnostic[] {
  const failed = causes.flatMap(({ obstacles }) =>
    obstacles.flatMap((each) => (each.kind === "absent" ? [each.rank] : [])),
  );
  const known = new Set([...ranks.keys(), ...failed]);
  const absent = groups.flatMap(({ group }) => group.ranks.filter((rank) => !known.has(rank)));
  const forgetful = [...ranks].filter(([, { isWhole }]) => !isWhole).map(([rank]) => rank);
  const note = (
    ranksOfIt: readonly number[],
    what: (who: string) => string,
    ...[found, expected, help]: readonly [found: string, expected: string, help: string]
  ): readonly Diagnostic[] => {
    const message = what(ranksText(ranksOfIt));
    return ranksOfIt.length === 0
      ? []
      : [{ code: "record-incomplete", severity: "note", message, found, expected, help }];
  };
  return [
    ...note(
      absent,
      (who) => `${who} of these groups left no record`,
      `records of ${ranksText(ranks.keys())}`,
      "one of each rank",
      "pass the files of all ranks: what those issued is not compared",
    ),
    ...note(
      forgetful,
      (who) => `the records of ${who} do not go back to the start`,
      "a buffer that has overwritten its oldest entries, or a dump of the active ones only",
      "all transfers since the start",
      "set TORCH_FR_BUFFER_SIZE to more entries: what came before is not compared",
    ),
    ...note(
      [...stale],
      (who) => `the records of ${who} are older than those of the others`,
      "collectives that completed on other ranks, which takes all ranks, and that these do not have",
      "records of one moment",
      "dump all ranks at once: whether these are behind is unknown",
    ),
  ];
}
