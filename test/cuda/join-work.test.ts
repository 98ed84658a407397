/** Memory operations of neighbours become one call of the driver; everything else keeps its place in the list. */
import { expect, it } from "vitest";
import type { Work } from "../../src/backends/cuda/run/action-context.ts";
import { joinWork, type StreamWork } from "../../src/backends/cuda/run/join-work.ts";
import { signalOperations, waitOperations } from "../../src/backends/cuda/run/memory-operations.ts";
import type { CommandStreamId } from "../../src/commands/command.ts";
import { makeId } from "../../src/support/ids.ts";

const call: Work = { kind: "call", action: () => {} };
const raise = (slot: number): Work => ({ kind: "memory", operations: signalOperations(slot) });
const take = (slot: number): Work => ({ kind: "memory", operations: waitOperations(slot) });

function list(...pieces: readonly (readonly [stream: number, work: Work])[]): readonly StreamWork[] {
  return pieces.map(([stream, work], index) => ({ stream: makeId<CommandStreamId>(stream), index, work }));
}

/** Per piece: its first command, its stream, and how many operations it has. */
function shape(pieces: readonly StreamWork[]): readonly (readonly [number, number, number | "call"])[] {
  return pieces.map(({ index, stream, work }) => [
    index,
    stream,
    work.kind === "memory" ? work.operations.length : "call",
  ]);
}

it("joins a signal with the wait that follows it on its stream, in order", () => {
  const joined = joinWork(list([1, raise(64)], [1, take(128)], [1, call], [1, take(192)], [1, raise(256)]));
  expect(shape(joined)).toEqual([
    [0, 1, 3],
    [2, 1, "call"],
    [3, 1, 3],
  ]);
  expect(joined[0]?.work).toEqual({ kind: "memory", operations: [...signalOperations(64), ...waitOperations(128)] });
});

it("moves nothing across the work of another stream", () => {
  const pieces = list([1, raise(64)], [2, raise(128)], [1, take(192)], [2, call], [1, raise(256)]);
  expect(joinWork(pieces)).toEqual(pieces);
});

it("ends a batch before it is longer than a call may be", () => {
  const joined = joinWork(list(...Array.from({ length: 100 }, () => [0, take(64)] as const)));
  expect(shape(joined).map(([, , count]) => count)).toEqual([64, 64, 64, 8]);
});
