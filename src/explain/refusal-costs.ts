/** What communication outside of loops costs a run, by the rule that kept it there. */
import type { AnyCompilation } from "../compile/compile.ts";
import type { TensorId } from "../ir/domain.ts";
import type { LoopRefusal } from "../passes/stream-loops/loop-refusals.ts";
import { at } from "../support/invariant.ts";
import { isCostly, worthIt } from "./alternatives.ts";
import type { ExplainedRun } from "./explain-run.ts";
import type { RegionRow } from "./region-rows.ts";

interface RefusalsOf {
  readonly run: Pick<ExplainedRun, "regions" | "causes" | "milliseconds">;
  readonly refusals: readonly LoopRefusal[];
  /** Null if the schedule was not chosen. */
  readonly choice: object | null;
  readonly compilation: AnyCompilation;
}

/** Whether communication outside of loops costs so much, for whatever cause. */
export function isAloneCostly(run: RefusalsOf["run"]): boolean {
  const isCostlyRegion = run.regions.some((row) => isAlone(row) && row.exposed >= worthIt * run.milliseconds);
  return isCostly(run, "notInLoop") || isCostlyRegion;
}

/** A loop in which nothing computes hides nothing. */
function isAlone({ isLoop, hidden }: RegionRow): boolean {
  return !isLoop || hidden === 0;
}

/**
 * Those whose communication is exposed, the costliest first. Regions that hide it, or that are loops over the devices,
 * have none.
 */
export function exposedRefusals(
  of: RefusalsOf,
): readonly { readonly refusal: LoopRefusal; readonly exposed: number }[] {
  const { run, refusals, choice, compilation } = of;
  const { tensors } = at(compilation.hosts, 0);
  // A chosen schedule numbers what lowering adds differently, so that only names say what it is made for.
  const known = choice === null ? tensors.length : compilation.signature.tensors.length;
  const keyOf = (id: number): string => {
    const { name, constant } = tensors[id]?.origin ?? {};
    return name ?? constant ?? (id < known ? `T${id}` : "");
  };
  const exposedOf = new Map<string, number>();
  for (const { statement, exposed } of run.regions.filter(isAlone)) {
    const [code = ""] = statement.split("//");
    const ids = Array.from(code.matchAll(/\bT(\d+)_/gu), ([, id]) => Number(id));
    for (const key of new Set(ids.map(keyOf))) exposedOf.set(key, (exposedOf.get(key) ?? 0) + exposed);
  }
  const exposedBy = (id: TensorId): number => (id < known ? (exposedOf.get(keyOf(id)) ?? 0) : 0);
  return refusals
    .map((refusal) => ({ refusal, exposed: Math.max(exposedBy(refusal.tensor), exposedBy(refusal.from)) }))
    .filter(({ exposed }) => exposed > 0)
    .toSorted((a, b) => b.exposed - a.exposed);
}

/**
 * Which rules kept communication out of a loop, the costliest first; none where that costs less than a change has to gain.
 */
export function costlyRefusals(of: RefusalsOf): readonly LoopRefusal[] {
  if (!isCostly(of.run, "notInLoop")) return [];
  const costs = exposedRefusals(of);
  const most = costs[0]?.exposed ?? 0;
  return costs.filter(({ exposed }) => exposed >= littleOfIt * most).map(({ refusal }) => refusal);
}

/** The share of the costliest below which others are not worth a line. */
const littleOfIt = 0.05;
