/**
 * How dumps from different dates spell scalars, axes and tensors. A style never changes the meaning. Its name is the
 * month of the nvFuser dumps that it reproduces.
 */
export const dumpStyles = ["2025-04", "2025-05", "2025-10", "2026-01"] as const;
export type DumpStyle = (typeof dumpStyles)[number];

export interface IrSpelling {
  /** How ParallelType Stream prints in an axis: `iStreamIdx2{i0}`. */
  readonly stream: string;
  /** Printed names of named scalars whose dump spelling differs from the IR's. */
  readonly namedScalars: ReadonlyMap<string, string>;
}

const spelling2025Spring: IrSpelling = {
  stream: "StreamIdx",
  namedScalars: new Map([
    ["streamIdx", "StreamIdx"],
    ["rank", "deviceIdx.x"],
  ]),
};

export const irSpellings: { readonly [K in DumpStyle]: IrSpelling } = {
  "2025-04": spelling2025Spring,
  "2025-05": spelling2025Spring,
  "2025-10": { stream: "streamIdx", namedScalars: new Map() },
  "2026-01": { stream: "streamIdx", namedScalars: new Map() },
};

export const defaultDumpStyle: DumpStyle = "2025-10";
export const defaultSpelling: IrSpelling = irSpellings[defaultDumpStyle];
