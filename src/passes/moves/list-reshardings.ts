/**
 * What a Fusion sends between devices, and why: one entry for each op that reshards, once no op does anything else
 * besides (after insert-routes). Bytes are those that the collectives carry: of an expanded axis, all its elements.
 */
import type { StepType } from "../../host/collectives.ts";
import {
  type DIDType,
  didTypes,
  type IterDomain,
  type Tensor,
  type TensorId,
  withoutReductions,
} from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { isView } from "../../ir/layout.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import type { DimensionName } from "../../ir/parallel-type.ts";
import { shardsOf } from "../../ir/shards.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { streamAxis, streamPart } from "../../ir/stream.ts";
import { at, pushTo } from "../../support/invariant.ts";
import { opText } from "../op-text.ts";
import { type OpLayouts, sameMesh } from "../routes/layouts.ts";
import { reshardingRoute } from "../routes/route.ts";
import { bytesOf, receivedFraction } from "../routes/steps/bytes.ts";
import { exchangedFraction } from "../routes/steps/exchange.ts";
import { collectiveStep, opStep, type ReshardingStep } from "../routes/steps/step.ts";
import { stepTeams } from "../routes/steps/teams.ts";

export interface Resharding {
  /** The tensor that moves. */
  readonly tensor: TensorId;
  /** What the user calls it. */
  readonly name?: string;
  readonly collective: StepType;
  /**
   * The dimension of the mesh along which devices exchange: its name or DID type, or those of several. Null if only the
   * mesh changes.
   */
  readonly along: DIDType | DimensionName | null;
  /** Whether it goes in chunks, in a loop. */
  readonly chunked: boolean;
  /** The bytes that the device that receives most receives; null if a size is not known. */
  readonly bytes: number | null;
  /** What that device lacks of its new share: no way moves less. Null for sums, and if a size is not known. */
  readonly lacks: number | null;
  /** Where sends and receives go instead of collectives: these, and what they would move. */
  readonly instead?: { readonly collectives: readonly StepType[]; readonly bytes: number };
  /** Which op needs it, and what it follows there. */
  readonly reason: string;
  /** What to annotate, where an annotation was likely forgotten. */
  readonly hint?: string;
}

/** A resharding with the ops and tensors that it is for. */
export interface Moved {
  readonly resharding: Omit<Resharding, "lacks" | "instead">;
  /** The tensor after it. */
  readonly output: TensorId;
  readonly layouts: OpLayouts & { readonly step: ReshardingStep };
  /** Whether lowering put it in. */
  readonly isInserted: boolean;
  /** The op of the program that needs it, or that makes it differently; null if there is none. */
  readonly reader: Op | null;
  /** The other operand of the reader that it follows; null if there is none. */
  readonly leader: TensorId | null;
}

/** `before` is the Fusion as the user wrote it: its tensors with a mesh are the user's. */
export function listReshardings(
  fusion: FusionData,
  before: FusionData,
  sizeOf: (name: string) => number | undefined,
  nvfuserLimits: boolean,
): readonly Resharding[] {
  const { tensors } = fusion;
  return movedTensors(fusion, before, sizeOf, nvfuserLimits).map(({ resharding, output, layouts }) => {
    const bytes = (fraction: number): number | null => bytesOf(fraction, at(tensors, output), sizeOf);
    return { ...resharding, ...boundsOf(layouts, resharding.bytes, bytes) };
  });
}

export function movedTensors(
  fusion: FusionData,
  before: FusionData,
  sizeOf: (name: string) => number | undefined,
  nvfuserLimits: boolean,
): readonly Moved[] {
  const { tensors } = fusion;
  const written = new Map(before.ops.map((op) => [op.output, op]));
  const readers = firstReaders(fusion.ops);
  const positions = new Map<TensorId, number[]>();
  for (const [position, { inputs }] of fusion.ops.entries())
    for (const id of new Set(inputs)) pushTo(positions, id, position);
  /** The op of the program of which `op` makes partial sums. */
  const summedAs = (op: Op): Op | null => written.get(readers.get(op.output)?.output ?? op.output) ?? null;
  /** The op that needs a tensor after all steps of its route, and the operand that it reads. */
  const afterSets = (operand: TensorId): Needing => {
    const reader = readers.get(operand) ?? null;
    const isStep = reader?.kind === "Set" && !written.has(reader.output);
    return reader !== null && isStep && readers.has(reader.output) ? afterSets(reader.output) : { reader, operand };
  };
  return fusion.ops.flatMap((op): readonly Moved[] => {
    const own = opStep(op, tensors, nvfuserLimits);
    if (own === null || isOnOneDevice(own.step, own)) return [];
    const { step } = own;
    const tensor = at(op.inputs, 0);
    const needing = afterSets(op.output);
    const { reader, operand } = needing;
    const resharding = {
      tensor,
      collective: step.kind,
      along: alongOf(step, own),
      chunked: streamAxis(at(tensors, op.output)) !== null,
      bytes: bytesOf(receivedFraction(step, own.from, own.to), at(tensors, op.output), sizeOf),
      reason: reasonFor(op, step, needing, tensors, before, written),
    };
    const moved = {
      resharding,
      output: op.output,
      layouts: own,
      isInserted: op.kind === "Set" && written.get(op.output)?.kind !== "Set",
      reader: written.get(op.output) ?? (reader === null ? null : (written.get(reader.output) ?? summedAs(reader))),
      leader:
        reader === null ? null : (leaderOf(reader, operand, step.type, tensors) ?? onMeshOf(reader, operand, tensors)),
    };
    const isGathered = moved.isInserted && step.kind === "Allgather" && step.type !== null;
    const hint = isGathered
      ? forgottenAnnotation({ tensor, along: step.type, set: op, reader: moved.reader, positions }, fusion, before)
      : moved.isInserted
        ? null
        : wholeBetweenStages(op, reader, tensors);
    return [hint === null ? moved : { ...moved, resharding: { ...resharding, hint } }];
  });
}

function alongOf({ type, kept }: ReshardingStep, { from, to }: OpLayouts): Resharding["along"] {
  const { mesh } = from;
  if (type !== null) return mesh.nameOf(type);
  if (!mesh.equals(to.mesh)) return null;
  const changed = didTypes.filter((each) => mesh.hasAxis(each) && !kept.has(each));
  return changed
    .toReversed()
    .map((each) => mesh.nameOf(each))
    .join(", ");
}

/** What a step that moves `moved` bytes has to, and what collectives would move in its place. */
function boundsOf(
  { from, to, step }: Moved["layouts"],
  moved: number | null,
  bytes: (fraction: number) => number | null,
): Pick<Resharding, "lacks" | "instead"> {
  if (from.pending.length > 0) return { lacks: null };
  // These move what devices lack.
  if (step.kind !== "AllToAllV" && step.kind !== "CollectivePermute")
    return { lacks: bytes(exchangedFraction(from, to)) };
  const route = [from, ...reshardingRoute(from, to, "collectives")];
  const steps = route.slice(1).flatMap((stop, i) => {
    const before = at(route, i);
    const made = isView(before, stop) ? null : collectiveStep(before, stop);
    return made === null ? [] : [{ kind: made.kind, fraction: receivedFraction(made, before, stop) }];
  });
  const all = bytes(steps.reduce((sum, { fraction }) => sum + fraction, 0));
  const instead = all === null ? {} : { instead: { collectives: steps.map(({ kind }) => kind), bytes: all } };
  return { lacks: moved, ...instead };
}

/** Whether no device receives from another: along a mesh dimension of one device, a collective is a local copy. */
function isOnOneDevice(step: ReshardingStep, { from, to }: OpLayouts): boolean {
  const teamsOn = stepTeams(step, from.mesh, to.mesh);
  return to.mesh.devices.every((device) => teamsOn(device).every(({ team }) => team.length === 1));
}

function firstReaders(ops: readonly Op[]): ReadonlyMap<TensorId, Op> {
  const readers = new Map<TensorId, Op>();
  for (const op of ops) for (const id of op.inputs) if (!readers.has(id)) readers.set(id, op);
  return readers;
}

/** `written` has the ops of `before` by their output. */
interface Needing {
  readonly reader: Op | null;
  readonly operand: TensorId;
}

function reasonFor(
  op: Op,
  { type }: ReshardingStep,
  { reader, operand }: Needing,
  tensors: readonly Tensor[],
  before: FusionData,
  written: ReadonlyMap<TensorId, Op>,
): string {
  if (op.kind !== "Set") {
    const isSum = op.kind !== "Reduction" || op.op === "sum";
    return `${opText(op)} ${isSum ? "sums" : "reduces"} over devices`;
  }
  if (written.has(op.output)) return `${opText(op)} is in the program`;
  if (reader === null) {
    const producer = written.get(at(op.inputs, 0));
    return producer === undefined ? opText(op) : `the result of ${opText(producer)} is annotated`;
  }
  const needs = `${opText(written.get(reader.output) ?? reader)} needs it`;
  if ((before.tensors[reader.output]?.mesh ?? null) !== null) return `${needs} as T${reader.output} is annotated`;
  const leader = leaderOf(reader, operand, type, tensors);
  return leader === null ? needs : `${needs} to follow T${leader}`;
}

/** The other operand of `reader` on the mesh of the operand `moved`, or null. */
function onMeshOf(reader: Op, moved: TensorId, tensors: readonly Tensor[]): TensorId | null {
  const { mesh } = at(tensors, moved);
  return reader.inputs.find((id) => id !== moved && sameMesh(at(tensors, id).mesh, mesh)) ?? null;
}

/** The other operand of `reader` from which its output has its cut along `type`, or another cut of its own. */
function leaderOf(reader: Op, moved: TensorId, type: DIDType | null, tensors: readonly Tensor[]): TensorId | null {
  const output = at(tensors, reader.output);
  const pairs = axisMap(reader, tensors);
  const others = reader.inputs.filter((id) => id !== moved);
  const cut = shardsOf(output).find((shard) => shard.type === type)?.axis.id;
  const leads = (id: TensorId): boolean =>
    shardsOf(at(tensors, id)).some(
      (shard) =>
        shard.type === type &&
        pairs.some(({ producer, consumer }) => producer.id === shard.axis.id && consumer.id === cut),
    );
  return others.find(leads) ?? others.find((id) => !sameMesh(at(tensors, id).mesh, at(tensors, moved).mesh)) ?? null;
}

// Moves that a forgotten annotation explains: each device gets all of a tensor, for work that could stay cut.

/** A tensor that lowering gathers. */
interface GatheredTensor {
  readonly tensor: TensorId;
  readonly along: DIDType;
  /** The op that gathers it, of the Fusion after insert-routes. */
  readonly set: Op;
  /** The op of the program that needs it; null if there is none. */
  readonly reader: Op | null;
  /** By tensor: the positions of the ops that read it. */
  readonly positions: ReadonlyMap<TensorId, readonly number[]>;
}

/** A sentence, or null. `before` is the Fusion as the user wrote it. */
function forgottenAnnotation(gathered: GatheredTensor, fusion: FusionData, before: FusionData): string | null {
  const { tensor, along, reader } = gathered;
  return gatheredWeight(tensor, along, reader, fusion.tensors, before) ?? gatheredAndCutAgain(gathered, fusion, before);
}

/** A tensor that goes to another mesh at once, though the op that reads it there, or the one that makes it, has chunks. */
function wholeBetweenStages(op: Op, reader: Op | null, tensors: readonly Tensor[]): string | null {
  const [source, made] = [at(tensors, at(op.inputs, 0)), at(tensors, op.output)];
  if (sameMesh(source.mesh, made.mesh) || streamAxis(made) !== null) return null;
  const same = axisMap(op, tensors).map(({ producer, consumer }) => [consumer.id, producer.id]);
  const read =
    reader === null ? [] : axisMap(reader, tensors).map(({ producer, consumer }) => [producer.id, consumer.id]);
  for (const [id, pairs] of [[reader?.output ?? op.output, read] as const, [source.id, same] as const]) {
    const part = streamPart(at(tensors, id));
    const axis = withoutReductions(made.domain.logical).findIndex((own) =>
      pairs.some(([from, to]) => from === own.id && to === part?.axis.id),
    );
    if (part === null || part.chunks === null || axis < 0) continue;
    const edit = `T${made.id}.outerSplit(${axis}, ${printScalar(part.chunks.parts)}).parallelize("Stream")`;
    return `all of T${source.id} is sent before the next stage begins, though T${id} has chunks: ${edit}`;
  }
  return null;
}

/** No hint for FSDP, in which the activation is cut along the type that the weight is gathered along. */
function gatheredWeight(
  tensor: TensorId,
  along: DIDType,
  reader: Op | null,
  tensors: readonly Tensor[],
  { inputs }: FusionData,
): string | null {
  if (reader === null || (reader.kind !== "Linear" && reader.kind !== "Matmul")) return null;
  const isWeight = reader.inputs[1] === tensor && inputs.includes(tensor);
  const others = [...reader.inputs.filter((id) => id !== tensor), reader.output];
  if (!isWeight || others.some((id) => isCut(at(tensors, id), along))) return null;
  return `T${tensor} is a weight that every device gathers, and then every device computes all of T${reader.output}: cut T${reader.output} by ${nameAlong(at(tensors, tensor), along)}, or leave its mesh out`;
}

function nameAlong({ mesh }: Tensor, along: DIDType): string {
  return mesh?.nameOf(along) ?? along;
}

/** Follows the gathered axis through ops that keep it whole. */
function gatheredAndCutAgain(
  { tensor, along, set, positions }: GatheredTensor,
  fusion: FusionData,
  before: FusionData,
): string | null {
  const gathered = shardsOf(at(fusion.tensors, tensor)).find(({ type }) => type === along)?.axis;
  if (gathered === undefined) return null;
  const { ops, tensors } = fusion;
  const copy = axisAfter(set, new Map([[tensor, gathered]]), tensors);
  if (copy === null) return null;
  const whole = new Map<TensorId, IterDomain>([[set.output, copy]]);
  const open = new Set(positions.get(set.output));
  while (open.size > 0) {
    const next = Math.min(...open);
    open.delete(next);
    const op = at(ops, next);
    const axis = axisAfter(op, whole, tensors);
    if (axis === null) continue;
    const shard = shardsOf(at(tensors, op.output)).find(({ type }) => type === along);
    if (shard === undefined) {
      whole.set(op.output, axis);
      for (const position of positions.get(op.output) ?? []) open.add(position);
    } else if (shard.axis.id === axis.id) {
      const names = [tensor, ...whole.keys()].filter((id) => isAnnotatedWhole(before.tensors[id], along));
      if (names.length === 0) continue;
      const all = names.map((id) => `T${id}`).join(", ");
      return `all of ${all} goes to every device, and is cut along the same axis again: cut ${all} by ${nameAlong(at(tensors, tensor), along)}, too, and nothing moves`;
    }
  }
  return null;
}

/** The output's axis for one of the whole axes that the op reads. */
function axisAfter(op: Op, whole: ReadonlyMap<TensorId, IterDomain>, tensors: readonly Tensor[]): IterDomain | null {
  if (!op.inputs.some((id) => whole.has(id))) return null;
  const pair = axisMap(op, tensors).find(
    ({ operand, producer, consumer }) =>
      whole.get(at(op.inputs, operand))?.id === producer.id && consumer.iterType !== "reduction",
  );
  return pair?.consumer ?? null;
}

function isAnnotatedWhole(tensor: Tensor | undefined, along: DIDType): boolean {
  return tensor !== undefined && tensor.mesh !== null && !isCut(tensor, along);
}

function isCut(tensor: Tensor, along: DIDType): boolean {
  return shardsOf(tensor).some(({ type }) => type === along);
}

// What moves between devices, as rows of a table: for the command line, the report page and the playground.

export const reshardingColumns = ["tensor", "collective", "along", "Stream", "bytes", "because"] as const;

/** `besideDump`: with the numbers that the dump has. */
export function reshardingCells(resharding: Resharding, besideDump = false): readonly string[] {
  const { tensor, name, collective, along, chunked, bytes, lacks, instead, reason } = resharding;
  const isMore = bytes !== null && lacks !== null && lacks < bytes;
  const size = `${text(bytes)}${isMore ? ` (lacks ${text(lacks)})` : ""}`;
  const dearer = instead === undefined ? "" : `; ${instead.collectives.join(", ")} would move ${text(instead.bytes)}`;
  const number = `T${tensor}`;
  return [
    name === undefined ? number : besideDump ? `${name} (${number})` : name,
    collective,
    along ?? "meshes",
    chunked ? "yes" : "no",
    size,
    `${reason}${dearer}`,
  ];
}

function text(bytes: number | null): string {
  return bytes?.toLocaleString("en-US") ?? "?";
}
