/** The report page of an explained run. */
import { writeOutput } from "../terminal/output-file.ts";
import type { ExplainResult } from "../explain/explain-file.ts";

/** Throws `file-unwritable`. */
export async function writeExplainReport(
  file: string,
  { file: title, profile, explanation }: ExplainResult,
): Promise<void> {
  const { explainReport } = await import("../../report/build/explain-report.ts");
  const { reportPage } = await import("./report-page.ts");
  const data = explainReport({ title, machine: profile?.machine ?? null, explanation });
  await writeOutput("--report", file, await reportPage(data));
}
