/**
 * The host programs of all ranks, lowered once for each class. Ranks that are in the same meshes are tried as one class.
 * Lowering splits it where ranks have other teams, libraries or parts in a communication.
 */
import { byClass, partitionBy } from "../host/alike/classes.ts";
import { createRankRules, hostOn, type RankRules } from "../host/alike/rank-rules.ts";
import type { HostProgram } from "../host/nodes.ts";
import type { DeviceMesh } from "../ir/device-mesh.ts";
import type { Tensor } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import { outputsOf } from "../ir/ops/op.ts";
import { at } from "../support/invariant.ts";

/** Ranks with one host program, but for what `rules` notes of each. */
export interface HostClass {
  readonly ranks: readonly number[];
  /** Of the first rank. */
  readonly host: HostProgram;
  readonly rules: RankRules;
}

export interface HostsByClass {
  /** Indexed by rank, made when they are asked for. */
  readonly hosts: readonly HostProgram[];
  readonly classes: readonly HostClass[];
}

interface LoweredClass<T> {
  readonly ranks: readonly number[];
  readonly made: T;
  readonly rules: RankRules;
}

/** `lower` makes what the first rank has, and notes in `rules` how the others have it. Classes in order of their first rank. */
export function lowerByClass<T>(
  tensors: readonly Tensor[],
  devices: number,
  lower: (rank: number, rules: RankRules) => T,
): readonly LoweredClass<T>[] {
  const attempt = (ranks: readonly number[]): Omit<LoweredClass<T>, "ranks"> => {
    const rules = createRankRules(ranks);
    return { made: lower(at(ranks, 0), rules), rules };
  };
  return inSameMeshes(tensors, devices)
    .flatMap((part) => byClass(part, attempt))
    .map(({ ranks, made }) => ({ ranks, ...(made ?? attempt(ranks)) }))
    .sort((a, b) => at(a.ranks, 0) - at(b.ranks, 0));
}

/** The host program of each rank, made when it is asked for. */
export function hostsOf(classes: readonly HostClass[]): readonly HostProgram[] {
  const hosts: HostProgram[] = [];
  for (const { ranks, host, rules } of classes) {
    for (const rank of ranks) {
      let made: HostProgram | undefined;
      Object.defineProperty(hosts, rank, {
        enumerable: true,
        get: () => (made ??= hostOn(rules, host, rank)),
      });
    }
  }
  return hosts;
}

/** Passes leave others, such as what only an attention in one kernel has, and so does leaving out layers. */
export function usedTensors({ tensors, ops, inputs, outputs }: FusionData): readonly Tensor[] {
  const used = new Set([...inputs, ...outputs, ...ops.flatMap((op) => [...op.inputs, ...outputsOf(op)])]);
  return tensors.filter(({ id }) => used.has(id));
}

/** Ranks by the meshes that have them. Rank 0 alone has the tensors without a mesh. */
function inSameMeshes(tensors: readonly Tensor[], devices: number): readonly (readonly number[])[] {
  const meshes = distinctMeshes(tensors);
  const hasUnplaced = tensors.some((tensor) => tensor.mesh === null);
  const ranks = Array.from({ length: devices }, (_, rank) => rank);
  const keyOf = (rank: number): string =>
    `${meshes.map((mesh) => Number(mesh.has(rank))).join("")}${hasUnplaced && rank === 0 ? ", first" : ""}`;
  return partitionBy(ranks, ranks.map(keyOf));
}

function distinctMeshes(tensors: readonly Tensor[]): readonly DeviceMesh[] {
  const distinct: DeviceMesh[] = [];
  for (const mesh of new Set(tensors.map((tensor) => tensor.mesh))) {
    if (mesh !== null && !distinct.some((known) => known.equals(mesh))) distinct.push(mesh);
  }
  return distinct;
}
