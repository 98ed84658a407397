/** A campaign: more inputs than CI has time for, run by hand. */
export interface Campaign {
  /** What is done `count` times, and what must hold. */
  readonly what: string;
  /** Used unless the command line gives another. */
  readonly count: number;
  readonly run: (count: number) => Promise<Outcome>;
}

export interface Outcome {
  readonly ok: boolean;
  /** Figures, for the table of results. */
  readonly text: string;
}
