/** Examples and fixtures move no more bytes than is committed: those that are lowered in no time. */
import { expect, it } from "vitest";
import { committedBytes, risen } from "./committed-bytes.ts";
import { bytesOfPrograms, isSlow, programSources } from "./program-bytes.ts";

it("no program moves more than is committed", async () => {
  const bytes = await bytesOfPrograms((await programSources()).filter((source) => !isSlow(source)));
  const committed = committedBytes("program-bytes");
  expect(risen(bytes, committed)).toEqual([]);
  expect([...bytes.keys()].filter((name) => !committed.has(name))).toEqual([]);
});
