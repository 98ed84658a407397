/** Random reshardings: the oracle's values, a clean verifier, and never more bytes than committed or fewer than lacking. */
import { expect, it } from "vitest";
import { runs } from "../support/suite.ts";
import { checked } from "./check-reshard.ts";
import { committedBytes, randomMoves } from "./committed-bytes.ts";
import { randomMove } from "./random-move.ts";

const quick = 24;
const first = runs({ quick: 0, long: quick });
const count = runs({ quick, long: randomMoves - quick });
const committed = committedBytes("random-bytes");
const moves = Array.from({ length: count }, (_, i) => randomMove(first + i));

it.each(moves)("$name", async (move) => {
  const most = committed.get(move.name);
  if (most === undefined) throw new Error("not committed: the draws changed");
  const byNccl = await checked(move, "nccl");
  expect(byNccl.bytes).toBeLessThanOrEqual(most);
  expect(byNccl.bytes).toBeGreaterThanOrEqual(byNccl.lacks);
  const inMemory = await checked(move, "cuda");
  expect(inMemory.bytes).toBeLessThanOrEqual(most);
});
