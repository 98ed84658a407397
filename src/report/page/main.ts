/** The script of a report page: decodes the data that the page carries, and shows it. */
import { decodeColumns } from "../../support/columns.ts";
import type { ReportData } from "../data/report-data.ts";
import { mountReport } from "./mount-report.ts";

const [json, columns] = await Promise.all(["br-json", "br-columns"].map(inflated));
const data = decodeColumns<ReportData>({ json: new TextDecoder().decode(json), bytes: columns ?? new Uint8Array() });
mountReport(document.body, data);
document.documentElement.dataset["ready"] = "true";

/** The bytes of an element whose text is deflated base64. */
async function inflated(id: string): Promise<Uint8Array> {
  const text = atob(document.getElementById(id)?.textContent ?? "");
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
