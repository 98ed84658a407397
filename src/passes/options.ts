/**
 * The lowering options: one schema from which API checks, the command line, its help and the hash that ranks compare
 * are made. Adding an option: add a row here and its type in `LoweringOptions`.
 */
import { fail, type Place } from "../diagnostics/diagnostic.ts";
import type { CommunicatorBackend } from "../host/collectives.ts";

export interface LoweringOptions {
  /** Which idiom is lowered, and the backend printed on communications. */
  readonly backend: CommunicatorBackend;
  /** How a DID axis that becomes a Stream axis is lowered. */
  readonly p2p: "linear" | "rotated" | "broadcast";
  readonly protocol: "get" | "put";
  /** Stream axes become loops over streams; else they are axes as others, and all communication of an op comes before or after all of it. */
  readonly overlap: boolean;
  readonly interStreamSync: boolean;
  readonly insertReshardingAfter: boolean;
  /** Stream may stand on a contracted axis: a loop adds one chunk's product after the other to the output. */
  readonly accumulate: boolean;
  readonly deallocate: boolean;
  readonly shrink: boolean;
  /** Names of passes to leave out. */
  readonly disablePass: readonly string[];
}

type OptionRow =
  | {
      readonly type: "choice";
      readonly choices: readonly string[];
      readonly default: string;
      readonly flag: string;
      readonly help: string;
    }
  | { readonly type: "switch"; readonly default: boolean; readonly flag: string; readonly help: string }
  | { readonly type: "names"; readonly default: readonly string[]; readonly flag: string; readonly help: string };

/** A `switch` whose default is true has a `--no-...` flag. */
export const loweringOptionSchema = {
  backend: {
    type: "choice",
    choices: ["nccl", "cuda", "ucc"],
    default: "nccl",
    flag: "--backend",
    help: "communication idiom that is lowered",
  },
  p2p: {
    type: "choice",
    choices: ["linear", "rotated", "broadcast"],
    default: "rotated",
    flag: "--p2p",
    help: "how a DID axis that becomes a Stream axis is lowered: linear for nccl, rotated for nccl and cuda, broadcast for all",
  },
  protocol: {
    type: "choice",
    choices: ["get", "put"],
    default: "get",
    flag: "--protocol",
    help: "who copies in one-sided point-to-point: get the receiver, put the sender (cuda)",
  },
  overlap: {
    type: "switch",
    default: true,
    flag: "--no-overlap",
    help: "take Stream axes for axes as others: communication and computation one after the other",
  },
  interStreamSync: {
    type: "switch",
    default: false,
    flag: "--inter-stream-sync",
    help: "stream i+1 waits for the point-to-point communication of stream i, in the first round over the streams",
  },
  insertReshardingAfter: {
    type: "switch",
    default: false,
    flag: "--insert-resharding-after",
    help: "put inserted reshardings after the op instead of before it",
  },
  accumulate: {
    type: "switch",
    default: false,
    flag: "--accumulate",
    help: "let Stream stand on a contracted axis: the products of the chunks are added in the output, one after the other",
  },
  deallocate: { type: "switch", default: true, flag: "--no-deallocate", help: "leave out Deallocate statements" },
  shrink: {
    type: "switch",
    default: true,
    flag: "--no-shrink",
    help: "keep loop-local buffers at full extent",
  },
  disablePass: { type: "names", default: [], flag: "--disable-pass", help: "leave out a pass, by name" },
} as const satisfies { readonly [K in keyof LoweringOptions]: OptionRow };

const defaultLoweringOptions: LoweringOptions = {
  backend: "nccl",
  p2p: "rotated",
  protocol: "get",
  overlap: true,
  interStreamSync: false,
  insertReshardingAfter: false,
  accumulate: false,
  deallocate: true,
  shrink: true,
  disablePass: [],
};

/** Defaults filled in; throws `bad-option` for a value outside the schema or an option it does not have. */
export function resolveLoweringOptions(options: Partial<LoweringOptions> = {}): LoweringOptions {
  for (const [name, value] of Object.entries(options)) checkOption(name, value);
  const resolved = { ...defaultLoweringOptions, ...options };
  requireIdiom(resolved, options);
  return resolved;
}

/** Options that say how a back end does what it does not do. Throws `bad-option`. */
function requireIdiom({ backend, p2p }: LoweringOptions, given: Partial<LoweringOptions>): void {
  if (p2p === "linear" && backend !== "nccl") {
    fail({
      code: "bad-option",
      message: `p2p linear coalesces sends and receives, which the ${backend} backend does not`,
      place: optionPlace("p2p"),
      found: `linear with backend ${backend}`,
      expected: backend === "cuda" ? "rotated or broadcast" : "broadcast",
      help: 'use another schedule, or backend "nccl" (--backend nccl)',
    });
  }
  if (given.protocol !== undefined && backend !== "cuda") {
    fail({
      code: "bad-option",
      message: `the ${backend} backend has no point-to-point protocol`,
      place: optionPlace("protocol"),
      found: `${given.protocol} with backend ${backend}`,
      expected: 'no protocol, or backend "cuda"',
      help: "leave the protocol out, or set the backend to cuda (--backend cuda)",
    });
  }
}

function optionPlace(name: keyof LoweringOptions): Place {
  return { kind: "option", text: `${name} (${loweringOptionSchema[name].flag})` };
}

const rows: ReadonlyMap<string, OptionRow> = new Map(Object.entries(loweringOptionSchema));

function checkOption(name: string, value: unknown): void {
  const row = rows.get(name);
  const expected =
    row === undefined
      ? `one of ${Object.keys(loweringOptionSchema).join(", ")}`
      : row.type === "choice"
        ? `one of ${row.choices.join(", ")}`
        : row.type === "switch"
          ? "true or false"
          : "a list of pass names";
  const good =
    row !== undefined &&
    (row.type === "choice"
      ? typeof value === "string" && row.choices.includes(value)
      : row.type === "switch"
        ? typeof value === "boolean"
        : Array.isArray(value) && value.every((entry) => typeof entry === "string"));
  if (good) return;
  fail({
    code: "bad-option",
    message: row === undefined ? `there is no lowering option ${name}` : `option ${name} has a bad value`,
    place: { kind: "option", text: row === undefined ? name : `${name} (${row.flag})` },
    found: row === undefined ? name : JSON.stringify(value),
    expected,
    help: row === undefined ? "remove it or correct its name" : "use one of the expected values",
  });
}
