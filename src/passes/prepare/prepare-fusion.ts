/**
 * What lowering takes for granted, made so before the first pass: ops that no output needs are gone, and a cast that the API put in
 * to promote an operand lies where that operand lies, as the user has no handle to say so. Without overlap no axis is Stream.
 */
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { reparallelize } from "../edit/fusion-edit.ts";
import type { LoweringOptions } from "../options.ts";

export function prepareFusion(fusion: FusionData, { overlap }: Pick<LoweringOptions, "overlap">): FusionData {
  const placed = placeCasts(withoutDeadOps(fusion));
  return overlap ? placed : withoutStreams(placed);
}

function withoutStreams(fusion: FusionData): FusionData {
  const tensors = fusion.tensors.map((tensor) =>
    reparallelize(tensor, ({ parallelType }) => (parallelType === "Stream" ? "Serial" : parallelType), tensor.mesh),
  );
  return tensors.every((tensor, i) => tensor === fusion.tensors[i]) ? fusion : { ...fusion, tensors };
}

/** The Fusion without the ops that lead to no output. */
export function withoutDeadOps(fusion: FusionData): FusionData {
  const needed = new Set<TensorId>(fusion.outputs);
  const live: Op[] = [];
  for (const op of fusion.ops.toReversed()) {
    if (!needed.has(op.output)) continue;
    for (const input of op.inputs) needed.add(input);
    live.push(op);
  }
  return live.length === fusion.ops.length ? fusion : { ...fusion, ops: live.reverse() };
}

/** A cast without a mesh, of a tensor with one, takes its mesh and DID types. */
function placeCasts(fusion: FusionData): FusionData {
  const tensors = [...fusion.tensors];
  let changed = false;
  for (const op of fusion.ops) {
    const source = at(tensors, at(op.inputs, 0));
    if (op.kind !== "Cast" || source.mesh === null || at(tensors, op.output).mesh !== null) continue;
    tensors[op.output] = placeLike(op, source, tensors);
    changed = true;
  }
  return changed ? { ...fusion, tensors } : fusion;
}

function placeLike(op: Op, source: Tensor, tensors: readonly Tensor[]): Tensor {
  const types = new Map(axisMap(op, tensors).map(({ producer, consumer }) => [consumer.id, producer.parallelType]));
  return reparallelize(
    at(tensors, op.output),
    (axis) => (types.get(axis.id) === "Stream" ? "Serial" : (types.get(axis.id) ?? axis.parallelType)),
    source.mesh,
  );
}
