/** Predictions with more and fewer chunks, where a parameter of the program seems to be their number. */
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { ChunkChange, ExplainFlags, ExplainResult } from "./explain-file.ts";

/** A parameter counts chunks if a loop of the program has as many. Each prediction builds the program again. */
export async function chunkChanges(
  { params, explanation: { run } }: ExplainResult,
  flags: ExplainFlags,
  explained: (flags: ExplainFlags) => Promise<ExplainResult>,
): Promise<readonly ChunkChange[]> {
  const counts = new Set(run.regions.flatMap(({ isLoop, chunks }) => (isLoop ? [chunks] : [])));
  const changes = Object.entries(params).flatMap(([name, value]) =>
    typeof value === "number" && counts.has(value)
      ? [value / 2, 2 * value].flatMap((other) => (Number.isInteger(other) ? [{ name, value: other }] : []))
      : [],
  );
  const found: ChunkChange[] = [];
  for (const change of changes) {
    const set = new Map(flags.set).set(change.name, change.value);
    found.push({ ...change, ...(await timeOrRefusal(() => explained({ ...flags, set, whatIf: new Map() }))) });
  }
  return found;
}

async function timeOrRefusal(
  explained: () => Promise<ExplainResult>,
): Promise<Pick<ChunkChange, "milliseconds" | "refused">> {
  try {
    const { explanation } = await explained();
    return { milliseconds: explanation.run.milliseconds, refused: null };
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return { milliseconds: null, refused: error.diagnostics[0]?.message ?? error.message };
  }
}
