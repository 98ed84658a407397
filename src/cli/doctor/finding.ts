/**
 * What `braid doctor` says about one thing a machine may have. A missing thing says what it would give and where it
 * was looked for, so that the reader knows whether to mend it.
 */
export interface Finding {
  readonly name: string;
  readonly status: "ok" | "missing" | "too-old";
  /** What was found: a version, a path, a size. */
  readonly detail: string;
  /** What Braid does with it, or would do. */
  readonly gives: string;
  /** Where it was looked for; empty where that is plain. */
  readonly lookedIn: readonly string[];
}
