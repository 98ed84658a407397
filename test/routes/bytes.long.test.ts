/**
 * No program receives more than is committed. After a change that lowers figures, this writes the lower ones; it never
 * raises one:
 *
 *   WRITE_BYTES=1 npx vitest run test/routes/bytes.long.test.ts
 */
import process from "node:process";
import { expect, it } from "vitest";
import { commitLower, committedBytes, randomMoves, risen } from "./committed-bytes.ts";
import { bytesOfPrograms, programSources } from "./program-bytes.ts";
import { randomMove } from "./random-move.ts";
import { measured, type Move } from "./reshard-program.ts";
import { shardyReshards } from "./shardy-reshards.ts";

function bytesOfMoves(moves: readonly (Move & { readonly name: string })[]): ReadonlyMap<string, number> {
  return new Map(moves.map((move) => [move.name, measured(move, "nccl").bytes]));
}

it.each([
  { file: "shardy-bytes" as const, count: async () => bytesOfMoves(shardyReshards) },
  {
    file: "random-bytes" as const,
    count: async () => bytesOfMoves(Array.from({ length: randomMoves }, (_, seed) => randomMove(seed))),
  },
  { file: "program-bytes" as const, count: async () => bytesOfPrograms(await programSources()) },
])("$file", async ({ file, count }) => {
  const bytes = await count();
  // oxlint-disable-next-line node/no-process-env -- set by whoever writes the figures
  if (process.env["WRITE_BYTES"] === "1") commitLower(file, bytes);
  const committed = committedBytes(file);
  expect(risen(bytes, committed)).toEqual([]);
  expect([...bytes.keys()]).toEqual([...committed.keys()]);
});
