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
  /** The value of `numberOfStreams`; 4 if not given. */
  readonly numberOfStreams?: number;
  /** Who copies in one-sided point-to-point; "get" (the receiver) if not given. */
  readonly p2pProtocol?: (typeof protocols)[number];
}

export interface ResolvedRecordOptions {
  readonly rank: number;
  readonly sizes: ReadonlyMap<string, number>;
  readonly scalars: ReadonlyMap<string, number>;
  readonly numberOfStreams: number;
  readonly p2pProtocol: (typeof protocols)[number];
}

/** Throws `bad-argument` and `bad-extent`. */
export function resolveRecordOptions(options: RecordOptions): ResolvedRecordOptions {
  const { rank, numberOfStreams = 4, p2pProtocol = "get" } = options;
  requireWholeNumber("record(program, { rank })", rank, 0);
  requireWholeNumber("record(program, { numberOfStreams })", numberOfStreams, 1);
  if (!isOneOf(protocols, p2pProtocol)) {
    fail({
      code: "bad-argument",
      message: "a point-to-point protocol does not exist",
      place: { kind: "call", text: "record(program, { p2pProtocol })" },
      found: String(p2pProtocol),
      expected: protocols.join(" or "),
      help: "use one of these names",
    });
  }
  const sizes = toMap(options.sizes);
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
  const scalars = toMap(options.scalars);
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
  return { rank, sizes, scalars, numberOfStreams, p2pProtocol };
}

function toMap(numbers: NamedNumbers | undefined): ReadonlyMap<string, number> {
  if (numbers === undefined) return new Map();
  return isMap(numbers) ? numbers : new Map(Object.entries(numbers));
}

function isMap(numbers: NamedNumbers): numbers is ReadonlyMap<string, number> {
  return numbers instanceof Map;
}
