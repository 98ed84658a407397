/** What Shardy's reshardings move, beside the bytes that the busiest device lacks. */
import { describe, expect, it } from "vitest";
import { checked, devicesOf, type Figure, geometricMean, measured, ratioOf } from "./reshard-program.ts";
import { fewDevices, isPlain, leftOut, shardyReshards } from "./shardy-reshards.ts";

/** Ratios of bytes moved to bytes lacking, over the cases where any are; `needless`: cases of bytes where none are. */
const atMost = { mean: 1.975, worst: 18.667, above: 40, needless: 2 };
/** Over those on one mesh without parts of its dimensions. */
const atMostPlain = { mean: 1.618, worst: 10, above: 21 };
/** A ratio above this is worth a look. */
const much = 1.5;

describe("Shardy's reshardings", () => {
  const figures = new Map<string, Figure>();

  // The values of the others are compared in the long suite.
  it.each(shardyReshards)("$name", async (move) => {
    figures.set(move.name, devicesOf(move) <= fewDevices ? await checked(move, "nccl") : measured(move, "nccl"));
  });

  it("are all of the file, but those that Braid cannot say", () => {
    const names = [...shardyReshards.map(({ name }) => name), ...Object.keys(leftOut)];
    expect(new Set(names).size).toBe(98);
    expect(names).toHaveLength(98);
  });

  it("move little more than devices lack", () => {
    const rows = shardyReshards.flatMap((move) => {
      const figure = figures.get(move.name);
      return figure === undefined ? [] : [{ ...figure, name: move.name, plain: isPlain(move), ratio: ratioOf(figure) }];
    });
    expect(rows).toHaveLength(shardyReshards.length);
    const needless = rows.filter(({ ratio }) => ratio === Infinity);
    const finite = rows.filter(({ lacks }) => lacks > 0);
    const plain = finite.filter((row) => row.plain);
    const above = finite.filter(({ ratio }) => ratio > much).sort((a, b) => b.ratio - a.ratio);
    const ratiosOf = (some: typeof rows): readonly number[] => some.map(({ ratio }) => ratio);
    const table = [...needless, ...above]
      .map(({ ratio, bytes, lacks, name }) => `${ratio.toFixed(2)}  ${bytes} / ${lacks}  ${name}`)
      .join("\n");
    expect(needless.length, table).toBeLessThanOrEqual(atMost.needless);
    expect(above.length, table).toBeLessThanOrEqual(atMost.above);
    expect(Math.max(...ratiosOf(finite)), table).toBeLessThanOrEqual(atMost.worst);
    expect(geometricMean(ratiosOf(finite)), table).toBeLessThanOrEqual(atMost.mean);
    expect(above.filter((row) => row.plain).length, table).toBeLessThanOrEqual(atMostPlain.above);
    expect(Math.max(...ratiosOf(plain)), table).toBeLessThanOrEqual(atMostPlain.worst);
    expect(geometricMean(ratiosOf(plain)), table).toBeLessThanOrEqual(atMostPlain.mean);
    // No count is below what is lacking: it would be wrong.
    expect(finite.filter(({ ratio }) => ratio < 1 - 1e-9)).toEqual([]);
  });
});
