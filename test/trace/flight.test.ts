/** Flight records of hand-made runs: what the rings keep, and which rank a comparison says is missing where. */
import { link } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { renderDiagnostic } from "../../src/diagnostics/diagnostic.ts";
import { compareFlights } from "../../src/trace/flight/compare-flights.ts";
import { type FlightRecord, type Reported } from "../../src/trace/flight/flight-record.ts";
import { buildLists } from "../machine/list-builder.ts";
import { arrived, record, reducing, signalling } from "./written-flights.ts";

function texts(records: readonly FlightRecord[]): readonly string[] {
  return compareFlights(records).findings.map(renderDiagnostic);
}

describe("a rank that is behind", () => {
  it("is one finding, with the streams that wait for it", () => {
    expect(
      texts([record(reducing, 0, arrived), record(reducing, 1, [["begun", 0]]), record(reducing, 2, arrived)]),
    ).toEqual([
      `error[rank-behind]: rank 1, caller is behind: 5 streams of ranks 0, 1, 2 wait for it
  at: rank 1, stream 0: T1 = Set(T0)
  found: rank 1, caller has begun command 0 (copy) of: T1 = Set(T0), 2.5 s ago
  expected: the other side of command 2 (waitEvent) of: Communication 0 on rank 1
  fix: look at what rank 1 does there
  note: rank 1, NCCL waits at command 2 (waitEvent) of: Communication 0 for caller
  note: rank 0, NCCL waits at command 3 (transfer) of: Communication 0 for rank 1, 2.5 s after its last step
  note: rank 2, NCCL waits at command 3 (transfer) of: Communication 0 for rank 1, 2.5 s after its last step
  note: rank 0, caller waits at command 5 (waitEvent) of: Wait Communication 0 for NCCL, 2.5 s after its last step
  note: rank 2, caller waits at command 5 (waitEvent) of: Wait Communication 0 for NCCL, 2.5 s after its last step`,
    ]);
  });

  it("is named with its peers' streams, if it has no record", () => {
    expect(texts([record(reducing, 0, arrived), record(reducing, 2, arrived)])).toEqual([
      `error[rank-failed]: rank 1 has left no record: 4 streams of ranks 0, 2 wait for it
  found: records of 2 ranks
  expected: one of each rank; a process that was killed or stopped writes none
  fix: look for the end of rank 1: its own message, or the system's out-of-memory killer
  note: rank 0, NCCL waits at command 3 (transfer) of: Communication 0 for rank 1, 2.5 s after its last step
  note: rank 2, NCCL waits at command 3 (transfer) of: Communication 0 for rank 1, 2.5 s after its last step
  note: rank 0, caller waits at command 5 (waitEvent) of: Wait Communication 0 for NCCL, 2.5 s after its last step
  note: rank 2, caller waits at command 5 (waitEvent) of: Wait Communication 0 for NCCL, 2.5 s after its last step`,
    ]);
  });

  it("may not have begun the run of the others", () => {
    const [text, ...others] = texts([
      record(reducing, 0, arrived, { run: 2 }),
      record(reducing, 1, [], { run: 1, finished: true }),
      record(reducing, 2, [], { run: 1, finished: true }),
    ]);
    expect(others).toEqual([]);
    expect(text).toMatch(/^error\[rank-behind\]: ranks 1, 2 have not begun run 2: 2 streams of rank 0 wait for them\n/);
  });

  it("is not one that has ended the run of the others", () => {
    const ended = [1, 2].map((rank) => record(reducing, rank, [], { finished: true }));
    expect(texts([record(reducing, 0, arrived), ...ended])).toEqual([]);
  });

  it("may be in another run", () => {
    const ahead = record(reducing, 0, arrived, { run: 2 });
    const ends = [
      ["ended", 0],
      ["ended", 1],
      ["ended", 2],
      ["ended", 3],
      ["begun", 4],
    ] as const;
    const behind = [1, 2].map((rank) => record(reducing, rank, ends, { run: 1 }));
    expect(texts([ahead, ...behind])).toEqual([
      expect.stringContaining("ranks 1, 2 are behind: 4 streams of ranks 0, 1, 2 wait"),
    ]);
  });

  it("has not been given its next command by its host", () => {
    const late = record(reducing, 1, [["ended", 0]], { posted: 1 });
    const [text] = texts([record(reducing, 0, arrived), late, record(reducing, 2, arrived)]);
    expect(text).toContain("found: rank 1, caller has not been given command 1 (recordEvent) of: Communication 0\n");
  });

  it("has a record from before the others failed", () => {
    const early = record(reducing, 1, arrived, { failed: false });
    expect(texts([record(reducing, 0, arrived), early, record(reducing, 2, arrived)])).toEqual([
      expect.stringContaining("rank 1 has left no record: 4 streams of ranks 0, 2"),
    ]);
  });

  it("is a note in a run that goes on", () => {
    const given = { failed: false };
    const records = [
      record(reducing, 0, arrived, given),
      record(reducing, 1, [], given),
      record(reducing, 2, arrived, given),
    ];
    expect(compareFlights(records).findings.map(({ severity }) => severity)).toEqual(["note"]);
  });
});

describe("ranks", () => {
  it("that wait for none have no finding", () => {
    const records = [0, 1, 2].map((rank) => record(reducing, rank, arrived));
    const { findings, ranks } = compareFlights(records);
    expect(findings).toEqual([]);
    expect(ranks[0]).toMatchObject({ text: "rank 0: in run 1, 6 of 6 commands posted", reason: "timed-out: it hangs" });
    expect(ranks[0]?.streams.map(({ text }) => text)).toEqual([
      "caller: waits at command 5 (waitEvent) of: Wait Communication 0 for NCCL, 2.5 s after its last step",
      "NCCL: has begun command 3 (transfer) of: Communication 0, 2.5 s ago",
    ]);
  });

  it("of a GPU stand where their streams have reported", () => {
    const at3 = [null, { command: 3, passed: false }] as const;
    const gpu = (rank: number, reported: readonly Reported[]): FlightRecord => record(reducing, rank, [], { reported });
    const [text, ...others] = texts([gpu(0, at3), gpu(1, [null, null]), gpu(2, at3)]);
    expect(others).toEqual([]);
    expect(text).toContain("error[rank-behind]: rank 1, caller is behind");
    expect(text).toContain("found: rank 1, caller has reported no command yet");
  });

  it("that wait for a signal that a program lacks", () => {
    const unsignalled = signalling(false);
    const records = [record(unsignalled, 0, []), record(unsignalled, 1, [], { finished: true })];
    expect(texts(records)).toEqual([
      expect.stringContaining("rank 1 has no command that ends a wait: 1 stream of rank 0 waits for it"),
    ]);
  });

  it("that wait for each other", () => {
    const crossed = link(
      buildLists(2, (list, rank) => {
        const [a, b] = [list.stream("a"), list.stream("b")];
        const groups = [a, b].map((stream, i) => () => {
          const view = rank === 0 ? list.input([4]) : list.output([4]);
          list.group(stream, [{ type: rank === 0 ? "send" : "recv", peer: 1 - rank, view }], `nccl:${i}`);
        });
        // Rank 0 posts the second after the first, rank 1 the first after the second.
        if (rank === 0) {
          groups[0]?.();
          list.synchronize(b, a);
          groups[1]?.();
        } else {
          groups[1]?.();
          list.synchronize(a, b);
          groups[0]?.();
        }
      }),
    );
    const [text, ...others] = texts([record(crossed, 0, [["begun", 0]]), record(crossed, 1, [["begun", 0]])]);
    expect(others).toEqual([]);
    expect(text).toMatch(
      /^error\[stuck\]: 4 streams wait for each other\n {2}at: .*\n {2}found: rank 0, a waits for rank 1, a waits for rank 1, b waits for rank 0, b waits for rank 0, a\n/,
    );
  });
});
