/**
 * Lowers a Fusion region by region, each with its own options, and joins the host programs of a rank: the statements of
 * one region follow those of the region before. All regions number tensors, streams, units and communications in common,
 * because each region continues the tables of those before it.
 */
import type { Tensor, TensorId } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import { type Op, outputsOf } from "../ir/ops/op.ts";
import type { HostProgram, Statement, UnitId } from "../host/nodes.ts";
import { deallocate } from "../passes/buffers/deallocate.ts";
import { writeOverInputs } from "../passes/buffers/write-over-inputs.ts";
import type { LoweringOptions } from "../passes/options.ts";
import { decompose, runHostPasses } from "../passes/pipeline.ts";
import type { PassContext } from "../passes/pass.ts";
import { segment } from "../passes/segment/segment.ts";
import { makeId } from "../support/ids.ts";
import { at } from "../support/invariant.ts";
import type { Lowered } from "./lower-all.ts";
import { resolveLoweringOptions } from "./lower.ts";
import { type HostClass, hostsOf, lowerByClass } from "./lowering-class.ts";

/** Consecutive ops of a Fusion. */
export interface FusionRegion {
  readonly ops: readonly Op[];
  /** Tensors that the ops read and do not make. */
  readonly inputs: readonly TensorId[];
  /** Tensors that the ops make and that later ops or the caller read. */
  readonly outputs: readonly TensorId[];
}

export interface RegionLowering {
  readonly region: FusionRegion;
  readonly lowering: Partial<LoweringOptions>;
}

/**
 * `placed`: a Fusion whose tensors have their meshes and shardings (`placedData`). The regions are all its ops, in order.
 * Throws what `lower` throws.
 */
export function lowerRegions(placed: FusionData, regions: readonly RegionLowering[], devices: number): Lowered {
  const decomposed = decomposeRegions(placed, regions);
  const classes = lowerByClass(decomposed.tensors, devices, (rank, rules) =>
    joinedHost(placed, decomposed, { rank, rules }),
  ).map(({ ranks, made, rules }): HostClass => ({ ranks, host: made, rules }));
  return { signature: placed, hosts: hostsOf(classes), classes };
}

interface DecomposedRegion {
  readonly fusion: FusionData;
  readonly options: LoweringOptions;
  /** The tensors that the region makes. */
  readonly made: ReadonlySet<TensorId>;
}

interface DecomposedRegions {
  readonly regions: readonly DecomposedRegion[];
  /** Each tensor as the region that makes it has it. */
  readonly tensors: readonly Tensor[];
  readonly outputs: readonly TensorId[];
  readonly iterDomainCount: number;
  readonly scalarCount: number;
}

/** The passes on Fusions, which are the same for all ranks. */
function decomposeRegions(placed: FusionData, regions: readonly RegionLowering[]): DecomposedRegions {
  const tensors = [...placed.tensors];
  // The whole is written over inputs at the end.
  const { aliases: _, ...fusionOf } = placed;
  let { iterDomainCount, scalarCount } = placed;
  /** Tensors in whose place a pass has put another one. */
  const replaced = new Map<TensorId, TensorId>();
  const current = (id: TensorId): TensorId => replaced.get(id) ?? id;
  const found = regions.map(({ region, lowering }): DecomposedRegion => {
    const options = resolveLoweringOptions(lowering);
    const fusion: FusionData = {
      ...fusionOf,
      isPlaced: true,
      tensors: [...tensors],
      ops: region.ops.map((op) => ({ ...op, inputs: op.inputs.map(current) })),
      inputs: region.inputs.map(current),
      outputs: region.outputs,
      iterDomainCount,
      scalarCount,
    };
    const { decomposed } = decompose(fusion, { rank: 0, options });
    ({ iterDomainCount, scalarCount } = decomposed);
    for (const [i, id] of region.outputs.entries()) replaced.set(id, at(decomposed.outputs, i));
    const made = new Set(decomposed.ops.flatMap(outputsOf));
    keepMade(tensors, decomposed.tensors, made);
    return { fusion: decomposed, options, made };
  });
  return { regions: found, tensors, outputs: placed.outputs.map(current), iterDomainCount, scalarCount };
}

/** New tensors, and those that a region makes, are as the region has them. */
function keepMade(tensors: Tensor[], own: readonly Tensor[], made: ReadonlySet<TensorId>): void {
  for (const tensor of own) if (tensor.id >= tensors.length || made.has(tensor.id)) tensors[tensor.id] = tensor;
}

function joinedHost(
  placed: FusionData,
  { regions, tensors, outputs, ...counts }: DecomposedRegions,
  ofRank: Pick<PassContext, "rank" | "rules">,
): HostProgram {
  const joined = [...tensors];
  let last: HostTables & Pick<HostProgram, "iterDomainCount" | "scalarCount"> = {
    ...counts,
    streams: [],
    units: [],
    exprCount: 0,
  };
  const bodies = regions.map(({ fusion, options, made }) => {
    const { iterDomainCount, scalarCount } = last;
    const known = [...fusion.tensors, ...joined.slice(fusion.tensors.length)];
    const continued = { ...fusion, tensors: known, iterDomainCount, scalarCount };
    const host = lowerAfter(last, continued, { ...ofRank, options });
    last = host;
    keepMade(joined, host.tensors, made);
    // A later region may access it in peers' memory.
    for (const [id, { memory }] of host.tensors.entries())
      if (memory === "symmetric" && !made.has(at(joined, id).id)) joined[id] = { ...at(joined, id), memory };
    return host.body;
  });
  const { options } = at(regions, 0);
  const body = bodies.flat().map((statement) => withMemory(statement, joined));
  const { inputs, aliases } = placed;
  const whole: HostProgram = { ...last, kind: "HostProgram", tensors: joined, inputs, outputs, body };
  const host = writeOverInputs.run(aliases === undefined ? whole : { ...whole, aliases }, { ...ofRank, options });
  const freed = deallocate.run(host, { ...ofRank, options });
  const own = new Set(host.body);
  const regionOf = bodies.flatMap((statements, region) => statements.map(() => region));
  let kept = 0;
  return {
    ...freed,
    // What is freed is of the region before. Copies to inputs are of the last.
    regions: freed.body.map(
      (statement) =>
        regionOf[statement.kind === "Deallocate" && !own.has(statement) ? kept - 1 : kept++] ?? regions.length - 1,
    ),
  };
}

type HostTables = Pick<HostProgram, "streams" | "units" | "exprCount">;

/** Lowers a Fusion for the ranks of `context`. Its streams, units and communications are numbered after those of `before`. */
export function lowerAfter(
  { streams, units, exprCount }: HostTables,
  fusion: FusionData,
  context: PassContext,
): HostProgram {
  const segmented = segment.run(fusion, context);
  const idOf = (id: UnitId): UnitId => makeId<UnitId>(units.length + id);
  const begun = {
    ...segmented,
    streams,
    exprCount,
    units: [...units, ...segmented.units.map((unit) => ({ ...unit, id: idOf(unit.id) }))],
    body: segmented.body.map((statement) =>
      statement.kind === "PostOnStream" ? { ...statement, unit: idOf(statement.unit) } : statement,
    ),
  };
  return runHostPasses(begun, context);
}

/** An Allocate names the memory of its tensor. */
function withMemory(statement: Statement, tensors: readonly Tensor[]): Statement {
  if (statement.kind === "ForLoop") {
    const body = statement.body.map((inner) => withMemory(inner, tensors));
    return body.every((inner, i) => inner === statement.body[i]) ? statement : { ...statement, body };
  }
  if (statement.kind !== "Allocate" || statement.memory === "symmetric") return statement;
  return at(tensors, statement.tensor).memory === "symmetric" ? { ...statement, memory: "symmetric" } : statement;
}
