/**
 * A fixture is a program and what a pass makes of it: `test/fixtures/<pass>/<name>.ts` beside `<name>.txt`, which
 * holds the program before and after the pass, or the diagnostic. The folder `checked` has the diagnostics of the
 * checks before the first rewrite. `npx vitest run -u` writes the texts anew.
 */
import type { Fusion, LowerOptions } from "braid";

export interface Fixture {
  /** What the fixture shows, in one line. */
  readonly shows: string;
  readonly options?: LowerOptions;
  /**
   * All passes that change the Fusion before it is segmented; the fixture's own, if it changes anything, if not given.
   */
  readonly rewrittenBy?: readonly string[];
  readonly build: () => Fusion;
}

export function fixture(value: Fixture): Fixture {
  return value;
}
