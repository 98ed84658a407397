/**
 * Finds layers in a Fusion as the user wrote it: runs of ops that repeat in kind, shapes, layouts and what they read.
 *
 *     A BCD BCD BCD BCD F | HI HI HI HI     ->     BCD x 4, HI x 4
 *
 * Layers of the backward pass read what the forward pass has made, from its last layer to its first.
 */
import type { IterDomain, IterDomainId, TensorDomain, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { exactText } from "../../support/exact-text.ts";
import { at, getOrMake, makeId } from "../../support/invariant.ts";
import { type Repeat, repeatsOf } from "../../support/repeats.ts";

/** A repeat of ops that begins where a layer does. */
export interface Layers extends Repeat {
  /** The layers of an earlier run that these read. Null for a run that reads none. */
  readonly link: Link | null;
}

/** Layer `i` reads what layer `sign * i + offset` of an earlier run has made, and perhaps the layer before that. */
export interface Link {
  readonly run: number;
  readonly sign: 1 | -1;
  readonly offset: number;
}

/** What makes a tensor: an op, or for an input of the Fusion, the first op that reads it. */
export interface Home {
  readonly position: number;
  readonly isMade: boolean;
  /** Among the outputs or the inputs of the op. */
  readonly index: number;
}

export function homesOf({ ops }: FusionData): ReadonlyMap<TensorId, Home> {
  const homes = new Map<TensorId, Home>();
  for (const [position, op] of ops.entries()) {
    for (const [index, id] of op.inputs.entries())
      if (!homes.has(id)) homes.set(id, { position, isMade: false, index });
    for (const [index, id] of outputsOf(op).entries()) homes.set(id, { position, isMade: true, index });
  }
  return homes;
}

/** All runs of equal layers; null if there are none, or their layers do not read alike. */
export function layersOf(fusion: FusionData, homes: ReadonlyMap<TensorId, Home>): readonly Layers[] | null {
  const found: Layers[] = [];
  for (const run of repeatsOf(keysOf(fusion), 0, fewestLayers)) {
    const layers = aligned(run, fusion.ops, homes, found);
    if (layers === null) return null;
    found.push(layers);
  }
  return found.length === 0 ? null : found;
}

/** By op: equal for ops that are equal but for numbers and names of tensors. */
function keysOf(fusion: FusionData): readonly number[] {
  const roles = rolesOf(fusion);
  const numbers = new Map<string, number>();
  const tensorKeys = fusion.tensors.map((tensor) => {
    const { dtype, memory, domain, mesh } = tensor;
    const key = `${dtype} ${memory} ${String(mesh)} ${roles.get(tensor.id) ?? ""} ${domainText(domain)}`;
    return getOrMake(numbers, key, () => numbers.size);
  });
  const keyOf = (id: TensorId): number => at(tensorKeys, id);
  return fusion.ops.map((op) => {
    const { inputs, output: _, further: __, ...rest } = op;
    const key = `op ${exactText(rest)} ${inputs.map(keyOf).join()} ${outputsOf(op).map(keyOf).join()}`;
    return getOrMake(numbers, key, () => numbers.size);
  });
}

/** Equal for domains that differ in numbers of axes alone. */
function domainText({ logical, transforms, loop, allocation }: TensorDomain): string {
  const ids = new Map<IterDomainId, IterDomainId>();
  const idOf = (id: IterDomainId): IterDomainId => getOrMake(ids, id, () => makeId<IterDomainId>(ids.size));
  const axesText = (axes: readonly IterDomain[]): string =>
    axes
      .map(({ id, iterType, parallelType, extent }) => {
        const size = extent.kind === "constant" ? extent.value : exactText(extent);
        return `${idOf(id)} ${iterType} ${parallelType} ${size}`;
      })
      .join();
  const steps = transforms.map((each) =>
    each.kind === "split"
      ? `${idOf(each.input)} ${idOf(each.outer)} ${idOf(each.inner)} ${each.factor} ${each.innerSplit}`
      : `${idOf(each.outer)} ${idOf(each.inner)} ${idOf(each.output)}`,
  );
  return [axesText(logical), steps.join(), axesText(loop), allocation && axesText(allocation)].join("; ");
}

/** What tensors are beside operands and results of ops. */
function rolesOf({ outputs, aliases = [], derivations = [] }: FusionData): ReadonlyMap<TensorId, string> {
  const roles = new Map<TensorId, string>();
  const add = (role: string, ids: readonly (TensorId | null)[]): void => {
    for (const id of ids) if (id !== null) roles.set(id, `${roles.get(id) ?? ""} ${role}`);
  };
  add("output", outputs);
  for (const { output, input } of aliases) add("alias", [at(outputs, output), input]);
  for (const { of, cotangents, wrt, gradients } of derivations) {
    add("of", of);
    add("cotangent", cotangents);
    add("wrt", wrt);
    add("gradient", gradients);
  }
  return roles;
}

/** Of fewer layers, compiling the shorter programs takes as long as compiling the whole. */
const fewestLayers = 12;

/**
 * The run from the first op of a layer on: where the fewest tensors cross from one layer to the next, and each layer
 * reads one layer of an earlier run. Null if there is no such op, or if layers read otherwise than their neighbours.
 */
function aligned(
  run: Repeat,
  ops: readonly Op[],
  homes: ReadonlyMap<TensorId, Home>,
  earlier: readonly Layers[],
): Layers | null {
  const crossing = crossingsOf(run, ops, homes);
  const phases = [...crossing.keys()].toSorted((a, b) => at(crossing, a) - at(crossing, b));
  for (const phase of phases) {
    const { start, period, times } = run;
    const shifted = { start: start + phase, period, times: phase === 0 ? times : times - 1 };
    const link = linkOf(shifted, ops, homes, earlier);
    if (link !== undefined) return isRegular(shifted, ops, homes, link, earlier) ? { ...shifted, link } : null;
  }
  return null;
}

/** By phase: how many tensors that a layer makes are read after it, if layers begin there. */
function crossingsOf(
  { start, period, times }: Repeat,
  ops: readonly Op[],
  homes: ReadonlyMap<TensorId, Home>,
): readonly number[] {
  const first = start + (times >> 1) * period;
  /** By tensor: its last reader in the layer, for those of the run. */
  const lastReaders = new Map<TensorId, number>();
  for (let reader = first; reader < first + period; reader++)
    for (const id of at(ops, reader).inputs) lastReaders.set(id, reader);
  const crossing = Array.from({ length: period }, () => 0);
  for (const [id, reader] of lastReaders) {
    const position = homes.get(id)?.position ?? -1;
    if (position < start) continue;
    // More than once around the period is across every phase.
    for (let next = Math.max(position + 1, reader - period + 1); next <= reader; next++)
      crossing[(next - start) % period] = at(crossing, (next - start) % period) + 1;
  }
  return crossing;
}

/** Undefined if layers read more than two neighbours of an earlier run, or several runs. */
function linkOf(
  { start, period, times }: Repeat,
  ops: readonly Op[],
  homes: ReadonlyMap<TensorId, Home>,
  earlier: readonly Layers[],
): Link | null | undefined {
  const layer = times >> 1;
  const links: Link[] = [];
  for (let position = start + layer * period; position < start + (layer + 1) * period; position++) {
    for (const [operand, id] of at(ops, position).inputs.entries()) {
      const next = at(at(ops, position + period).inputs, operand);
      const [own, other] = [id, next].map((each) => layerIn(earlier, homes.get(each)?.position));
      if (next === id || own === undefined || other === undefined || own === null || other === null) continue;
      const sign = other.layer - own.layer;
      if (own.run !== other.run || (sign !== 1 && sign !== -1)) return undefined;
      links.push({ run: own.run, sign, offset: own.layer - sign * layer });
    }
  }
  const [first] = links;
  if (first === undefined) return null;
  const { run, sign } = first;
  const offset = Math.max(...links.map((each) => each.offset));
  const isOne = links.every((each) => each.run === run && each.sign === sign && offset - each.offset <= 1);
  return isOne ? { run, sign, offset } : undefined;
}

/** Null for positions in no run. */
function layerIn(runs: readonly Repeat[], position = -1): { readonly run: number; readonly layer: number } | null {
  const run = runs.findIndex(({ start, period, times }) => start <= position && position < start + period * times);
  if (run < 0) return null;
  const { start, period } = at(runs, run);
  return { run, layer: Math.floor((position - start) / period) };
}

/**
 * Whether each layer but the first and the last reads as its neighbour does: the same tensor, or what an equal op has
 * made, one layer further in the run itself or in the one that it reads.
 */
function isRegular(
  { start, period, times }: Repeat,
  ops: readonly Op[],
  homes: ReadonlyMap<TensorId, Home>,
  link: Link | null,
  earlier: readonly Layers[],
): boolean {
  const linked = link === null ? 0 : link.sign * at(earlier, link.run).period;
  for (let position = start + period; position < start + (times - 2) * period; position++) {
    const next = at(ops, position + period).inputs;
    for (const [operand, id] of at(ops, position).inputs.entries()) {
      const [own, other] = [homes.get(id), homes.get(at(next, operand))];
      if (id === next[operand]) continue;
      if (own === undefined || other === undefined) return false;
      if (own.isMade !== other.isMade || own.index !== other.index) return false;
      const step = other.position - own.position;
      const isOwn = own.position >= start;
      if (step !== (isOwn ? period : linked)) return false;
    }
  }
  return true;
}
