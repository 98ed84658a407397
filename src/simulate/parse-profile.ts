/** Reads a machine profile from JSON. `profile-invalid` names the first bad value and its place. */
import { fail } from "../diagnostics/diagnostic.ts";
import { type DType, dtypes } from "../numerics/dtype.ts";
import { isOneOf } from "../support/is-one-of.ts";
import { at } from "../support/invariant.ts";
import { keysOf } from "../support/keys-of.ts";
import { collectiveTypes } from "../commands/collectives.ts";
import {
  type FixedCosts,
  type MachineProfile,
  type MarginGrid,
  type GemmGrid,
  type ReductionTimings,
  reductionsTimed,
  type Sustained,
  type Timing,
  type TransferTimings,
} from "./machine-profile.ts";

/** `source` names the origin of the text, such as a file. */
export function parseProfile(text: string, source: string): MachineProfile {
  const root = reader(parseJson(text, source), "profile", source);
  if (root.at("version").number() !== 1) root.at("version").reject("1");
  const margins = root.at("margins").optional(marginGrid);
  const sustained = root.at("sustained").optional(sustainedRates);
  const reductions = root.at("reductions").optional((list) => list.list(reductionTimings));
  const reductionsInPeers = root.at("reductionsInPeers").optional(timings);
  return {
    version: 1,
    machine: root.at("machine").text(),
    products: root.at("products").list(gemmGrid),
    ...(margins === undefined ? {} : { margins }),
    ...(sustained === undefined ? {} : { sustained }),
    memory: timings(root.at("memory")),
    ...(reductions === undefined ? {} : { reductions }),
    ...(reductionsInPeers === undefined ? {} : { reductionsInPeers }),
    localCopies: timings(root.at("localCopies")),
    peerCopies: timings(root.at("peerCopies")),
    kernelCopies: timings(root.at("kernelCopies")),
    transfers: root.at("transfers").list(transferTimings),
    costs: fixedCosts(root.at("costs")),
  };
}

function fixedCosts(costs: Reader): FixedCosts {
  const of = (name: keyof FixedCosts): number => costs.at(name).positive(0);
  return {
    run: of("run"),
    launch: of("launch"),
    event: of("event"),
    join: costs.at("join").optional((cost) => cost.positive(0)) ?? 0,
    signal: of("signal"),
    issue: of("issue"),
    underTransfer: costs.at("underTransfer").positive(1),
  };
}

function gemmGrid(grid: Reader): GemmGrid {
  const [m, n, k] = [ascending(grid.at("m")), ascending(grid.at("n")), ascending(grid.at("k"))];
  const teraflops = grid.at("teraflops").list((rate) => rate.positive(Number.MIN_VALUE));
  if (teraflops.length !== m.length * n.length * k.length) {
    grid.at("teraflops").reject(`${m.length * n.length * k.length} rates, one per point of the grid`);
  }
  return { dtype: grid.at("dtype").oneOf<DType>(keysOf(dtypes)), m, n, k, teraflops };
}

function marginGrid(grid: Reader): MarginGrid {
  const [m, n, k] = [ascending(grid.at("m")), ascending(grid.at("n")), ascending(grid.at("k"))];
  const points = m.length * n.length * k.length;
  const atPoints = (name: "factors" | "room", read: (value: Reader) => number): readonly number[] => {
    const values = grid.at(name).list(read);
    return values.length === points ? values : grid.at(name).reject(`${points} numbers, one per point of the grid`);
  };
  const part = (value: Reader): number =>
    value.positive(0) <= 1 ? value.number() : value.reject("a number from 0 to 1");
  return { m, n, k, factors: atPoints("factors", (value) => value.positive(1)), room: atPoints("room", part) };
}

function sustainedRates(list: Reader): readonly Sustained[] {
  const values = list.list((entry) => ({
    microseconds: entry.at("microseconds").positive(0),
    factor: entry.at("factor").positive(1),
  }));
  const falls = (before: Sustained, after: Sustained): boolean =>
    after.microseconds <= before.microseconds || after.factor < before.factor;
  if (values.some((each, i) => i > 0 && falls(at(values, i - 1), each))) list.reject("ascending times and factors");
  return values;
}

function ascending(axis: Reader): readonly number[] {
  const values = axis.list((value) => value.positive(1));
  if (values.some((value, i) => i > 0 && value <= (values[i - 1] ?? 0))) axis.reject("ascending numbers");
  return values;
}

function reductionTimings(entry: Reader): ReductionTimings {
  return {
    kernel: entry.at("kernel").oneOf(reductionsTimed),
    dtype: entry.at("dtype").oneOf<DType>(keysOf(dtypes)),
    timings: timings(entry.at("timings")),
  };
}

function transferTimings(entry: Reader): TransferTimings {
  const types = [...collectiveTypes, "group"] as const;
  return {
    type: entry.at("type").oneOf<TransferTimings["type"]>(types),
    ranks: entry.at("ranks").positive(1),
    timings: timings(entry.at("timings")),
  };
}

function timings(list: Reader): readonly Timing[] {
  const values = list.list((entry) => ({
    bytes: entry.at("bytes").positive(0),
    microseconds: entry.at("microseconds").positive(0),
  }));
  if (values.some(({ bytes }, i) => i > 0 && bytes <= (values[i - 1]?.bytes ?? 0))) list.reject("ascending bytes");
  return values;
}

interface Reader {
  at(name: string): Reader;
  text(): string;
  number(): number;
  /** A number of at least `least`. */
  positive(least: number): number;
  oneOf<T extends string>(values: readonly T[]): T;
  /** At least one. */
  list<T>(read: (entry: Reader) => T): readonly T[];
  /** undefined where the file does not have it. */
  optional<T>(read: (value: Reader) => T): T | undefined;
  reject(expected: string): never;
}

function reader(value: unknown, place: string, source: string): Reader {
  const reject = (expected: string): never =>
    fail({
      code: "profile-invalid",
      message: "a machine profile has a value that `braid calibrate` does not write",
      place: { kind: "option", text: `${place} in ${source}` },
      found: value === undefined ? "nothing" : JSON.stringify(value).slice(0, 80),
      expected,
      help: "measure the machine again with braid calibrate, or correct the value",
    });
  const number = (): number => (typeof value === "number" && Number.isFinite(value) ? value : reject("a number"));
  return {
    at: (name) => {
      const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
      return isObject
        ? reader(Object.entries(value).find(([key]) => key === name)?.[1], `${place}.${name}`, source)
        : reject("an object");
    },
    text: () => (typeof value === "string" ? value : reject("a text")),
    number,
    positive: (least) => (number() >= least ? number() : reject(`a number of at least ${least}`)),
    oneOf: (values) =>
      typeof value === "string" && isOneOf(values, value) ? value : reject(`one of ${values.join(", ")}`),
    list: (read) =>
      Array.isArray(value) && value.length > 0
        ? value.map((entry: unknown, i) => read(reader(entry, `${place}[${i}]`, source)))
        : reject("a list that is not empty"),
    optional: (read) => (value === undefined ? undefined : read(reader(value, place, source))),
    reject,
  };
}

function parseJson(text: string, source: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch (error) {
    return fail({
      code: "profile-invalid",
      message: "a machine profile is not JSON",
      place: { kind: "option", text: source },
      found: error instanceof Error ? error.message : String(error),
      expected: "JSON that braid calibrate wrote",
      help: "measure the machine again with braid calibrate",
    });
  }
}
