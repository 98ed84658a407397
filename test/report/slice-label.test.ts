/** Labels of slices where they do not fit. */
import { expect, it } from "vitest";
import { fittedLabel } from "../../src/report/view/describe.ts";

const labels = (name: string, iteration: string, rooms: readonly number[]): readonly string[] =>
  rooms.map((room) => fittedLabel(name, iteration, room));

it("are abbreviated before they are left out, and never cut", () => {
  expect(labels("Allgather", "12", [14, 13, 11, 6, 3, 1])).toEqual([
    "Allgather · 12",
    "Allgather 12",
    "AG 12",
    "AG 12",
    "12",
    "",
  ]);
  expect(labels("Allgather", "", [9, 8, 1])).toEqual(["Allgather", "AG", ""]);
  expect(labels("Allreduce sum", "0", [10, 3])).toEqual(["AR 0", "0"]);
});

it("keep the word that tells kernels, events and copies apart", () => {
  expect(labels("binary add", "", [9])).toEqual(["add"]);
  expect(labels("reduction sum over [1]", "0", [6])).toEqual(["sum 0"]);
  expect(labels("iota 0 by 1", "", [6])).toEqual(["iota"]);
  expect(labels("wait for e1", "", [5])).toEqual(["e1"]);
  expect(labels("send to 1, recv from 3", "", [9])).toEqual(["→1 ←3"]);
  expect(labels("from rank 3", "2", [5])).toEqual(["←3 2"]);
});
