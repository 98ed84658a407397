/** One command's execution as seen by a back end's clock. Times are milliseconds from the start of the run. */
export interface TraceEvent {
  readonly rank: number;
  readonly stream: number;
  /** Index in the rank's command list. */
  readonly command: number;
  readonly start: number;
  /** Of a transfer: when its data had moved, where the back end knows; its stream may go on later. */
  readonly end: number;
  /**
   * Of a waitEvent or waitSignal, where the back end knows: when its stream came to it, `start` being when it could go on. Not
   * given: when the command before had ended.
   */
  readonly reached?: number;
}

/** Where the zero of a rank's times lies on a clock that the ranks share: each GPU has a clock of its own. */
export interface TraceOrigin {
  readonly rank: number;
  /** Milliseconds. */
  readonly at: number;
  /** `at` is off by at most so many milliseconds. */
  readonly error: number;
}
