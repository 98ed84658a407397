/** A statement that a host program lacks, in words. */
export interface AddedLine {
  readonly ranks: readonly number[];
  readonly statement: string;
  /** The lines that it goes after, one for each different program of these ranks; empty if unknown. */
  readonly after: readonly number[];
}

/** `devices`: how many ranks there are; all of them need not be named. */
export function addedText({ ranks, statement, after }: AddedLine, devices: number): string {
  const where = after.length === 0 ? "" : ` after line${after.length === 1 ? "" : "s"} ${after.join(", ")}`;
  const who = ranks.length === devices ? "" : ` of rank${ranks.length === 1 ? "" : "s"} ${ranks.join(", ")}`;
  return `add \`${statement}\`${where}${who}`;
}
