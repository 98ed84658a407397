/** One command's execution as seen by a back end's clock. Times are milliseconds from the start of the run. */
export interface TraceEvent {
  readonly rank: number;
  readonly stream: number;
  /** Index in the rank's command list. */
  readonly command: number;
  readonly start: number;
  readonly end: number;
}
