/** Labels of slices where they do not fit. */
import { expect, it } from "vitest";
import { fittedLabel } from "../../src/report/view/slice-label.ts";

it("cuts the name before the iteration", () => {
  const labels = [14, 13, 11, 6, 3, 1].map((room) => fittedLabel("Allgather", "12", room));
  expect(labels).toEqual(["Allgather · 12", "Allgather 12", "Allgath… 12", "Al… 12", "12", "…"]);
  expect([9, 8].map((room) => fittedLabel("Allgather", "", room))).toEqual(["Allgather", "Allgath…"]);
});
