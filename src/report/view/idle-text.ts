/** What is exposed on a rank at a moment. */
import type { TimelineData } from "../data/timeline-data.ts";
import { durationText } from "./describe.ts";

/** Of the first run that has something exposed then, with its name if there are several; null if none has. */
export function idleText({ runs, unit }: TimelineData, rank: number, time: number): string | null {
  for (const { idle, name } of runs) {
    const span = idle.find((each) => each.rank === rank && each.start <= time && time <= each.end);
    if (span === undefined) continue;
    const run = runs.length > 1 ? `, ${name}` : "";
    return `exposed${run}: ${span.label}, ${durationText(unit, span.end - span.start)}`;
  }
  return null;
}
