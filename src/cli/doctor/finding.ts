/**
 * One row of `braid doctor`'s report. For a missing thing it tells what Braid would gain and where it looked, so that
 * the reader can decide whether to install it.
 */
export interface DoctorFinding {
  readonly name: string;
  readonly status: "ok" | "missing" | "too-old";
  /** A version, a path or a size. */
  readonly detail: string;
  /** What Braid uses it for, or would use it for. */
  readonly gives: string;
  /** The places that were searched; empty if obvious. */
  readonly lookedIn: readonly string[];
}
