import { expect, it } from "vitest";
import type { RegionRow } from "../../src/explain/region-rows.ts";
import { regionTable } from "../../src/explain/region-table.ts";

const row: RegionRow = {
  region: 0,
  statement: "for i5 in range(4)",
  isLoop: true,
  chunks: 4,
  streams: 2,
  gemms: 1.5,
  load: { link: 0.25, kernels: 1.5 },
  sent: 0,
  received: 2048,
  transferred: 0,
  communication: 0.25,
  hidden: 0.5,
  exposed: 0.125,
};

it("has a column for each cell, and for bytes only where a region has them", () => {
  const moved = regionTable([row, { ...row, received: 0 }]);
  expect(moved.columns).toEqual(["chunks", "streams", "GEMMs", "received", "communication", "hidden", "exposed"]);
  expect(moved.cellsOf(row)).toHaveLength(moved.columns.length);
  const still = regionTable([{ ...row, received: 0 }]);
  expect(still.columns).not.toContain("received");
  expect(still.cellsOf({ ...row, received: 0 })).toHaveLength(still.columns.length);
});

it("says no loop and leaves hidden empty where there is none", () => {
  const alone = { ...row, isLoop: false, hidden: null };
  const { columns, cellsOf } = regionTable([alone]);
  const cells = Object.fromEntries(columns.map((column, i) => [column, cellsOf(alone)[i]]));
  expect(cells).toMatchObject({ chunks: "no loop", hidden: "" });
});
