/** What drawing needs of the data, made once. */
import type { TimelineData } from "../../data/timeline-data.ts";
import { createArrows } from "../../view/arrows.ts";
import { createCoverage } from "../../view/coverage.ts";

export function prepare(data: TimelineData) {
  return {
    data,
    end: data.runs.reduce((latest, { end }) => Math.max(latest, end), 0) * 1.01 || 1,
    coverages: data.runs.map(({ slices }) => createCoverage(slices, data.works)),
    arrowsOf: data.runs.map(({ slices }) => createArrows(slices)),
    peak: data.runs.reduce((most, { memory }) => memory.reduce((top, { peak }) => Math.max(top, peak), most), 0),
    critical: data.runs.map(({ critical }) => critical.toSorted()),
    causes: [...new Set(data.runs.flatMap(({ idle }) => idle.map(({ cause }) => cause)))],
  };
}
