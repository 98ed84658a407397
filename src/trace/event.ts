/** One command's execution by a back end's clock. Times are milliseconds from the start of the run. */
export interface TraceEvent {
  readonly rank: number;
  readonly stream: number;
  /** Index in the rank's command list. */
  readonly command: number;
  readonly start: number;
  /** For a transfer: when its data had moved, if the back end knows; its stream may continue later. */
  readonly end: number;
  /**
   * For a waitEvent or waitSignal, if the back end knows: when its stream reached it; `start` is when it could
   * continue. If absent: when the command before ended.
   */
  readonly reached?: number;
}

/** The zero of a rank's times on a clock that the ranks share: each GPU has its own clock. */
export interface TraceOrigin {
  readonly rank: number;
  /** Milliseconds. */
  readonly at: number;
  /** The largest error of `at`, in milliseconds. */
  readonly error: number;
}
