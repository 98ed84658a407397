/**
 * Messages about a rank whose GPU hangs: the reports of its streams, the run that they may belong to, and the peers
 * whose signals are missing.
 */
import { describe, expect, it } from "vitest";
import { DiagnosticError, link, type Program } from "@braid-compiler/braid";
import { programNotes } from "../../../src/backends/cuda/ops/list-notes.ts";
import { passedWord, progressWord } from "../../../src/backends/cuda/ops/memory-operations.ts";
import { createProgress } from "../../../src/backends/cuda/run/stuck/progress.ts";
import { createSlotReader, type ReadingGpu } from "../../../src/backends/cuda/run/stuck/slot-reader.ts";
import { type StuckRun, stuckStreams, failTimedOut } from "../../../src/backends/cuda/run/stuck/stuck-run.ts";
import { buildLists } from "../../machine/list-builder.ts";

/** Each rank sends to the other on a stream of its own, and has one more that meets nobody. */
const exchange = link(
  buildLists(2, (list, rank) => {
    const copies = list.stream("copies");
    list.stream("idle");
    const peer = 1 - rank;
    list.group(copies, [
      { type: "send", peer, view: list.input([4]) },
      { type: "recv", peer, view: list.output([4]) },
    ]);
  }),
);

/** Rank 0 waits for the others: commands 0 to 2 of its copy stream, and 3, for rank 2 once more. */
const gather = link(
  buildLists(4, (list, rank) => {
    const copies = list.stream("copies");
    list.stream("idle");
    for (const peer of rank === 0 ? [1, 2, 3, 2] : rank === 2 ? [0, 0] : [0]) {
      const role = rank === 0 ? "recv" : "send";
      const pair = list.pair("get", role, peer, rank === 0 ? list.output([4]) : list.input([4]));
      if (rank === 0) list.waitPeer(copies, pair, "ready");
      else list.signalPeer(copies, pair, "ready");
    }
  }),
);

const oneHost: StuckRun["hosts"] = { hosts: [0, 0, 0, 0], hostNames: ["a"] };

interface Given extends Pick<StuckRun, "eager" | "runs"> {
  readonly hosts?: StuckRun["hosts"];
  readonly program?: Program;
  /** Commands of rank 0 that are one run of waits. */
  readonly run?: readonly number[];
  /** Those of them whose signals have come; null where the GPU does not say. */
  readonly come?: readonly number[] | null;
}

/** Streams 0 and 1 are at work, 2 has ended. The words of the first two are those given. */
function stuckRun(
  words: readonly number[],
  { program = exchange, hosts = oneHost, run = [], come, ...options }: Given,
): StuckRun {
  const view = new DataView(new ArrayBuffer(64));
  const progress = createProgress(3, { take: () => ({ address: 0, view }) });
  words.forEach((word, stream) => view.setUint32(4 * stream, word, true));
  const waits = run.map((command) => ({ word: command, command }));
  return {
    gpu: { raw: { cuStreamQuery: (stream) => (stream === 2 ? 0 : 600), cuEventQuery: () => 600 } },
    notes: programNotes(program, 0),
    hosts,
    list: {
      streams: [0, 1, 2],
      records: [],
      progress,
      waitRuns: new Map(run.length > 1 ? [[run[0] ?? 0, waits]] : []),
      slots: {
        read: () => {
          if (come === undefined) throw new Error("no words are to be read");
          return come === null ? null : (word) => Number(come.includes(word));
        },
      },
    },
    ...options,
  };
}

const reached: unknown = expect.stringMatching(
  /^rank 0, copies: reached command 0, transfer .*; it communicates with ranks 1 /,
);
const which = "3 runs in a row: a stream may have reached its command in the run before the one that hangs";

describe("streams of runs that do not end", () => {
  it("say what they reached, and in a row that it may be of the run before", () => {
    const words = [passedWord(progressWord(0)), progressWord(0)];
    expect(stuckStreams(stuckRun(words, { eager: false, runs: 1 }))).toEqual([reached]);
    expect(stuckStreams(stuckRun(words, { eager: false, runs: 3 }))).toEqual([reached, which]);
    expect(stuckStreams(stuckRun([0, progressWord(0)], { eager: true, runs: 3 }))).toEqual([
      "rank 0, caller: has not reached a command that waits for a peer",
      reached,
      which,
    ]);
  });

  it("say nothing of runs whose words are past what they reached", () => {
    const past = [passedWord(progressWord(0)), passedWord(progressWord(0))];
    expect(stuckStreams(stuckRun(past, { eager: false, runs: 3 }))).toEqual([]);
  });

  it("are told with the number of runs", () => {
    const late = (runs: number) => () => failTimedOut(stuckRun([], { eager: false, runs }), 5);
    expect(late(1)).toThrow(DiagnosticError);
    expect(late(1)).toThrow("rank 0 did not finish its run within 5 ms");
    expect(late(3)).toThrow("rank 0 did not finish its 3 runs within 5 ms");
  });
});

describe("a run of waits that does not end", () => {
  const said = [passedWord(progressWord(9)), progressWord(0)];
  const told = (come: Given["come"], run: readonly number[] = [0, 1, 2], runs = 1): readonly string[] =>
    stuckStreams(stuckRun(said, { program: gather, run, eager: false, runs, ...(come === undefined ? {} : { come }) }));
  const line = (command: number, peers: string): unknown =>
    expect.stringMatching(
      `^rank 0, copies: reached command ${command}, waitSignal slot \\d+${peers} \\(waitPeer of rank 0\\)$`,
    );

  it.each([
    [[1], 0, "ranks 1 and 3"],
    [[], 0, "ranks 1, 2 and 3"],
    [[0], 1, "ranks 2 and 3"],
    [[0, 1], 2, "rank 3"],
    [[1, 2], 0, "rank 1"],
  ])("is told by its first wait and by all peers that have not come, where %j have", (come, command, peers) => {
    expect(told(come)).toEqual([line(command, `; it waits for ${peers}`)]);
  });

  it("is told with the hosts of all ranks if there are several", () => {
    const hosts = { hosts: [0, 0, 1, 1], hostNames: ["a", "b"] };
    const lines = (come: readonly number[]): readonly string[] =>
      stuckStreams(stuckRun(said, { program: gather, hosts, run: [0, 1, 2], eager: false, runs: 1, come }));
    expect(lines([0])[0]).toMatch(
      /^rank 0 on host a, copies: reached .*; it waits for ranks 2 on host b and 3 on host b /,
    );
    expect(lines([0, 1])[0]).toContain("; it waits for rank 3 on host b (");
    const late = () => failTimedOut(stuckRun([], { hosts, eager: false, runs: 1 }), 5);
    expect(late).toThrow("rank 0 on host a did not finish its run within 5 ms");
  });

  it("names a peer once, and none where all have come since", () => {
    expect(told([], [0, 1, 2, 3])).toEqual([line(0, "; it waits for ranks 1, 2 and 3")]);
    expect(told([0, 2], [0, 1, 2, 3])).toEqual([line(1, "; it waits for rank 2")]);
    expect(told([0, 1, 2])).toEqual([line(0, "")]);
  });

  it("names all of its peers where the GPU does not say which have come", () => {
    expect(told(null)).toEqual([line(0, "; it waits for at least one of ranks 1, 2 and 3")]);
    expect(told(null, [0, 2])).toEqual([line(0, "; it waits for at least one of ranks 1 and 3")]);
  });

  it("says of runs in a row what it says of one, and which it may be", () => {
    expect(told([1], [0, 1, 2], 3)).toEqual([line(0, "; it waits for ranks 1 and 3"), which]);
  });

  it("reads nothing for a wait that stands alone", () => {
    expect(told(undefined, [0])).toEqual([line(0, "; it waits for rank 1")]);
  });

  it("names no peer of waits that an eager run is past", () => {
    const past = stuckRun([0, passedWord(progressWord(2))], { program: gather, run: [0, 1, 2], eager: true, runs: 1 });
    expect(stuckStreams(past)).toEqual([expect.stringContaining("has not reached"), line(2, "")]);
  });
});

describe("words of slots", () => {
  /** Of a GPU that is done with a copy at the query `done`, and fails as told. */
  function reading(done: number, copyStatus = 0, queryStatus = 0): { read: () => unknown; queries: () => number } {
    const view = new DataView(new ArrayBuffer(64));
    let queries = 0;
    const raw: ReadingGpu["raw"] = {
      cuMemcpyDtoHAsync_v2: (to, from, bytes, stream) => {
        expect([to, from, bytes, stream]).toEqual([4096, 512, 12, 7]);
        return copyStatus;
      },
      cuStreamQuery: (stream) => {
        expect(stream).toBe(7);
        queries += 1;
        if (queries < done) return 600;
        view.setUint32(4, 1, true);
        return queryStatus;
      },
    };
    const { read } = createSlotReader(
      { raw },
      7,
      { address: 512, bytes: 12 },
      { take: () => ({ address: 4096, view }) },
    );
    return {
      read: () => {
        const words = read();
        return words === null ? null : [512, 516, 520].map(words);
      },
      queries: () => queries,
    };
  }

  it("are those of the GPU's memory when the copy has come, at once or later", () => {
    expect(reading(1).read()).toEqual([0, 1, 0]);
    expect(reading(5).read()).toEqual([0, 1, 0]);
  });

  it("are not known of a GPU that rejects the copy, fails after it or does not finish it", () => {
    const refused = reading(1, 700);
    expect([refused.read(), refused.queries()]).toEqual([null, 0]);
    expect(reading(2, 0, 700).read()).toBeNull();
    const start = performance.now();
    const stuck = reading(Infinity);
    expect(stuck.read()).toBeNull();
    const took = performance.now() - start;
    expect(took).toBeGreaterThanOrEqual(199);
    expect(took).toBeLessThan(5000);
    // It sleeps between its questions.
    expect(stuck.queries()).toBeLessThan(250);
  });
});
