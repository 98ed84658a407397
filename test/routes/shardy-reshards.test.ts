/** What Shardy's reshardings move, beside the bytes that the busiest device lacks, on up to 64 devices. */
import { describe, expect, it } from "vitest";
import { checked } from "./check-reshard.ts";
import { committedBytes } from "./committed-bytes.ts";
import { expectRatios, type Measured } from "./expect-ratios.ts";
import { devicesOf, measured } from "./reshard-program.ts";
import { isPlain, leftOut, quickDevices, shardyReshards } from "./shardy-reshards.ts";

const atMost = { mean: 1, worst: 1, above: 0, needless: 0 };
/** Of those on one mesh without parts of its dimensions. */
const atMostPlain = { mean: 1, worst: 1, above: 0, needless: 0 };

describe("Shardy's reshardings", () => {
  const moves = shardyReshards.filter((move) => devicesOf(move) <= quickDevices.bytes);
  const committed = committedBytes("shardy-bytes");
  const rows: Measured[] = [];

  it.each(moves)("$name", async (move) => {
    const isQuick = devicesOf(move) <= quickDevices.values;
    const figure = isQuick ? await checked(move, "nccl") : measured(move, "nccl");
    rows.push({ move, ...figure });
    expect(figure.bytes).toBeLessThanOrEqual(committed.get(move.name) ?? 0);
  });

  it("move little more than devices lack", () => {
    expect(rows).toHaveLength(moves.length);
    expectRatios(rows, atMost);
  });

  it("on one mesh move little more than devices lack", () => {
    const plain = new Set(moves.filter(isPlain));
    const plainRows = rows.filter(({ move }) => plain.has(move));
    expect(plainRows).toHaveLength(plain.size);
    expectRatios(plainRows, atMostPlain);
  });

  it("are all of the file, but those that Braid cannot say", () => {
    const names = [...shardyReshards.map(({ name }) => name), ...Object.keys(leftOut)];
    expect(new Set(names).size).toBe(98);
    expect(names).toHaveLength(98);
  });
});
