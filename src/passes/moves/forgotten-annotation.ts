/** Moves that a forgotten annotation explains: each device gets all of a tensor, for work that could stay cut. */
import { shardsOf } from "../../ir/shards.ts";
import type { DIDType, IterDomain, Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";

/** A tensor that lowering gathers. */
export interface GatheredTensor {
  readonly tensor: TensorId;
  readonly along: DIDType;
  /** The op that gathers it, of the Fusion after insert-routes. */
  readonly set: Op;
  /** The op of the program that needs it; null if there is none. */
  readonly reader: Op | null;
}

/** A sentence, or null. `before` is the Fusion as the user wrote it. */
export function forgottenAnnotation(
  { tensor, along, set, reader }: GatheredTensor,
  fusion: FusionData,
  before: FusionData,
): string | null {
  return (
    gatheredWeight(tensor, along, reader, fusion.tensors, before) ??
    gatheredAndCutAgain(tensor, along, set, fusion, before)
  );
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
  tensor: TensorId,
  along: DIDType,
  set: Op,
  fusion: FusionData,
  before: FusionData,
): string | null {
  const gathered = shardsOf(at(fusion.tensors, tensor)).find(({ type }) => type === along)?.axis;
  if (gathered === undefined) return null;
  const { ops, tensors } = fusion;
  const copy = axisAfter(set, new Map([[tensor, gathered]]), tensors);
  if (copy === null) return null;
  const whole = new Map<TensorId, IterDomain>([[set.output, copy]]);
  for (const op of ops.slice(ops.indexOf(set) + 1)) {
    const axis = axisAfter(op, whole, tensors);
    if (axis === null) continue;
    const shard = shardsOf(at(tensors, op.output)).find(({ type }) => type === along);
    if (shard === undefined) whole.set(op.output, axis);
    else if (shard.axis.id === axis.id) {
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
