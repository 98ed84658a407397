/**
 * The output streams of the command line: results to `out`, everything else to `err`. Colours only on a terminal,
 * subject to NO_COLOR and FORCE_COLOR (picocolors).
 */
import { stderr, stdout } from "node:process";
import pc from "picocolors";

export type Colors = ReturnType<typeof pc.createColors>;

export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly outColors: Colors;
  readonly errColors: Colors;
  /** Columns of `out`; 100 if it is not a terminal. */
  readonly columns: number;
  /** Whether a person may be watching `err`: progress is shown only then. */
  readonly interactive: boolean;
}

/** The process's own streams. */
export function processTerminal(): Terminal {
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    // isTTY is absent, not false, without a terminal, and createColors then makes its own guess.
    outColors: pc.createColors(Boolean(stdout.isTTY) && pc.isColorSupported),
    errColors: pc.createColors(Boolean(stderr.isTTY) && pc.isColorSupported),
    columns: stdout.isTTY ? stdout.columns : 100,
    interactive: stderr.isTTY,
  };
}
