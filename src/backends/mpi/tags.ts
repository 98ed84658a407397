/** The tags of messages that are not of a channel. Channels have those from `firstTag` on. */
export const tags = {
  /** The number of bytes that follow with `data`, or `givenUp` if a text follows with `reason`. */
  length: 0,
  data: 1,
  reason: 2,
  /** One byte at the end of each run: whether the process ran all its commands. */
  runEnd: 3,
} as const;

export const firstTag = 4;

export const runEnds = { done: 0, failed: 1 } as const;

export const givenUp = -1;

/** Bytes of a `reason`: shorter ones are filled up with zeros. */
export const reasonBytes = 4096;
