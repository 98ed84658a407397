/** Reads a machine profile from JSON. `profile-invalid` names the first bad, missing or unknown entry and its place. */
import * as v from "valibot";
import { type InferIssue, safeParse } from "valibot";
import { collectiveTypes } from "../commands/collectives.ts";
import { fail } from "../diagnostics/diagnostic.ts";
import { dtypes } from "../numerics/dtype.ts";
import { at, keysOf } from "../support/invariant.ts";
import { jsonText, parseJson } from "../support/json-document.ts";
import { suggestion } from "../support/wording.ts";
import {
  type AttentionRates,
  type BetweenHosts,
  type FixedCosts,
  type GemmGrid,
  type MachineProfile,
  type MarginGrid,
  reductionsTimed,
  type ReductionTimings,
  type Residuals,
  type Sustained,
  type Timing,
  type TransferTimings,
} from "./machine-profile.ts";

/** `source`: the origin of the text, such as a file. Throws `profile-invalid`. */
export function parseProfile(text: string, source: string): MachineProfile {
  const { success, output, issues } = safeParse(machineProfile, parsed(text, source), { abortEarly: true });
  return success ? output : invalid(issues[0], source);
}

type Issue = InferIssue<typeof machineProfile>;

function invalid({ type, expected, path, input, message }: Issue, source: string): never {
  const keys = (path ?? []).map((item): unknown => item.key);
  const steps = keys.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`));
  const place = { kind: "option", text: `profile${steps.join("")} in ${source}` } as const;
  if (type === "strict_object" && expected === "never") {
    const name = String(keys.at(-1));
    return fail("profile-invalid", `a machine profile has an unknown entry ${name}`, {
      place,
      found: name,
      expected: `one of ${message}`,
      help: suggestion(name, message.split(", "), "leave it out"),
    });
  }
  const value: unknown = path === undefined ? input : path.at(-1)?.value;
  return fail("profile-invalid", "a machine profile has a value that `braid calibrate` does not write", {
    place,
    found: value === undefined ? "nothing" : jsonText(value),
    expected: message,
    help: "measure the machine again with braid calibrate, or correct the value",
  });
}

function parsed(text: string, source: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    return fail("profile-invalid", "a machine profile is not JSON", {
      place: { kind: "option", text: source },
      found: error instanceof Error ? error.message : String(error),
      expected: "JSON that braid calibrate wrote",
      help: "measure the machine again with braid calibrate",
    });
  }
}

// The schema of machine profiles. The text of every issue is what the schema expects at that place. The compiler holds
// the entries and the types of machine-profile.ts equal: an entry more, or one less, on either side does not compile.
// The types are written out because declarations that name valibot's types need DOM types in a user's project.

/** Exactly the fields of `T`, each with a schema of its type. */
type Entries<T> = { readonly [K in keyof T]-?: v.GenericSchema<unknown, T[K]> };

const anObject = v.custom<object>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "an object",
);

/** For an unknown entry, the issue's text lists the known ones. */
function object<const E extends v.ObjectEntries>(entries: E) {
  const known = Object.keys(entries).join(", ");
  return v.pipe(
    anObject,
    v.strictObject(entries, ({ expected }) => (expected === "never" ? known : `an entry ${expected}`)),
  );
}

const aList = "a list that is not empty";

function listOf<const S extends v.GenericSchema>(entry: S) {
  return v.pipe(v.array(entry, aList), v.nonEmpty(aList));
}

const number = v.pipe(v.number("a number"), v.finite("a number"));

function atLeast(least: number) {
  return v.pipe(number, v.minValue(least, `a number of at least ${least}`));
}

function oneOf<const T extends string>(values: readonly T[]) {
  return v.picklist(values, `one of ${values.join(", ")}`);
}

function ascends<T>(values: readonly T[], comesAfter: (next: T, last: T) => boolean): boolean {
  return values.every((value, i) => i === 0 || comesAfter(value, at(values, i - 1)));
}

const timings = v.pipe(
  listOf(object({ bytes: atLeast(0), microseconds: atLeast(0) } satisfies Entries<Timing>)),
  v.check((list) => ascends(list, (next, last) => next.bytes > last.bytes), "ascending bytes"),
);

const axis = v.pipe(
  listOf(atLeast(1)),
  v.check((values) => ascends(values, (next, last) => next > last), "ascending numbers"),
);

const rates = listOf(v.pipe(number, v.gtValue(0, "a number greater than 0")));

function pointsOf({ m, n, k }: Pick<GemmGrid, "m" | "n" | "k">): number {
  return m.length * n.length * k.length;
}

const gemmGrid = v.pipe(
  object({
    dtype: oneOf(keysOf(dtypes)),
    m: axis,
    n: axis,
    k: axis,
    teraflops: rates,
  } satisfies Entries<GemmGrid>),
  v.forward(
    v.check(
      (grid) => grid.teraflops.length === pointsOf(grid),
      ({ input }) => `${pointsOf(input)} rates, one per point of the grid`,
    ),
    ["teraflops"],
  ),
);

const marginGrid = v.pipe(
  object({
    m: axis,
    n: axis,
    k: axis,
    factors: listOf(atLeast(1)),
    room: listOf(v.pipe(number, v.minValue(0, "a number from 0 to 1"), v.maxValue(1, "a number from 0 to 1"))),
  } satisfies Entries<MarginGrid>),
  v.forward(
    v.check(
      (grid) => grid.factors.length === pointsOf(grid),
      ({ input }) => `${pointsOf(input)} numbers, one per point of the grid`,
    ),
    ["factors"],
  ),
  v.forward(
    v.check(
      (grid) => grid.room.length === pointsOf(grid),
      ({ input }) => `${pointsOf(input)} numbers, one per point of the grid`,
    ),
    ["room"],
  ),
);

const sustained = v.pipe(
  listOf(object({ microseconds: atLeast(0), factor: atLeast(1) } satisfies Entries<Sustained>)),
  v.check(
    (list) => ascends(list, (next, last) => next.microseconds > last.microseconds && next.factor >= last.factor),
    "ascending times and factors",
  ),
);

const attentionRates = v.pipe(
  object({
    dtype: oneOf(keysOf(dtypes)),
    lengths: axis,
    forward: rates,
    backward: rates,
  } satisfies Entries<AttentionRates>),
  v.forward(
    v.check(
      ({ lengths, forward }) => forward.length === lengths.length,
      ({ input }) => `${input.lengths.length} rates, one per length`,
    ),
    ["forward"],
  ),
  v.forward(
    v.check(
      ({ lengths, backward }) => backward.length === lengths.length,
      ({ input }) => `${input.lengths.length} rates, one per length`,
    ),
    ["backward"],
  ),
);

const reductionTimings = object({
  kernel: oneOf(reductionsTimed),
  dtype: oneOf(keysOf(dtypes)),
  timings,
} satisfies Entries<ReductionTimings>);

const transferTimings = object({
  type: oneOf([...collectiveTypes, "group"]),
  ranks: atLeast(1),
  timings,
} satisfies Entries<TransferTimings>);

const betweenHosts = object({
  nics: v.pipe(atLeast(1), v.safeInteger("a whole number")),
  transfers: listOf(transferTimings),
} satisfies Entries<BetweenHosts>);

const fixedCosts = object({
  run: atLeast(0),
  launch: atLeast(0),
  event: atLeast(0),
  join: v.optional(atLeast(0), 0),
  signal: atLeast(0),
  issue: atLeast(0),
  underTransfer: atLeast(1),
} satisfies Entries<FixedCosts>);

const residuals = object({
  gemms: v.exactOptional(atLeast(0)),
  kernels: v.exactOptional(atLeast(0)),
  copies: v.exactOptional(atLeast(0)),
  transfers: v.exactOptional(atLeast(0)),
  reductionsInPeers: v.exactOptional(atLeast(0)),
  host: v.exactOptional(atLeast(0)),
} satisfies Entries<Residuals>);

const machineProfile = object({
  version: v.literal(1, "1"),
  machine: v.string("a text"),
  on: v.picklist(["cpu", "cuda"], "cpu or cuda"),
  products: listOf(gemmGrid),
  margins: v.exactOptional(marginGrid),
  sustained: v.exactOptional(sustained),
  attention: v.exactOptional(listOf(attentionRates)),
  memory: timings,
  reductions: v.exactOptional(listOf(reductionTimings)),
  reductionsInPeers: v.exactOptional(timings),
  localCopies: timings,
  peerCopies: timings,
  transfers: listOf(transferTimings),
  betweenHosts: v.exactOptional(betweenHosts),
  costs: fixedCosts,
  residuals: v.exactOptional(residuals),
} satisfies Entries<MachineProfile>);
