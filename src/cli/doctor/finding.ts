/**
 * What `braid doctor` reports about one thing a machine may have. For a missing thing it says what Braid would gain and
 * where it looked, so that the reader can decide whether to install it.
 */
export interface Finding {
  readonly name: string;
  readonly status: "ok" | "missing" | "too-old";
  /** What was found: a version, a path, a size. */
  readonly detail: string;
  /** What Braid does with it, or would do. */
  readonly gives: string;
  /** Where it was looked for; empty if that is obvious. */
  readonly lookedIn: readonly string[];
}
