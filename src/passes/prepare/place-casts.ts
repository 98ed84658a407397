/**
 * Gives a cast without a mesh the mesh and DID types of its operand. The API inserts casts to promote operands, and the
 * user has no handle to place them.
 *
 *   T2 = cast(T0[DIDx, _])     ->     T2[DIDx, _] = cast(T0[DIDx, _])
 */
import type { Tensor } from "../../ir/domain.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { reparallelize } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";

export const placeCasts: Pass<"fusion", "fusion"> = {
  name: "place-casts",
  from: "fusion",
  to: "fusion",
  run: (fusion) => {
    const tensors = [...fusion.tensors];
    let changed = false;
    for (const op of fusion.ops) {
      if (op.kind !== "Cast") continue;
      const source = at(tensors, at(op.inputs, 0));
      if (source.mesh === null || at(tensors, op.output).mesh !== null) continue;
      tensors[op.output] = placedLike(op, source, tensors);
      changed = true;
    }
    return changed ? { ...fusion, tensors } : fusion;
  },
};

function placedLike(op: Op, source: Tensor, tensors: readonly Tensor[]): Tensor {
  const types = new Map(axisMap(op, tensors).map(({ producer, consumer }) => [consumer.id, producer.parallelType]));
  return reparallelize(
    at(tensors, op.output),
    (axis) => (types.get(axis.id) === "Stream" ? "Serial" : (types.get(axis.id) ?? axis.parallelType)),
    source.mesh,
  );
}
