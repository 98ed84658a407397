/** How many devices a model is for, and where tensors lie that no annotation reaches. */
import { fusionState } from "../../ir/api/handle.ts";
import { TensorView } from "../../ir/api/tensor-view.ts";
import { outputsOf } from "../../ir/ops/op.ts";
import { createUnionFind } from "../../support/union-find.ts";
import type { Reader } from "./reader.ts";

/** As many as the meshes of the tensors name, or else those of the module. */
export function devicesOf({ fusion, meshes, module }: Reader): number | null {
  const placed = fusion.data().tensors.flatMap(({ mesh }) => mesh ?? []);
  const all = placed.length > 0 ? placed : [...meshes.byName.values()].flatMap(({ devices }) => devices ?? []);
  const last = [...new Set(all)].reduce((most, mesh) => Math.max(most, ...mesh.devices), -1);
  const partitions = module.attributes.get("mhlo.num_partitions");
  const count = partitions?.kind === "number" ? Number(partitions.text) : 0;
  return Math.max(last + 1, count) || null;
}

/**
 * Gives parts of the program that no annotation reaches a place: all devices, each with the whole. Outputs that only
 * constants give have none either, whatever else reads these.
 */
export function placeRest({ fusion, meshes }: Reader): void {
  const { tensors, ops, inputs, outputs } = fusion.data();
  const placed = tensors.flatMap(({ mesh }) => mesh ?? []);
  const all = placed.length > 0 ? placed : [...meshes.byName.values()].flatMap(({ devices }) => devices ?? []);
  const [mesh] = all.toSorted((a, b) => b.devices.length - a.devices.length);
  if (mesh === undefined) return;
  const parts = createUnionFind(tensors.length);
  const derived = new Set(inputs);
  for (const op of ops) {
    for (const made of outputsOf(op)) {
      for (const id of op.inputs) parts.union(id, made);
      if (op.inputs.some((id) => derived.has(id)) || tensors[made]?.mesh !== null) derived.add(made);
    }
  }
  const reached = new Set(tensors.flatMap(({ id, mesh: own }) => (own === null ? [] : [parts.find(id)])));
  const unreached = [...inputs, ...ops.flatMap((op) => (op.inputs.length === 0 ? outputsOf(op) : []))].filter(
    (id) => !reached.has(parts.find(id)),
  );
  for (const id of new Set([...unreached, ...outputs.filter((each) => !derived.has(each))])) {
    new TensorView({ builder: fusion[fusionState], id }).setDeviceMesh(mesh);
  }
}
