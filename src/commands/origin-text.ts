/** Where a command came from, as text: the statement with the values of the loops around it. */
import type { Origin } from "./command.ts";

export function originText({ statement, iteration }: Origin): string {
  return iteration.length === 0 ? statement : `${statement} (iteration ${iteration.join(", ")})`;
}
