/**
 * Lowers a Fusion region by region, each with its own options, and joins the host programs of a rank: the statements of
 * one region follow those of the region before. Each region is lowered as a Fusion of its own, equal ones once. In the
 * whole, its tensors, streams, units and communications have the numbers after those of the regions before it.
 */
import type { IterDomainId, Tensor, TensorId, TensorOrigin } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import { outputsOf } from "../ir/ops/op.ts";
import { createRankRules, type RankRules } from "../host/alike/rank-rules.ts";
import type { ExprId, HostProgram, HostStream, HostUnit, Statement, StreamId, UnitId } from "../host/nodes.ts";
import { deallocate } from "../passes/buffers/deallocate.ts";
import { writeOverInputs } from "../passes/buffers/write-over-inputs.ts";
import { withAxisIds } from "../passes/edit/tensor-edit.ts";
import type { LoweringOptions } from "../passes/options.ts";
import { decompose, runHostPasses, segmentFusion } from "../passes/pipeline.ts";
import type { PassContext } from "../passes/pass.ts";
import { segment } from "../passes/segment/segment.ts";
import { makeId, at, getOrMake } from "../support/invariant.ts";
import type { Lowered } from "./lower-all.ts";
import { resolveLoweringOptions } from "./lower.ts";
import { type HostClass, hostsOf, lowerByClass, usedTensors } from "./lowering-class.ts";
import { type FusionRegion, regionFusion } from "./region-fusion.ts";
import { type Numbers, renumberedStatement, renumberedTensor, renumberedUnit } from "./renumber.ts";

export interface RegionLowering {
  readonly region: FusionRegion;
  readonly lowering: Partial<LoweringOptions>;
}

/** A region's Fusion by itself, lowered: equal regions differ from it in numbers and names alone. */
interface Template {
  /** Tensors have the positions in the region as names. */
  readonly decomposed: FusionData;
  /** The axes before lowering. */
  readonly axisCount: number;
  readonly made: ReadonlySet<TensorId>;
  readonly options: LoweringOptions;
  /** Of each class of ranks, by its ranks. */
  readonly hosts: Map<string, { readonly host: HostProgram; readonly rules: RankRules }>;
}

/** By what equal regions with equal options have in common. */
export type RegionTemplates = Map<string, Template>;

/**
 * `placed`: a Fusion whose tensors have their meshes and shardings (`placedData`). The regions are all its ops, in order.
 * `templates`: what was lowered before, for as many devices. Throws what `lower` throws.
 */
export function lowerRegions(
  placed: FusionData,
  regions: readonly RegionLowering[],
  devices: number,
  templates: RegionTemplates,
): Lowered {
  const decomposed = decomposeRegions(placed, regions, templates);
  const { tensors } = decomposed;
  const used = [...usedTensors({ ...placed, tensors }), ...tensors.slice(placed.tensors.length)];
  const classes = lowerByClass(used, devices, (rank, rules) => joinedHost(placed, decomposed, { rank, rules })).map(
    ({ ranks, made, rules }): HostClass => ({ ranks, host: made, rules }),
  );
  return { signature: placed, hosts: hostsOf(classes), classes };
}

/** A region in the whole: the numbers of what its template has. */
interface Instance extends Pick<Numbers, "tensor" | "axis" | "origin"> {
  readonly template: Template;
}

interface DecomposedRegions {
  readonly regions: readonly Instance[];
  /** Each tensor as the region that makes it has it. */
  readonly tensors: readonly Tensor[];
  readonly outputs: readonly TensorId[];
  readonly iterDomainCount: number;
}

/** The passes on Fusions, which are the same for all ranks. */
function decomposeRegions(
  placed: FusionData,
  regions: readonly RegionLowering[],
  templates: RegionTemplates,
): DecomposedRegions {
  const tensors = [...placed.tensors];
  let { iterDomainCount } = placed;
  /** Tensors in whose place a pass has put another one. */
  const replaced = new Map<TensorId, TensorId>();
  const current = (id: TensorId): TensorId => replaced.get(id) ?? id;
  const found = regions.map(({ region, lowering }): Instance => {
    const { fusion, order, key } = regionFusion(
      { ...placed, tensors },
      {
        ops: region.ops.map((op) => ({ ...op, inputs: op.inputs.map(current) })),
        inputs: region.inputs.map(current),
        outputs: region.outputs,
      },
    );
    const options = resolveLoweringOptions(lowering);
    const template = getOrMake(templates, `${key} ${JSON.stringify(options)}`, () =>
      templateOf(fusion.data(), options),
    );
    const originals = order.map((id) => at(tensors, id));
    const { decomposed, made } = template;
    const tensor = continued<TensorId>(order, tensors.length);
    const axis = continued(axisIds(originals), iterDomainCount);
    iterDomainCount += decomposed.iterDomainCount - template.axisCount;
    const origin = ({ name, relation }: TensorOrigin): TensorOrigin | undefined => {
      const own = at(originals, Number(name)).origin;
      return own && relation !== undefined ? { relation, ...own } : own;
    };
    const instance = { template, tensor, axis, origin };
    keepMade(tensors, decomposed.tensors, made, order.length, { ...same, ...instance });
    for (const [i, id] of region.outputs.entries()) replaced.set(id, tensor(at(decomposed.outputs, i)));
    return instance;
  });
  return { regions: found, tensors, outputs: placed.outputs.map(current), iterDomainCount };
}

function templateOf(own: FusionData, options: LoweringOptions): Template {
  const tensors = own.tensors.map((tensor, i): Tensor => ({ ...tensor, origin: { name: String(i) } }));
  const { decomposed } = decompose({ ...own, tensors }, { rank: 0, options });
  const made = new Set(decomposed.ops.flatMap(outputsOf));
  return { decomposed, axisCount: own.iterDomainCount, made, options, hosts: new Map() };
}

/** The ids of these, and after them those from `start` on. */
function continued<Id extends number>(ids: readonly Id[], start: number): (id: Id) => Id {
  return (id) => ids[id] ?? makeId<Id>(start + id - ids.length);
}

/** The axes of tensors in the order in which `copyTensor` numbers them. */
function axisIds(tensors: readonly Tensor[]): readonly IterDomainId[] {
  return tensors.flatMap(({ domain }) => {
    const own = new Set<IterDomainId>();
    withAxisIds(domain, (id) => (own.add(id), id));
    return [...own];
  });
}

const same: Omit<Numbers, "tensor" | "axis" | "origin"> = {
  unit: (id) => id,
  stream: (id) => id,
  expr: (id) => id,
  scalar: (number) => number,
};

/** Tensors from `known` on, and those that a region makes, are as the region has them. */
function keepMade(
  tensors: Tensor[],
  own: readonly Tensor[],
  made: ReadonlySet<TensorId>,
  known: number,
  numbers: Numbers,
): void {
  for (const tensor of own)
    if (tensor.id >= known || made.has(tensor.id))
      tensors[numbers.tensor(tensor.id)] = renumberedTensor(tensor, numbers);
}

function joinedHost(
  placed: FusionData,
  { regions, tensors, outputs, ...counts }: DecomposedRegions,
  ofRank: Required<Pick<PassContext, "rank" | "rules">>,
): HostProgram {
  const joined = [...tensors];
  const { rules } = ofRank;
  const streams: HostStream[] = [];
  const units: HostUnit[] = [];
  let [{ iterDomainCount }, { scalarCount }, exprCount] = [counts, placed, 0];
  const bodies = regions.map(({ template, ...instance }) => {
    const { decomposed, made, options } = template;
    const lowered = getOrMake(template.hosts, rules.ranks.join(), () => {
      const own = createRankRules(rules.ranks);
      return { host: segmentFusion(decomposed, { rank: ofRank.rank, rules: own, options }), rules: own };
    });
    const { host } = lowered;
    for (const [team, rule] of lowered.rules.teams) rules.teams.set(team, rule);
    for (const [scalar, rule] of lowered.rules.scalars) rules.scalars.set(scalar, rule);
    const after =
      <Id extends number>(own: (id: Id) => Id, known: number, start: number) =>
      (id: Id): Id =>
        id < known ? own(id) : makeId<Id>(start + id - known);
    const numbers: Numbers = {
      tensor: after(instance.tensor, decomposed.tensors.length, joined.length),
      axis: after(instance.axis, decomposed.iterDomainCount, iterDomainCount),
      origin: instance.origin,
      unit: continued<UnitId>([], units.length),
      stream: continued<StreamId>([], streams.length),
      expr: continued<ExprId>([], exprCount),
      scalar: after((number: number) => number, decomposed.scalarCount, scalarCount),
    };
    keepMade(joined, host.tensors, made, decomposed.tensors.length, numbers);
    // A later region may access it in peers' memory.
    for (const { id, memory } of host.tensors) {
      const own = numbers.tensor(id);
      if (memory === "symmetric" && !made.has(id)) joined[own] = { ...at(joined, own), memory };
    }
    for (const unit of host.units) units.push(renumberedUnit(unit, numbers));
    for (const stream of host.streams) streams.push({ ...stream, id: numbers.stream(stream.id) });
    iterDomainCount += host.iterDomainCount - decomposed.iterDomainCount;
    scalarCount += host.scalarCount - decomposed.scalarCount;
    exprCount += host.exprCount;
    return host.body.map((statement) => renumberedStatement(statement, numbers));
  });
  const { options } = at(regions, 0).template;
  const body = bodies.flat().map((statement) => withMemory(statement, joined));
  const { inputs, aliases } = placed;
  const whole: HostProgram = {
    kind: "HostProgram",
    tensors: joined,
    streams,
    units,
    inputs,
    outputs,
    body,
    iterDomainCount,
    scalarCount,
    exprCount,
  };
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
