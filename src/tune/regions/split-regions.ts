/**
 * Splits a Fusion into regions whose schedules do not depend on each other: a loop over chunks, or a communication with
 * the GEMM that makes or reads what it moves. Other ops belong to the region before them.
 *
 *     linear 1, gather 1, gelu, linear 2, scatter 2     ->     linear 1, gather 1, gelu | linear 2, scatter 2
 *
 * Ops that lowering joins stay together: those of one loop, of one kernel, and those that share a communication.
 */
import { type FusionRegion, regionFusion } from "../../compile/region-fusion.ts";
import { decomposedData, type HasFusionData, resolveLoweringOptions } from "../../compile/lower.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { Statement } from "../../host/nodes.ts";
import { statementAccess } from "../../host/traverse.ts";
import type { TensorId } from "../../ir/domain.ts";
import { layoutOf, sameLayout } from "../../ir/layout.ts";
import { type FusionData, readersOf } from "../../ir/fusion-data.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import type { Decomposed } from "../../passes/pipeline.ts";
import { isResharding } from "../../passes/routes/layouts.ts";
import { segment } from "../../passes/segment/segment.ts";
import { exchangeReductions } from "../../passes/stream-loops/exchange-reductions.ts";
import type { StreamLoop } from "../../passes/stream-loops/group/group-loops.ts";
import { streamLoopsOf } from "../../passes/stream-loops/stream-parallel-type.ts";
import { at } from "../../support/invariant.ts";
import { createUnionFind, type UnionFind } from "../../support/union-find.ts";
import { withLoopGathers } from "./loop-gathers.ts";

/** A Fusion, and how lowering groups its ops. */
export interface Grouped {
  /** With all meshes and shardings. */
  readonly placed: FusionData;
  /** With all communications as ops. */
  readonly decomposed: FusionData;
  /** Statements and loops of a host program of `decomposed`. */
  readonly groups: readonly (Statement | StreamLoop)[];
}

/** The regions are all ops, in order. */
function splitRegions({ placed, decomposed, groups }: Grouped): readonly FusionRegion[] {
  const { ops } = placed;
  const positionOf = new Map(ops.flatMap((op, position) => outputsOf(op).map((id) => [id, position] as const)));
  const classes = createUnionFind(ops.length);
  /** Positions in `ops` of the ops for which a tensor of `decomposed` is made. */
  const ownersOf = findOwners(decomposed, positionOf);
  for (const owners of ownersOf.values()) join(classes, owners);
  const ownersOfAll = (ids: readonly TensorId[]): readonly number[] => ids.flatMap((id) => ownersOf.get(id) ?? []);
  const anchors = new Set<number>();
  for (const group of groups) {
    const isLoop = group.kind === "StreamLoop";
    const statements = isLoop ? group.members.map(({ statement }) => statement) : [group];
    const owners = ownersOfAll(statements.flatMap((statement) => statementAccess(statement).writes));
    join(classes, owners);
    if (isLoop) for (const owner of owners) anchors.add(owner);
  }
  // An op that lowering folds into another belongs to its reader.
  const readers = readersOf(placed);
  for (const [position, op] of ops.entries()) {
    if (outputsOf(op).some((id) => ownersOf.has(id))) continue;
    const reader = readers.get(op.output)?.[0];
    if (reader !== undefined) join(classes, [position, positionOf.get(reader.output) ?? position]);
  }
  joinMoved(placed, decomposed, positionOf, ownersOf, classes);
  joinNeighbours(placed, decomposed, ownersOfAll, anchors, classes);
  return cutRegions(placed, spansOf(ops.length, anchors, classes));
}

/**
 * Joins an op with those that read its result where lowering lets it lie otherwise than it was placed, such as a tensor
 * that is to be whole and of which no op needs more than a part: between two regions it would be moved.
 */
function joinMoved(
  placed: FusionData,
  decomposed: FusionData,
  positionOf: ReadonlyMap<TensorId, number>,
  ownersOf: ReadonlyMap<TensorId, readonly number[]>,
  classes: UnionFind,
): void {
  const isMoved = (id: TensorId): boolean => {
    const [before, after] = [placed, decomposed].map(({ tensors }) => layoutOf(at(tensors, id)));
    return (
      before !== undefined && after !== undefined && before !== null && after !== null && !sameLayout(before, after)
    );
  };
  for (const op of decomposed.ops) {
    if (isResharding(op, decomposed.tensors)) continue;
    for (const id of op.inputs) {
      const maker = positionOf.get(id);
      if (maker !== undefined && isMoved(id)) join(classes, [maker, ...(ownersOf.get(op.output) ?? [])]);
    }
  }
}

function join({ union }: UnionFind, [first, ...others]: readonly number[]): void {
  for (const other of others) union(first ?? other, other);
}

/** By tensor of the decomposed Fusion. A tensor that lowering adds is made for the ops that read it. */
function findOwners(
  decomposed: FusionData,
  positionOf: ReadonlyMap<TensorId, number>,
): ReadonlyMap<TensorId, readonly number[]> {
  const owners = new Map<TensorId, readonly number[]>();
  const readers = new Map<TensorId, Set<number>>();
  for (const op of decomposed.ops.toReversed()) {
    const outputs = outputsOf(op);
    const known = outputs.flatMap((id) => positionOf.get(id) ?? []);
    const own = known.length > 0 ? known : outputs.flatMap((id) => [...(readers.get(id) ?? [])]);
    for (const id of outputs) owners.set(id, own);
    for (const id of op.inputs) {
      const all = readers.get(id) ?? new Set();
      readers.set(id, all);
      for (const owner of own) all.add(owner);
    }
  }
  return owners;
}

/**
 * Joins each communication outside of loops with a GEMM: the one that makes what it moves, or else those that read it.
 * Others are no anchors.
 */
function joinNeighbours(
  placed: FusionData,
  decomposed: FusionData,
  ownersOf: (ids: readonly TensorId[]) => readonly number[],
  anchors: Set<number>,
  classes: UnionFind,
): void {
  const gemms = gemmsOf(decomposed);
  const readersOfAll = readersOf(decomposed);
  for (const op of decomposed.ops) {
    if (!isResharding(op, decomposed.tensors)) continue;
    const own = ownersOf(outputsOf(op));
    const isAlone = own.every((owner) => !anchors.has(owner) && !isGemm(at(placed.ops, owner)));
    if (!isAlone) {
      for (const owner of own) anchors.add(owner);
      continue;
    }
    const maker = ownersOf(op.inputs.flatMap((id) => gemms.get(id) ?? []).flatMap(outputsOf));
    const readers = (readersOfAll.get(op.output) ?? []).filter(isGemm);
    const neighbours = maker.length > 0 ? maker : readers.flatMap((each) => ownersOf(outputsOf(each)));
    // Without a GEMM it belongs to the region before it: a region apart would cut the kernels around it.
    if (neighbours.length === 0) continue;
    join(classes, [...own, ...neighbours]);
    for (const owner of [...own, ...neighbours]) anchors.add(owner);
  }
}

/** By tensor: the GEMM that makes it, or those whose results are added to it. */
function gemmsOf({ ops }: FusionData): ReadonlyMap<TensorId, readonly Op[]> {
  const gemms = new Map<TensorId, readonly Op[]>();
  for (const op of ops) {
    const below = op.kind === "Binary" ? op.inputs.map((input) => gemms.get(input)) : [];
    if (isGemm(op)) gemms.set(op.output, [op]);
    else if (below.length > 0 && !below.includes(undefined))
      gemms.set(op.output, [...new Set(below.flatMap((each) => each ?? []))]);
  }
  return gemms;
}

function isGemm({ kind }: Op): boolean {
  return kind === "Matmul" || kind === "Linear";
}

/** The first positions of the regions. Classes that interleave are one region. */
function spansOf(count: number, anchors: ReadonlySet<number>, classes: UnionFind): readonly number[] {
  const lasts = new Map<number, number>();
  const isAnchored = new Set([...anchors].map((anchor) => classes.find(anchor)));
  for (let position = 0; position < count; position++) lasts.set(classes.find(position), position);
  const starts = [0];
  let reach = -1;
  let hasAnchor = false;
  for (let position = 0; position < count; position++) {
    const own = classes.find(position);
    const isAnchor = isAnchored.has(own);
    if (isAnchor && hasAnchor && position > reach) {
      starts.push(position);
      hasAnchor = false;
    }
    hasAnchor ||= isAnchor;
    reach = Math.max(reach, lasts.get(own) ?? position);
  }
  return starts;
}

/** Regions that begin at the ops with these positions, the first of which is 0. */
export function cutRegions(placed: FusionData, starts: readonly number[]): readonly FusionRegion[] {
  const { ops, outputs } = placed;
  const results = new Set(outputs);
  const lastRead = new Map<TensorId, number>();
  for (const [position, { inputs }] of ops.entries()) for (const id of inputs) lastRead.set(id, position);
  return starts.map((start, i) => {
    const end = starts[i + 1] ?? ops.length;
    const own = ops.slice(start, end);
    const made = new Set(own.flatMap(outputsOf));
    const read = new Set(own.flatMap(({ inputs }) => inputs));
    return {
      ops: own,
      inputs: [...read].filter((id) => !made.has(id)),
      outputs: [...made].filter((id) => results.has(id) || (lastRead.get(id) ?? -1) >= end),
    };
  });
}

// The regions of a source whose schedules can be chosen apart: those of a Fusion.

export interface FoundRegions {
  readonly placed: FusionData;
  readonly regions: readonly FusionRegion[];
  /** By region: equal for equal ones. */
  readonly keys: readonly string[];
}

/** Null for a Fusion that cannot be lowered with these options. */
export function findRegions(fusion: HasFusionData, given: Partial<LoweringOptions>): FoundRegions | null {
  try {
    const { placed, decomposed } = withGathers(decomposedData(fusion, given), given);
    const regions = splitRegions({ placed, decomposed, groups: groupsOf(decomposed, given) });
    return { placed, regions, keys: regions.map((region) => regionFusion(placed, region).key) };
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

function withGathers(lowered: Decomposed, given: Partial<LoweringOptions>): Decomposed {
  const placed = withLoopGathers(lowered.placed, lowered.decomposed);
  if (placed === lowered.placed) return lowered;
  return { ...decomposedData({ data: () => ({ ...placed, isPlaced: true }) }, given), placed };
}

/** Loops of collectives may have other ops than loops of sends and receives. */
function groupsOf(decomposed: FusionData, given: Partial<LoweringOptions>): readonly (Statement | StreamLoop)[] {
  const forms = given.p2p === undefined ? (["broadcast", "rotated"] as const) : [given.p2p];
  const contexts = forms.map((p2p) => ({ rank: 0, options: resolveLoweringOptions({ ...given, p2p }) }));
  const segmented = segment.run(decomposed, at(contexts, 0));
  return contexts.flatMap((context) => {
    const exchanged = exchangeReductions.run(segmented, context);
    try {
      return streamLoopsOf(exchanged, context.options);
    } catch (error) {
      if (error instanceof DiagnosticError) return [];
      throw error;
    }
  });
}
