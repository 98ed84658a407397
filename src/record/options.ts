/** What a recording needs beside the host program, checked and with the defaults filled in. */
import { fail } from "../diagnostics/diagnostic.ts";
import { requireWholeNumber } from "../diagnostics/whole-number.ts";
import { isOneOf } from "../support/is-one-of.ts";

/** Numbers by name: a Map or an object. */
export type NamedNumbers = ReadonlyMap<string, number> | Readonly<Record<string, number>>;

const protocols = ["get", "put"] as const;

export interface RecordOptions {
  /** The device whose commands are recorded. */
  readonly rank: number;
  /** Sizes of symbolic extents by printed name (`i0`). A sharded axis takes its size from the mesh if none is given. */
  readonly sizes?: NamedNumbers;
  /** Values of other scalars that the program names. */
  readonly scalars?: NamedNumbers;
  /** Worker streams that a Stream loop alternates over (the program's `numberOfStreams`); 4 if not given. */
  readonly streams?: number;
  /** Who copies in one-sided point-to-point; "get" (the receiver) if not given. */
  readonly protocol?: (typeof protocols)[number];
}

export interface ResolvedRecordOptions {
  readonly rank: number;
  readonly sizes: ReadonlyMap<string, number>;
  readonly scalars: ReadonlyMap<string, number>;
  readonly streams: number;
  readonly protocol: (typeof protocols)[number];
}

/** Throws `bad-argument` and `bad-extent`. */
export function resolveRecordOptions(options: RecordOptions): ResolvedRecordOptions {
  const { rank, streams = 4, protocol = "get" } = options;
  requireWholeNumber("record(program, { rank })", rank, 0);
  requireWholeNumber("record(program, { streams })", streams, 1);
  if (!isOneOf(protocols, protocol)) {
    fail({
      code: "bad-argument",
      message: "a point-to-point protocol does not exist",
      place: { kind: "call", text: "record(program, { protocol })" },
      found: String(protocol),
      expected: protocols.join(" or "),
      help: "use one of these names",
    });
  }
  const sizes = numbersByName(options.sizes);
  for (const [name, size] of sizes) {
    if (Number.isSafeInteger(size) && size >= 1) continue;
    fail({
      code: "bad-extent",
      message: `the size of ${name} is not a whole number of at least 1`,
      place: { kind: "call", text: "record(program, { sizes })" },
      found: String(size),
      expected: "a whole number of at least 1",
      help: `give ${name} the number of elements along its axis`,
    });
  }
  const scalars = numbersByName(options.scalars);
  for (const [name, value] of scalars) {
    if (Number.isSafeInteger(value)) continue;
    fail({
      code: "bad-argument",
      message: `scalar ${name} is not a whole number`,
      place: { kind: "call", text: "record(program, { scalars })" },
      found: String(value),
      expected: "a whole number (0 and 1 for false and true)",
      help: `give ${name} a whole number`,
    });
  }
  return { rank, sizes, scalars, streams, protocol };
}

export function numbersByName(numbers: NamedNumbers | undefined): ReadonlyMap<string, number> {
  if (numbers === undefined) return new Map();
  return isMap(numbers) ? numbers : new Map(Object.entries(numbers));
}

function isMap(numbers: NamedNumbers): numbers is ReadonlyMap<string, number> {
  return numbers instanceof Map;
}
