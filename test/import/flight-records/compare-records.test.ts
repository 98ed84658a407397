/**
 * What a comparison of all ranks' records finds. `torch` is what PyTorch's own analyzer says of the case, by the rules
 * of torch/distributed/flight_recorder (Op.match, error_analysis, match_coalesced_groups) and its tests.
 */
import { describe, expect, it } from "vitest";
import { compareTorchRecords, type TorchReport } from "../../../src/import/flight-records/compare-records.ts";
import { DiagnosticError, renderDiagnostic } from "../../../src/diagnostics/diagnostic.ts";
import { recordsOf, type WrittenEntry, type WrittenGroups } from "./written-records.ts";

type Lists = readonly (readonly WrittenEntry[])[];

interface Case {
  readonly torch: string;
  readonly ranks: Lists;
  readonly groups?: WrittenGroups;
  readonly firstId?: number;
  /** By code and message; notes of what is unknown too. */
  readonly finds: readonly RegExp[];
}

const compare = ({ ranks, groups, firstId = 0 }: Omit<Case, "finds" | "torch">): TorchReport =>
  compareTorchRecords(recordsOf(ranks, groups, { firstId }));

const headlines = ({ findings }: TorchReport): readonly string[] =>
  findings.map((finding) => renderDiagnostic(finding).split("\n")[0] ?? "");

const reduce = (line: number, more: Partial<WrittenEntry> = {}): WrittenEntry => ({ op: "all_reduce", line, ...more });
const hung = (line: number, more: Partial<WrittenEntry> = {}): WrittenEntry =>
  reduce(line, { state: "started", ...more });
const gather = (line: number, more: Partial<WrittenEntry> = {}): WrittenEntry => ({
  op: "_all_gather_base",
  outputs: [[8, 4]],
  line,
  ...more,
});
const pair: WrittenGroups = { "0": ["default_pg", [0, 1]] };
const nested: WrittenGroups = { "0": ["default_pg", [0, 1, 2]], "1": ["tp", [0, 1]], "2": ["dp", [1, 2]] };

const cases: Readonly<Record<string, Case>> = {
  "all agree": {
    torch: "every collective passes",
    ranks: [
      [reduce(1), gather(2)],
      [reduce(1), gather(2)],
    ],
    finds: [],
  },
  "a rank that is missing": {
    torch: "Not all ranks joining collective, missing ranks {1}",
    ranks: [[reduce(1), hung(2)], [reduce(1)], [reduce(1), hung(2)]],
    finds: [
      /^error\[rank-behind\]: rank 1 has not issued all_reduce 2 of group 0 \(default_pg\): ranks 0, 2 wait for it$/u,
    ],
  },
  "another collective": {
    torch: "COLLECTIVE_TYPE_MISMATCH",
    ranks: [
      [reduce(1), hung(2)],
      [reduce(1), gather(3, { state: "started" })],
    ],
    finds: [/^error\[transfer-mismatch\]: the ranks of group 0 \(default_pg\) disagree on number 2: the collective$/u],
  },
  "another size": {
    torch: "SIZE_OR_SYNTAX_MISMATCH",
    ranks: [[reduce(1, { inputs: [[5, 4]] })], [reduce(1)]],
    finds: [/transfer-mismatch.*number 1: its number of elements/u],
  },
  "another dtype": {
    torch: "COLLECTIVE_DTYPE_MISMATCH",
    ranks: [[reduce(1, { dtype: "BFloat16" })], [reduce(1)]],
    finds: [/transfer-mismatch.*number 1: its dtype/u],
  },
  "another shape of as many elements": {
    torch: "SIZE_OR_SYNTAX_MISMATCH, although NCCL counts elements only",
    ranks: [
      [reduce(1, { inputs: [[2, 8]] }), reduce(2)],
      [reduce(1), reduce(2)],
    ],
    finds: [/^warning\[transfer-unclear\].*number 1: its shape$/u],
  },
  "a gather of too many elements": {
    torch: "SIZE_OR_SYNTAX_MISMATCH",
    ranks: [[gather(1, { outputs: [[9, 4]] })], [gather(1, { outputs: [[9, 4]] })]],
    finds: [/transfer-mismatch.*number 1: its number of elements/u],
  },
  "an uneven exchange": {
    torch: "UNDECIDED for each two ranks, and alike in total",
    ranks: [
      [{ op: "all_to_all", inputs: [[6]], outputs: [[5]] }],
      [{ op: "all_to_all", inputs: [[2]], outputs: [[3]] }],
    ],
    finds: [],
  },
  "an exchange that loses elements": {
    torch: "Input/output mismatch in the collective",
    ranks: [
      [{ op: "all_to_all", inputs: [[6]], outputs: [[5]] }],
      [{ op: "all_to_all", inputs: [[2]], outputs: [[2]] }],
    ],
    finds: [/transfer-mismatch.*number 1: its number of elements/u],
  },
  "an exchange of another dtype": {
    torch: "COLLECTIVE_DTYPE_MISMATCH",
    ranks: [
      [{ op: "all_to_all", dtype: "BFloat16" }],
      [{ op: "all_to_all", dtype: "BFloat16" }],
      [{ op: "all_to_all", dtype: "Half" }],
    ],
    finds: [/^error\[transfer-mismatch\]: the ranks of group 0 \(default_pg\) disagree on number 1: its dtype$/u],
  },
  "a rank that others miss at several places: by the order of one of them": {
    torch: "Not all ranks joining collective, of both groups",
    groups: { "0": ["default_pg", [0, 1, 2]], "1": ["tp", [1, 2]] },
    ranks: [[hung(2)], [reduce(1, { group: "1", state: "started" }), hung(2)], []],
    finds: [/^error\[rank-behind\]: rank 2 has not issued all_reduce 1 of group 1 \(tp\): ranks 0, 1 wait for it$/u],
  },
  "a rank that others miss at several places: by one that does not come so far": {
    torch: "Not all ranks joining collective, of both groups",
    groups: { "0": ["default_pg", [0, 1, 2]], "1": ["tp", [1, 2]] },
    ranks: [[hung(2)], [reduce(1, { group: "1", state: "started", line: 9 })], []],
    finds: [/^error\[rank-behind\]: rank 2 has not issued all_reduce 1 of group 1 \(tp\): ranks 0, 1 wait for it$/u],
  },
  "a buffer that may have overwritten what all wait for": {
    torch: "every collective passes",
    firstId: 9,
    ranks: [0, 1].map(() => [reduce(1, { number: 7, state: "scheduled" as const }), reduce(2, { state: "scheduled" })]),
    finds: [/^note\[record-incomplete\]/u],
  },
  "a gather to a root": {
    torch: "FULLY_MATCHED: outputs are of the root alone",
    ranks: [
      [
        {
          op: "gather",
          outputs: [
            [4, 4],
            [4, 4],
          ],
        },
      ],
      [{ op: "gather", outputs: [] }],
    ],
    finds: [],
  },
  "coalesced broadcasts": {
    torch: "one collective that passes",
    ranks: [0, 1].map(() => [
      { op: "broadcast", number: 1, state: "scheduled" as const },
      { op: "broadcast", number: 1, state: "scheduled" as const },
      { op: "coalesced", number: 1, inputs: [] },
    ]),
    finds: [],
  },
  "coalesced broadcasts of other sizes": {
    torch: "the second does not pass",
    ranks: [[5], [4]].map((inputs) => [
      { op: "_broadcast_oop", number: 1, state: "scheduled" as const },
      { op: "_broadcast_oop", number: 1, inputs: [inputs], state: "scheduled" as const },
      { op: "ALLGATHER_coalesced", number: 1, inputs: [] },
    ]),
    finds: [/transfer-mismatch.*number 1: its number of elements/u],
  },
  "a batch that a rank lacks": {
    torch: "_reduce_oop does not pass: rank 0 has an empty op list",
    ranks: [
      [reduce(1)],
      [
        reduce(1),
        { op: "_reduce_oop", number: 2, state: "scheduled" },
        { op: "_reduce_oop", number: 2, state: "scheduled" },
        { op: "REDUCE_SCATTER_coalesced", number: 2, inputs: [], state: "started" },
      ],
    ],
    finds: [
      /rank-behind.*rank 0 has not issued REDUCE_SCATTER_coalesced 2 of group 0 \(default_pg\): rank 1 waits for it/u,
    ],
  },
  "a batch of sends and recvs": {
    torch: "Match",
    ranks: [
      [
        { op: "send 0->1", number: 1 },
        { op: "recv 0<-1", number: 1 },
        { op: "coalesced", number: 1, inputs: [], isP2p: true },
      ],
      [
        { op: "send 1->0", number: 1 },
        { op: "recv 1<-0", number: 1 },
        { op: "coalesced", number: 1, inputs: [], isP2p: true },
      ],
    ],
    finds: [],
  },
  "a send without a recv": {
    torch: "MISMATCH",
    ranks: [[{ op: "send 0->1", state: "started", line: 3 }], [reduce(1, { group: "1" })]],
    groups: { ...pair, "1": ["own", [1]] },
    finds: [
      /rank-behind.*rank 1 has not issued the other side of send to 1 in group 0 \(default_pg\): rank 0 waits for it/u,
    ],
  },
  "a recv of another size": {
    torch: "MISMATCH",
    ranks: [[{ op: "send 0->1", state: "started" }], [{ op: "recv 1<-0", inputs: [[3]], state: "started" }]],
    finds: [/transfer-mismatch.*rank 0 sends what rank 1 does not receive in group 0/u],
  },
  "sends before recvs on both ranks": {
    torch: "the sends pass: it does not look for cycles",
    ranks: [
      [
        { op: "send 0->1", state: "started" },
        { op: "recv 0<-1", state: "scheduled" },
      ],
      [
        { op: "send 1->0", state: "started" },
        { op: "recv 1<-0", state: "scheduled" },
      ],
    ],
    finds: [/^error\[deadlock\]: ranks 0, 1 wait for each other in a cycle$/u],
  },
  "two groups in another order": {
    torch: "COLLECTIVE_STATE_MISMATCH, or nothing: it does not look for cycles",
    ranks: [
      [hung(1), reduce(2, { group: "1", state: "scheduled" })],
      [hung(2, { group: "1" }), reduce(1, { state: "scheduled" })],
    ],
    groups: { ...pair, "1": ["tp", [0, 1]] },
    finds: [/^error\[deadlock\]: ranks 0, 1 wait for each other in a cycle$/u],
  },
  "waits that lead to a third rank": {
    torch: "two collectives with missing ranks, {1} and {2}",
    ranks: [[hung(1, { group: "1" })], [hung(2, { group: "2" })], []],
    groups: nested,
    finds: [/rank-behind.*rank 2 has not issued all_reduce 1 of group 2 \(dp\): ranks 0, 1 wait for it/u],
  },
  "a cycle of three ranks through hosts": {
    torch: "three collectives with missing ranks",
    ranks: [[hung(1, { group: "1" })], [hung(2, { group: "2" })], [hung(3, { group: "3" })]],
    groups: { "1": ["a", [0, 1]], "2": ["b", [1, 2]], "3": ["c", [0, 2]] },
    finds: [/^error\[deadlock\]: ranks 0, 1, 2 wait for each other in a cycle$/u],
  },
  "a collective that all have issued": {
    torch: "No errors found for this collective entry",
    ranks: [[hung(1)], [hung(1)]],
    finds: [
      /^error\[stuck\]: all ranks have issued all_reduce 1 of group 0 \(default_pg\), and it has not completed$/u,
    ],
  },
  "a rank whose side has not started": {
    torch: "COLLECTIVE_STATE_MISMATCH",
    ranks: [[hung(1)], [reduce(9, { group: "1" }), reduce(1, { state: "scheduled" })]],
    groups: { ...pair, "1": ["own", [1]] },
    finds: [
      /rank-behind.*rank 1 has issued all_reduce 1 of group 0 \(default_pg\), which has not started: rank 0 waits for it/u,
    ],
  },
  "a rank that records no starts": {
    torch: "COLLECTIVE_STATE_MISMATCH",
    ranks: [[hung(1)], [reduce(1, { state: "scheduled" })]],
    finds: [/^error\[stuck\]: all ranks have issued all_reduce 1/u],
  },
  "a rank without a record": {
    torch: "Missing dump files from ranks {1}",
    ranks: [[hung(1)]],
    groups: pair,
    finds: [/^error\[rank-failed\]: rank 1 has left no record: rank 0 waits for it$/u],
  },
  "a rank without a record that none waits for": {
    torch: "Missing dump files from ranks {1}",
    ranks: [[reduce(1)]],
    groups: pair,
    finds: [/^note\[record-incomplete\]: rank 1 of these groups left no record$/u],
  },
  "buffers that have forgotten": {
    torch: "compares from the largest first record on",
    ranks: [[reduce(1, { number: 7 }), hung(2, { number: 8 })], [hung(2, { number: 8 })]],
    firstId: 6,
    finds: [
      /^error\[stuck\].*all_reduce 8/u,
      /^note\[record-incomplete\]: the records of ranks 0, 1 do not go back to the start$/u,
    ],
  },
  "a record that is older": {
    torch: "Not all ranks joining collective, missing ranks {1}",
    ranks: [[reduce(1), reduce(2)], [reduce(1)]],
    finds: [/^note\[record-incomplete\]: the records of rank 1 are older than those of the others$/u],
  },
  "a record that is older, with a wait for its rank": {
    torch: "Not all ranks joining collective, missing ranks {1}",
    ranks: [[reduce(1), reduce(2), hung(3)], [reduce(1)]],
    finds: [/^note\[record-incomplete\]: the records of rank 1 are older than those of the others$/u],
  },
  "a rank that left out a collective, and ends one number before the others": {
    torch: "COLLECTIVE_TYPE_MISMATCH",
    ranks: [
      [reduce(1), gather(2), reduce(3)],
      [reduce(1), reduce(3)],
    ],
    finds: [/transfer-mismatch.*number 2: the collective$/u],
  },
  "sends of which the buffer has forgotten some": {
    torch: "MISMATCH",
    ranks: [
      [
        { op: "send 0->1", number: 9 },
        { op: "send 0->1", number: 10, state: "started" },
      ],
      [{ op: "recv 1<-0", number: 10, state: "started" }],
    ],
    firstId: 6,
    finds: [
      /^error\[stuck\]: all ranks have issued send to 1 in group 0/u,
      /^note\[record-incomplete\]: the records of ranks 0, 1 do not go back to the start$/u,
    ],
  },
  "subgroups of one name": {
    torch: "every collective passes",
    ranks: [[reduce(1)], [gather(1, { inputs: [[1]], outputs: [[1]] })]],
    groups: { "0": ["split", [0]] },
    finds: [],
  },
};

describe("a comparison", () => {
  it.each(Object.entries(cases))("of %s", (_, { finds, ...rest }) => {
    const found = headlines(compare(rest));
    expect(found).toHaveLength(finds.length);
    for (const [i, pattern] of finds.entries()) expect(found[i]).toMatch(pattern);
  });

  it("says where the ranks last agreed, where each is, and what it issued", () => {
    const report = compare({ ranks: [[reduce(80), hung(88)], [reduce(80)], [reduce(80), hung(88)]] });
    const [finding] = report.findings;
    expect(finding).toMatchObject({
      place: { kind: "file", path: "train.py", line: 88 },
      found: "the last of rank 1 is all_reduce 1 of group 0 (default_pg) at train.py:80, which has completed",
      expected: "all_reduce of Float [4, 4] at train.py:88 (step), as rank 0 issues it",
    });
    expect(finding?.notes).toEqual([
      "last in common: all_reduce 1 of group 0 (default_pg), all_reduce of Float [4, 4] at train.py:80 (step)",
      "stack of rank 0: train.py:88 (step) < train.py:200 (<module>)",
      "rank 0 waits in all_reduce 2 of group 0 (default_pg), which has started",
      "rank 2 waits in all_reduce 2 of group 0 (default_pg), which has started",
    ]);
    expect(report.groups).toMatchObject([{ name: "0", ranks: [0, 1, 2], lastInCommon: 1 }]);
    expect(report.ranks.map(({ transfers, waits }) => [transfers, waits.length])).toEqual([
      [2, 1],
      [1, 0],
      [2, 1],
    ]);
  });

  it("follows a queue without an assumption, and names it for other orders", () => {
    const notes = (name: string): string => (compare(cases[name] ?? { ranks: [] }).findings[0]?.notes ?? []).join("\n");
    expect(notes("sends before recvs on both ranks")).toMatch(
      /rank 1 is held up by send to 0 in group 0 \(default_pg\)$/mu,
    );
    expect(notes("two groups in another order")).toMatch(/all_reduce 1 of group 1 \(tp\), if the GPU runs them/u);
    expect(notes("a cycle of three ranks through hosts")).toMatch(/group 2 \(b\), if its host waits for that/u);
  });

  it("lists each unfinished queue of a rank: sends and recvs of a pair have their own", () => {
    const send = { op: "send 0->1", state: "started" } as const;
    const batch: readonly WrittenEntry[] = [
      { ...send, number: 2 },
      { op: "recv 0<-1", number: 2, state: "scheduled" },
      { op: "coalesced", number: 2, inputs: [], isP2p: true, state: "started" },
    ];
    const { ranks } = compare({ ranks: [[send, hung(1)], []] });
    expect(ranks[0]?.waits).toEqual([
      "send to 1 in group 0 (default_pg), which has started",
      "all_reduce 1 of group 0 (default_pg), which has started",
    ]);
    expect(compare({ ranks: [batch, []] }).ranks[0]?.waits).toEqual([
      "batch of send to 1, recv from 1 in group 0 (default_pg), which has started",
    ]);
  });

  it("says that a transfer timed out", () => {
    const { ranks } = compare({ ranks: [[hung(1, { retired: true })], []] });
    expect(ranks[0]?.waits).toEqual(["all_reduce 1 of group 0 (default_pg), which timed out after 600 s"]);
  });

  it.each([
    ["left out", [0, 2, 3, 4], /look for why rank 2 left out number 2/u],
    ["one more", [0, 9, 1, 2, 3], /look for why rank 2 issued number 2 in addition/u],
    ["swapped", [0, 2, 1, 3], /issue numbers 2 and 3 in one order: rank 2/u],
    ["different", [0, 9, 8, 7], /let every rank issue the same collective/u],
  ])("says that a rank's collectives are %s", (_, order, help) => {
    const all = (numbers: readonly number[]): readonly WrittenEntry[] =>
      numbers.map((number) => reduce(number, { inputs: [[number + 1]] }));
    const usual = all([0, 1, 2, 3, 4]);
    expect(compare({ ranks: [usual, usual, all(order)] }).findings[0]?.help).toMatch(help);
  });

  it("refuses two records of one rank", () => {
    const [first] = recordsOf([[reduce(1)]]);
    if (first === undefined) throw new Error("no record");
    expect(() => compareTorchRecords([first, { ...first, path: "again/nccl_trace_rank_0" }])).toThrow(DiagnosticError);
  });

  it("names the ranks that disagree, however many they are", () => {
    const ranks = Array.from({ length: 64 }, (_, rank) => [reduce(1), rank === 40 ? gather(3) : reduce(2)]);
    expect(compare({ ranks }).findings[0]).toMatchObject({
      found: "rank 40: _all_gather_base of Float [4, 4] at train.py:3 (step)",
      expected:
        "the same on all ranks; ranks 0, 1, 2, 3, 4, 5, 6, 7, .., 63: all_reduce of Float [4, 4] at train.py:2 (step)",
    });
  });
});
