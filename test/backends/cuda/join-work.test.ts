/** Neighbouring memory operations become one driver call; all other work keeps its position in the list. */
import { describe, expect, it } from "vitest";
import { noOperations } from "../../../src/backends/cuda/ops/barrier-operations.ts";
import { joinWork, type ListedWork, type StreamWork } from "../../../src/backends/cuda/ops/join-work.ts";
import {
  memoryOperations,
  passedWord,
  type StreamOperation,
} from "../../../src/backends/cuda/ops/memory-operations.ts";
import type { QueuedWork } from "../../../src/backends/cuda/ops/planning.ts";
import type { CommandStreamId } from "../../../src/commands/command.ts";
import { makeId } from "../../../src/support/invariant.ts";

const call: QueuedWork = { kind: "op", op: { kind: "record", stream: 0, command: 0, event: 0 } };
const wordAt = (index: number) => ({ space: "word", rank: 0, index }) as const;
const progress = { space: "progress", stream: 0 } as const;
const signal = (index: number): StreamOperation => ({ kind: "signal", word: wordAt(index) });
const wait = (index: number): StreamOperation => ({ kind: "wait", word: wordAt(index), progress, says: index + 1 });
const raise = (word: number): QueuedWork => ({ kind: "memory", operations: [signal(word)] });
const take = (word: number): QueuedWork => ({ kind: "memory", operations: [wait(word)] });
const linkWorkOf = (blocks: number): QueuedWork => ({
  kind: "linkKernel",
  operations: noOperations,
  blocks,
  launch: () => ({
    kind: "launch",
    stream: 0,
    command: 0,
    kernel: 0,
    grid: [1, 1, 1],
    block: [1, 1, 1],
    parameters: [],
  }),
});
const linkWork = linkWorkOf(8);
const joined = (pieces: readonly ListedWork[]): readonly StreamWork[] => joinWork(pieces, 132);

function list(...pieces: readonly (readonly [stream: number, work: QueuedWork])[]): readonly ListedWork[] {
  return pieces.map(([stream, work], index) => {
    const isBlocking = work.kind === "memory" && work.operations.some(({ kind }) => kind === "wait");
    return { stream: makeId<CommandStreamId>(stream), index, work, isBlocking };
  });
}

/** Per piece: its first command, its stream, and how many operations it has. */
function shape(pieces: readonly StreamWork[]): readonly (readonly [number, number, number | string])[] {
  return pieces.map(({ index, stream, work }) => [index, stream, sizeOf(work)]);
}

function sizeOf(work: QueuedWork): number | string {
  if (work.kind === "op") return "call";
  if (work.kind === "memory") return work.operations.length;
  return `${work.operations.before.length} kernel ${work.operations.after.length}`;
}

it("joins a signal with the wait that follows it on its stream, in order", () => {
  const pieces = joined(list([1, raise(64)], [1, take(128)], [1, call], [1, take(192)], [1, raise(256)]));
  expect(shape(pieces)).toEqual([
    [0, 1, 2],
    [2, 1, "call"],
    [3, 1, 2],
  ]);
  expect(pieces[0]?.work).toEqual({ kind: "memory", operations: [signal(64), wait(128)] });
});

it("issues signals with the next batch of their stream, after other streams' work that waits for no peer", () => {
  const pieces = joined(list([1, raise(64)], [2, call], [1, raise(128)], [2, raise(192)], [2, call], [1, take(256)]));
  expect(shape(pieces)).toEqual([
    [1, 2, "call"],
    [3, 2, 1],
    [4, 2, "call"],
    [0, 1, 3],
  ]);
  expect(pieces.at(-1)?.work).toEqual({ kind: "memory", operations: [signal(64), signal(128), wait(256)] });
});

it("moves no signal across a wait or a collective of another stream, or across work of its own", () => {
  const waited = list([1, raise(64)], [2, take(128)], [1, take(192)]);
  expect(joined(waited)).toEqual(waited);
  const met = list([1, raise(64)], [2, call], [1, take(192)]).map((piece) => ({
    ...piece,
    isBlocking: piece.stream === 2,
  }));
  expect(joined(met)).toEqual(met);
  const own = list([1, raise(64)], [2, call], [1, call], [1, take(192)]);
  expect(joined(own)).toEqual(own);
});

it("moves no wait", () => {
  const pieces = list([1, take(64)], [2, call], [1, raise(128)]);
  expect(joined(pieces)).toEqual(pieces);
});

it("gives consecutive waits one word before and one after, and resets them once all have arrived", () => {
  const three = [wait(64), wait(128), wait(192)];
  expect(memoryOperations([signal(32), ...three, signal(256), wait(320)])).toEqual([
    { kind: "write", address: wordAt(32), value: 1 },
    { kind: "write", address: progress, value: 65 },
    ...[64, 128, 192].map((index) => ({ kind: "wait", address: wordAt(index), value: 1 })),
    ...[64, 128, 192].map((index) => ({ kind: "write", address: wordAt(index), value: 0 })),
    { kind: "write", address: progress, value: passedWord(193) },
    { kind: "write", address: wordAt(256), value: 1 },
    { kind: "write", address: progress, value: 321 },
    { kind: "wait", address: wordAt(320), value: 1 },
    { kind: "write", address: wordAt(320), value: 0 },
    { kind: "write", address: progress, value: passedWord(321) },
  ]);
  for (const count of [1, 2, 3, 7]) {
    expect(memoryOperations(Array.from({ length: count }, (_, i) => wait(4 * i)))).toHaveLength(2 + 2 * count);
  }
});

it("takes a word back before the next wait for it", () => {
  const touched = memoryOperations([wait(64), wait(128), wait(64), wait(192)]).flatMap(({ kind, address }) =>
    address.space === "word" ? [`${kind} ${address.index}`] : [],
  );
  const [first, second] = ["wait 64, wait 128, write 64, write 128", "wait 64, wait 192, write 64, write 192"];
  expect(touched.join(", ")).toBe(`${first}, ${second}`);
});

it("ends a batch before it is longer than a call may be", () => {
  const pieces = joined(list(...Array.from({ length: 100 }, (_, i) => [0, take(4 * i)] as const)));
  expect(shape(pieces).map(([, , count]) => count)).toEqual([31, 31, 31, 7]);
});

describe("a kernel over links", () => {
  it("takes in the signals and waits right before and after it", () => {
    const pieces = joined(list([2, raise(4)], [2, take(8)], [2, linkWork], [2, raise(12)], [2, take(16)], [2, call]));
    expect(shape(pieces)).toEqual([
      [2, 2, "2 kernel 2"],
      [5, 2, "call"],
    ]);
    expect(pieces[0]?.work).toMatchObject({
      operations: { before: [signal(4), wait(8)], after: [signal(12), wait(16)] },
    });
  });

  it("leaves what is not in its order to memory operations: a signal after a wait", () => {
    const before = list([2, take(4)], [2, raise(8)], [2, take(12)], [2, linkWork]);
    expect(shape(joined(before))).toEqual([
      [0, 2, 1],
      [3, 2, "2 kernel 0"],
    ]);
    const behind = list([2, linkWork], [2, take(4)], [2, raise(8)], [2, raise(12)]);
    expect(shape(joined(behind))).toEqual([
      [0, 2, "0 kernel 1"],
      [2, 2, 2],
    ]);
  });

  it("gives what stands between two of them to the first", () => {
    const pieces = joined(list([2, linkWork], [2, raise(4)], [2, take(8)], [2, raise(12)], [2, linkWork]));
    expect(shape(pieces)).toEqual([
      [0, 2, "0 kernel 2"],
      [4, 2, "1 kernel 0"],
    ]);
  });

  it("takes in nothing of another stream, and nothing across its work", () => {
    const pieces = list([1, raise(4)], [2, linkWork], [1, call], [2, raise(8)]);
    expect(joined(pieces)).toEqual(pieces);
  });

  describe("waits outside where such kernels could fill half of the GPU", () => {
    const onStreams = (count: number, blocks: number): readonly ListedWork[] =>
      list(
        ...Array.from({ length: count }, (_, stream) => [
          [stream, take(4)] as const,
          [stream, linkWorkOf(blocks)] as const,
        ]).flat(),
      );

    it.each([
      [8, 8],
      [1, 64],
      [66, 1],
    ])("%i streams with kernels of %i blocks do not", (count, blocks) => {
      expect(joined(onStreams(count, blocks))).toHaveLength(count);
    });

    it.each([
      [9, 8],
      [2, 64],
      [67, 1],
    ])("%i streams with kernels of %i blocks do", (count, blocks) => {
      const pieces = onStreams(count, blocks);
      expect(joined(pieces)).toEqual(pieces);
    });

    it("kernels of one stream do not add up", () => {
      const pieces = list([1, take(4)], [1, linkWorkOf(64)], [1, take(8)], [1, linkWorkOf(64)]);
      expect(shape(joined(pieces)).map(([, , count]) => count)).toEqual(["1 kernel 1", "0 kernel 0"]);
    });
  });
});
