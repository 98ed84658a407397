/** What the rows of fixes about machines share. */
import { type Diagnostic, type DiagnosticCode, DiagnosticError } from "@braid-compiler/braid";

export interface MachineRow {
  readonly code: DiagnosticCode;
  readonly help: RegExp;
  /** Throws the diagnostic; with the text of its fix, done as that says, nothing. */
  readonly program: (fix: string | null) => unknown;
}

export const row = (code: DiagnosticCode, help: RegExp, program: MachineRow["program"]): MachineRow => ({
  code,
  help,
  program,
});

export function throwAll(findings: readonly Diagnostic[]): void {
  if (findings.length > 0) throw new DiagnosticError(findings);
}

/** The first match of the pattern in a fix, which must have one. */
export function partOf(fix: string, pattern: RegExp): string {
  const part = pattern.exec(fix)?.[0];
  if (part === undefined) throw new Error(`${fix} has no ${String(pattern)}`);
  return part;
}
