/** What the colours and lines of timelines stand for. */
import type { TimelineData } from "../data/timeline-data.ts";
import { sliceKinds } from "../view/coverage.ts";
import { kindLabels } from "../view/describe.ts";
import { make } from "./dom.ts";
import { swatch } from "./tip.ts";

/** Only what one of them shows. */
export function legend(timelines: readonly TimelineData[]): HTMLElement {
  const used = new Set(timelines.flatMap(({ works }) => works.map(({ kind }) => kind)));
  const runs = timelines.flatMap((timeline) => timeline.runs);
  const item = (kind: string, text: string): HTMLElement => make("li", {}, swatch(kind), text);
  return make(
    "ul",
    { class: "br-legend", "aria-label": "Colours" },
    ...sliceKinds.filter((kind) => used.has(kind)).map((kind) => item(kind, kindLabels[kind])),
    ...(runs.some(({ critical }) => critical.length > 0) ? [item("critical", "critical path")] : []),
    ...(runs.some(({ idle }) => idle.length > 0) ? [item("idle", "exposed")] : []),
  );
}
