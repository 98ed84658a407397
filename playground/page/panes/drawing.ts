/** What draws timelines, in a file that the page loads when the first is shown. */
export { legend } from "../../../src/report/page/mount-report.ts";
export { mountTimeline } from "../../../src/report/page/mount-timeline.ts";
