/** Checks that hold for any text, and the dumps from which fuzzing starts. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { rankContainers } from "../../../src/host/parse/rank-containers.ts";
import { DiagnosticError, print } from "@braid-compiler/braid";
import { parseContainers, type ParsedContainer } from "@braid-compiler/braid/internals";

const folder = path.resolve(import.meta.dirname, "../../fixtures/dumps");

/** All dumps of the fixtures. The largest has 3.4 KB. */
export const startingDumps: readonly string[] = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".hir") || file.endsWith("launcher-log.txt"))
  .toSorted()
  .map((file) => readFileSync(path.join(folder, file), "utf8"));

export interface Outcome {
  /** Null if the text is rejected. */
  readonly containers: readonly ParsedContainer[] | null;
  /** The code of the diagnostic. */
  readonly code: string | null;
  readonly milliseconds: number;
}

function timed(text: string): Outcome {
  const start = performance.now();
  try {
    const containers = parseContainers(text);
    rankContainers(containers, { file: "dump", devices: null, container: 0 });
    return { containers, code: null, milliseconds: performance.now() - start };
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return { containers: null, code: error.diagnostics[0]?.code ?? "none", milliseconds: performance.now() - start };
  }
}

/**
 * Parses a text and rethrows anything but a DiagnosticError. A time over the limit is measured again, because other
 * load on the machine counts too.
 */
export function outcomeOf(text: string, limit: number): Outcome {
  let outcome = timed(text);
  for (let again = 0; again < 4 && outcome.milliseconds > limit; again++) {
    const next = timed(text);
    if (next.milliseconds < outcome.milliseconds) outcome = next;
  }
  return outcome;
}

/** Whether the parsed program prints, and parses back from its own dump. */
export function survives({ program }: ParsedContainer): boolean {
  const text = print(program);
  const [again] = parseContainers(text);
  return again !== undefined && print(again.program) === text;
}
