/** The script of a report page: decodes the data that the page carries, and shows it. */
import { decodeColumns } from "../../support/columns.ts";
import type { ReportData } from "../data/report-data.ts";
import { mountReport } from "./mount-report.ts";

// Deflated base64.
const text = atob(document.getElementById("br-data")?.textContent ?? "");
const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
mountReport(document.body, decodeColumns<ReportData>(await new Response(stream).text()));
document.documentElement.dataset["ready"] = "true";
