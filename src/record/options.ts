/** What a recording needs besides the host program, with every value decided. Defaults and checks are in src/compile. */
export interface RecordOptions {
  /** The device whose commands are recorded. */
  readonly rank: number;
  /** Sizes of symbolic extents by printed name (`i0`). A sharded axis takes its size from the mesh if none is given. */
  readonly sizes: ReadonlyMap<string, number>;
  /** Values of the other scalars that the program names. */
  readonly scalars: ReadonlyMap<string, number>;
  /** The value of the program's `numberOfStreams`: the worker streams that a Stream loop alternates over. */
  readonly streams: number;
  /** Who copies in one-sided point-to-point: the receiver gets, the sender puts. */
  readonly protocol: "get" | "put";
}
