/**
 * Annotations of the user's that contradict each other: a tensor with a mesh is moved, because an operand beside it or
 * the result of the op that reads it has a mesh too and lies differently. A set() between the two is no contradiction,
 * and neither is an activation that follows its weight. A gather for indices has its own warning (gathered-indices.ts).
 */
import type { Diagnostic, MentionedTensor } from "../../diagnostics/diagnostic.ts";
import { isDID, plainDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { originated, withNames } from "../../ir/origin.ts";
import { cutOf } from "../../ir/parts.ts";
import { shardsOf } from "../../ir/shards.ts";
import { at } from "../../support/invariant.ts";
import { redomain, editFusion } from "../edit/tensor-edit.ts";
import { opText } from "../op-text.ts";
import { sameMesh } from "../routes/layouts.ts";
import { isGatheredForIndices } from "./gathered-indices.ts";
import { type Moved, movedTensors } from "./list-reshardings.ts";

/**
 * `before` is the Fusion as the user wrote it, `fusion` after insert-routes. `judge` decides between other annotations.
 */
export function annotationConflicts(
  fusion: FusionData,
  before: FusionData,
  sizeOf: (name: string) => number | undefined,
  nvfuserLimits: boolean,
  judge: Judge,
): readonly Diagnostic[] {
  if (!before.tensors.some(({ mesh }) => mesh !== null)) return [];
  const isUsers = (id: TensorId): boolean => (before.tensors[id]?.mesh ?? null) !== null;
  const seen = new Set<string>();
  const all = movedTensors(fusion, before, sizeOf, nvfuserLimits);
  return all.flatMap((moved): readonly Diagnostic[] => {
    const { reader, isInserted, resharding } = moved;
    if (isGatheredForIndices(moved, fusion.tensors)) return [];
    if (!isInserted || reader === null || reader.kind === "Set") return [];
    const own = resharding.tensor;
    const made = before.ops.find(({ output }) => output === own);
    // A set after an op moves what the op makes of its operands, before the result lies as annotated.
    const isAfter =
      made !== undefined && isUsers(own) && liesOf(at(fusion.tensors, own)) !== liesOf(at(before.tensors, own));
    const op = isAfter ? made : reader;
    const tensor = isAfter || !reader.inputs.includes(own) ? op.inputs.find(isUsers) : own;
    const leader = isUsers(op.output) ? op.output : moved.leader;
    if (tensor !== undefined && isNeededWhole(op, at(before.tensors, tensor), before.tensors)) return [];
    if (tensor === undefined || !isUsers(tensor) || op.kind === "Set" || isActivation(op, tensor)) return [];
    // A result that asks for another cut of both factors is meant so.
    const isRecut = all.some(
      (other) => other.reader === op && other.resharding.tensor === op.inputs[0] && tensor !== op.inputs[0],
    );
    if (isRecut && leader === op.output) return [];
    const key = `${tensor} ${leader} ${op.output}`;
    if (leader === null || leader === tensor || seen.has(key) || resharding.bytes === 0) return [];
    const leads = isUsers(leader);
    const moving = at(before.tensors, tensor);
    const leading = leads
      ? at(before.tensors, leader)
      : { ...at(before.tensors, writtenOperand(op, leader, fusion)), mesh: at(fusion.tensors, leader).mesh };
    if (!leads && (!isWeight(op, tensor) || sameMesh(moving.mesh, leading.mesh))) return [];
    // The op reads the operand of a view, which the view's annotation asks to move.
    const isViewed = !isAfter && !reader.inputs.includes(own);
    if (isViewed && placementOf(moving) === placementOf(leading)) return [];
    seen.add(key);
    const place = withNames(opText(op), fusion.tensors);
    const needed = at(fusion.tensors, operandOf(op, tensor, fusion));
    const isSet = before.ops.some(({ kind, output }) => kind === "Set" && output === leading.id);
    const about = { op, tensor: moving, leader: leading, needed, isSet, tensors: before.tensors };
    const isTried = leads && seen.size <= triedConflicts;
    const changes = isTried ? cheaperAnnotations(before, about, judge) : leads && judge.now !== null ? [] : null;
    return [conflict(resharding, place, about, leads, changes)];
  });
}

/** So many warnings say what other annotations move: each costs up to three lowerings of the program. */
const triedConflicts = 3;

function liesOf(tensor: Tensor): string {
  return [tensor.mesh, ...shardsOf(tensor).map(({ type, axis }) => `${type} ${axis.id}`)].join(" ");
}

/** Weights lead: Megatron's column-parallel linear gathers x. */
function isActivation(op: Op, id: TensorId): boolean {
  return isMatmul(op) && op.inputs[0] === id && op.inputs[1] !== id;
}

/** One that leaves its mesh takes the op away from the devices that the user gave it. */
function isWeight(op: Op, id: TensorId): boolean {
  return isMatmul(op) && op.inputs[1] === id;
}

/** Whether the op indexes, or otherwise needs whole, each axis along which the tensor is cut: keys of an attention. */
function isNeededWhole(op: Op, tensor: Tensor, tensors: readonly Tensor[]): boolean {
  const pairs = axisMap(op, tensors).filter(({ operand }) => op.inputs[operand] === tensor.id);
  const cuts = shardsOf(tensor);
  return cuts.length > 0 && cuts.every(({ axis }) => pairs.every(({ producer }) => producer.id !== axis.id));
}

function isMatmul({ kind }: Op): boolean {
  return kind === "Linear" || kind === "Matmul";
}

/** `leads`: whether the leader's mesh is the user's, too. */
function conflict(
  { collective, bytes, chunked }: Moved["resharding"],
  place: string,
  { op, tensor, leader, needed, isSet, tensors }: Conflict,
  leads: boolean,
  changes: readonly string[] | null,
): Diagnostic {
  const isResult = leader.id === op.output;
  const isAlike = placementOf(tensor) === placementOf(leader);
  const textOf = (each: Tensor): string => placementText(each) + (isAlike ? rolesText(op, each, tensors) : "");
  const lies = liesFor(op, tensor, leader, needed);
  const own = isResult ? followsOperands(leader) : `annotate T${tensor.id} ${lies}`;
  const size = bytes === null ? "an unknown number of bytes" : count(bytes);
  const mentions = [tensor, leader].flatMap(({ id }) => mentionOf(id, [tensor, leader]));
  return {
    code: "annotations-conflict",
    severity: "warning",
    message: leads
      ? `T${tensor.id} and T${leader.id} are ${isAlike ? "cut along different axes of the op" : "annotated differently"}, so T${tensor.id} moves (${collective})`
      : `T${tensor.id} leaves its mesh (${collective}): T${leader.id}, which has no annotation, is on another`,
    place: { kind: "tensor", text: place },
    found: `${size} to a device${chunked ? ", in chunks" : ""}; ${textOf(tensor)}; ${leads ? textOf(leader) : `T${leader.id} on ${String(leader.mesh)}`}`,
    expected: "annotations with which each device has its operands",
    help: !leads
      ? `${isSet ? `annotate T${leader.id}` : `put set(T${leader.id}) before the op, and annotate it`} on the mesh of T${tensor.id}, cut as the op needs it`
      : [...(changes ?? [own]), `put set(T${tensor.id}) before the op, annotated ${lies}: `].join(", or ") +
        (chunked ? "chunks of it overlap with other chunks' work" : "it then overlaps with what does not need it"),
    ...(mentions.length === 0 ? {} : { tensors: mentions }),
  };
}

export function bytesOfAll(all: readonly Moved[]): number | null {
  return all.reduce<number | null>(
    (sum, { resharding: { bytes } }) => (sum === null || bytes === null ? null : sum + bytes),
    0,
  );
}

/** What the op reads in place of the tensor, after all steps of its route. */
function operandOf(op: Op, tensor: TensorId, { ops }: FusionData): TensorId {
  const routed = ops.find(({ output }) => output === op.output);
  return routed?.inputs[op.inputs.indexOf(tensor)] ?? tensor;
}

/** The operand of the user's op in whose place the op reads `copy`. */
function writtenOperand(op: Op, copy: TensorId, { ops }: FusionData): TensorId {
  const position = ops.find(({ output }) => output === op.output)?.inputs.indexOf(copy) ?? -1;
  return op.inputs[position] ?? copy;
}

/** Two tensors of an op that are annotated differently, and the copy of the first that the op reads. */
interface Conflict {
  readonly op: Op;
  readonly tensor: Tensor;
  readonly leader: Tensor;
  readonly needed: Tensor;
  /** Whether the program makes the leader by a set(). */
  readonly isSet: boolean;
  /** Of the Fusion as the user wrote it. */
  readonly tensors: readonly Tensor[];
}

/** Which of two programs is better: the one that moves fewer bytes, or where a machine is known, the faster one. */
export interface Judge {
  /** Of the program as it is; null if it is not known. */
  readonly now: number | null;
  /** Of a Fusion with other annotations; null if it is refused, or not better. */
  readonly better: (changed: FusionData) => number | null;
  /** A cost beside that of the program as it is. */
  readonly text: (cost: number, now: number) => string;
}

export function judgeOfBytes(now: number | null, bytesOf: (changed: FusionData) => number | null): Judge {
  return {
    now,
    better: (changed) => {
      const bytes = now === null ? null : bytesOf(changed);
      return bytes === null || now === null || bytes >= now ? null : bytes;
    },
    text: (bytes, before) => `${count(bytes)} move in all, now ${count(before)}`,
  };
}

/**
 * Other annotations of one of the two tensors, with which the whole program is better: the best first. All have been
 * lowered. Null if that is not known.
 */
function cheaperAnnotations(
  before: FusionData,
  { op, tensor, leader, needed }: Conflict,
  { now, better, text: textOf }: Judge,
): readonly string[] | null {
  if (now === null) return null;
  const isResult = leader.id === op.output;
  const cut = liesAs(before, tensor, needed);
  const led = isResult || isMatmul(op) ? null : liesAs(before, leader, tensor);
  const left = isResult ? { ...before, tensors: before.tensors.with(leader.id, unplaced(leader)) } : null;
  const ways = [
    [left, followsOperands(leader)],
    [cut, `annotate T${tensor.id} ${liesFor(op, tensor, leader, needed)}`],
    [led, `annotate T${leader.id} as T${tensor.id}`],
  ] as const;
  return ways
    .flatMap(([changed, text]) => {
      const cost = changed === null ? null : better(changed);
      return cost === null ? [] : [{ text, cost }];
    })
    .toSorted((a, b) => a.cost - b.cost)
    .map(({ text, cost }) => `${text} (${textOf(cost, now)})`);
}

function followsOperands({ id }: Tensor): string {
  return `leave out the mesh of T${id}, which then follows its operands`;
}

/** How the tensor is to lie: the axes of a weight are others than those of what it is multiplied with. */
function liesFor(op: Op, tensor: Tensor, leader: Tensor, needed: Tensor): string {
  const isSame = !isMatmul(op) && placementOf(needed) === placementOf(leader);
  return isSame || needed.id === tensor.id ? `as T${leader.id}` : placementOf(needed);
}

/** The Fusion with the mesh and cuts of `like`, a copy or an operand of one op, for the tensor; null if it cannot. */
function liesAs(before: FusionData, tensor: Tensor, like: Tensor): FusionData | null {
  const [own, copied] = [tensor, like].map(({ domain }) => withoutReductions(domain.logical));
  if (own === undefined || own.length !== copied?.length || like.id === tensor.id) return null;
  const edit = editFusion(before);
  const axes = own.map((axis, i) => ({ axis, model: cutOf(like.domain, at(copied, i)) }));
  redomain(edit, { ...unplaced(tensor), mesh: like.mesh }, axes);
  return { ...before, tensors: edit.tensors, iterDomainCount: edit.iterDomainCount };
}

function unplaced(tensor: Tensor): Tensor {
  const axes = tensor.domain.logical.map((axis) => ({ ...axis, parallelType: "Serial" as const }));
  return { ...tensor, mesh: null, domain: plainDomain(axes) };
}

function count(bytes: number): string {
  return `${bytes.toLocaleString("en-US")} bytes`;
}

/** Where the user made and placed the tensor. */
function mentionOf(id: TensorId, among: readonly Tensor[]): readonly MentionedTensor[] {
  const byId: Tensor[] = [];
  for (const tensor of among) byId[tensor.id] = tensor;
  const about: Diagnostic = { code: "annotations-conflict", message: `T${id}` };
  return originated(about, byId, true).tensors ?? [];
}

function placementText(tensor: Tensor): string {
  return `T${tensor.id} ${placementOf(tensor)}`;
}

/** What the axes that an operand is cut along are to the op. */
function rolesText(op: Op, tensor: Tensor, tensors: readonly Tensor[]): string {
  const made = withoutReductions(at(tensors, op.output).domain.logical);
  const pairs = axisMap(op, tensors).filter(({ operand }) => op.inputs[operand] === tensor.id);
  const roles = shardsOf(tensor).flatMap(({ axis }) => {
    const consumer = pairs.find(({ producer }) => producer.id === axis.id)?.consumer;
    if (consumer === undefined) return [];
    if (consumer.iterType === "reduction") return ["an axis that the op sums over"];
    return [`axis ${made.findIndex(({ id }) => id === consumer.id)} of T${op.output}`];
  });
  return roles.length === 0 ? "" : withNames(`, which is ${roles.join(" and ")}`, tensors);
}

function placementOf({ domain, mesh }: Tensor): string {
  const types = domain.loop.flatMap(({ parallelType, extent }, axis) =>
    !isDID(parallelType) || extent.kind === "symbol"
      ? []
      : [`${mesh?.nameOf(parallelType) ?? parallelType} on axis ${axis}`],
  );
  return `${types.join(", ") || "whole"} on ${mesh?.toString() ?? "device 0"}`;
}
