/**
 * What passes made of Fusions. Both are immutable, so that a pass on a Fusion runs once for all options that agree where
 * it reads them. Candidates of a schedule choice mostly differ in options that only host passes read, and `explain`
 * lowers a Fusion several times.
 */
import type { FusionData } from "../ir/fusion-data.ts";
import type { LoweringOptions } from "./options.ts";

interface Made {
  /** The options that the pass read, with their values. */
  readonly read: ReadonlyMap<string | symbol, unknown>;
  readonly made: FusionData;
}

const madeOf = new WeakMap<FusionData, Map<string, Made[]>>();

/** Null if the pass has not run on the Fusion with such options. */
export function recall(pass: string, fusion: FusionData, options: LoweringOptions): FusionData | null {
  const all = madeOf.get(fusion)?.get(pass) ?? [];
  const found = all.find(({ read }) => [...read].every(([name, value]) => Reflect.get(options, name) === value));
  return found?.made ?? null;
}

/** What `run` makes of the Fusion by the options that it is given. */
export function remember(
  pass: string,
  fusion: FusionData,
  options: LoweringOptions,
  run: (options: LoweringOptions) => FusionData,
): FusionData {
  const read = new Map<string | symbol, unknown>();
  const get = (from: LoweringOptions, name: string | symbol): unknown => {
    const value: unknown = Reflect.get(from, name);
    read.set(name, value);
    return value;
  };
  const made = run(new Proxy(options, { get }));
  const byPass = madeOf.get(fusion) ?? new Map<string, Made[]>();
  madeOf.set(fusion, byPass);
  byPass.set(pass, [...(byPass.get(pass) ?? []), { read, made }]);
  return made;
}
