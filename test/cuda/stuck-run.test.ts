/** What is said of a rank whose GPU does not end its runs: the words that its streams have left, and which run they may be of. */
import { describe, expect, it } from "vitest";
import { DiagnosticError, link } from "braid";
import { createProgress, passedWord, progressWord } from "../../src/backends/cuda/run/progress.ts";
import { type StuckRun, stuckStreams, timedOut } from "../../src/backends/cuda/run/stuck-run.ts";
import { buildLists } from "../machine/list-builder.ts";

/** Each rank sends to the other on a stream of its own, and has one more that meets nobody. */
const program = link(
  buildLists(2, (list, rank) => {
    const lane = list.stream("lane");
    list.stream("idle");
    const peer = 1 - rank;
    list.group(lane, [
      { type: "send", peer, view: list.input([4]) },
      { type: "recv", peer, view: list.output([4]) },
    ]);
  }),
);

/** Streams 0 and 1 are at work, 2 has ended. The words of the first two are those given. */
function stuckRun(words: readonly number[], options: Pick<StuckRun, "eager" | "runs">): StuckRun {
  const view = new DataView(new ArrayBuffer(64));
  const progress = createProgress(3, { take: () => ({ address: 0, view }) });
  words.forEach((word, stream) => view.setUint32(4 * stream, word, true));
  return {
    gpu: { rank: 0, raw: { cuStreamQuery: (stream) => (stream === 2 ? 0 : 600), cuEventQuery: () => 600 } },
    program,
    list: { streams: [0, 1, 2], events: [], progress },
    ...options,
  };
}

const came: unknown = expect.stringMatching(/^rank 0, lane: came to command 0, transfer .*; it meets ranks 1 /);
const which = "3 runs in a row: a stream may have come to its command in the run before the one that does not end";

describe("streams of runs that do not end", () => {
  it("say what they came to, and in a row that it may be of the run before", () => {
    const words = [passedWord(progressWord(0)), progressWord(0)];
    expect(stuckStreams(stuckRun(words, { eager: false, runs: 1 }))).toEqual([came]);
    expect(stuckStreams(stuckRun(words, { eager: false, runs: 3 }))).toEqual([came, which]);
    expect(stuckStreams(stuckRun([0, progressWord(0)], { eager: true, runs: 3 }))).toEqual([
      "rank 0, caller: has not come to a command that waits for a peer",
      came,
      which,
    ]);
  });

  it("say nothing of runs whose words are past what they came to", () => {
    const past = [passedWord(progressWord(0)), passedWord(progressWord(0))];
    expect(stuckStreams(stuckRun(past, { eager: false, runs: 3 }))).toEqual([]);
  });

  it("are told with the number of runs", () => {
    const late = (runs: number) => () => timedOut(stuckRun([], { eager: false, runs }), 5);
    expect(late(1)).toThrow(DiagnosticError);
    expect(late(1)).toThrow("rank 0 did not end its run within 5 ms");
    expect(late(3)).toThrow("rank 0 did not end its 3 runs within 5 ms");
  });
});
