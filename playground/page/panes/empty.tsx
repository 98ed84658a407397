/** In place of what only a program that compiles, or verifies, has. */
import type { JSX } from "preact";
import type { Results } from "../store.ts";

export function Empty({ results: { refused, failed, verdict } }: { readonly results: Results }): JSX.Element {
  const hasFindings = verdict !== null && !verdict.ok;
  return (
    <p class="empty">
      {refused.length > 0 || failed !== null
        ? "There is nothing to show until the program compiles. The message stands beside the line that it is about."
        : hasFindings
          ? "There is nothing to show until the program verifies. Host program says what is wrong."
          : "Compiling …"}
    </p>
  );
}
