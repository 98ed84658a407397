/**
 * A fixture is a program and what a pass makes of it: an entry of `test/fixtures/<pass>/fixtures.ts`, and beside it
 * `<name>.txt`, which holds the program before and after the pass, or the diagnostic. The folder `checked` has the
 * diagnostics of the checks before the first rewrite. `npx vitest run -u` writes the texts anew.
 */
import { Fusion, type LowerOptions } from "@braid-compiler/braid";

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

/** By the names of their texts. */
export type Fixtures = Readonly<Record<string, Fixture>>;

/** With `build` filling an empty Fusion. */
export function fixture({
  build,
  ...others
}: Omit<Fixture, "build"> & { readonly build: (f: Fusion) => void }): Fixture {
  return {
    ...others,
    build: () => {
      const f = new Fusion();
      build(f);
      return f;
    },
  };
}
