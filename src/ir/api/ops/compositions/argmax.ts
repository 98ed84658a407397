/** Where the largest element is, by ops that any sharding of the axis allows. */
import { resolveAxis } from "../../../ops/call.ts";
import { iotaSpec } from "../../../ops/kinds/creation.ts";
import { constant } from "../../../scalar/scalar.ts";
import { at } from "../../../../support/invariant.ts";
import { internals } from "../../handle.ts";
import type { TensorView } from "../../tensor-view.ts";
import { applyIn, callOf } from "../apply.ts";
import { eq, isnan, logicalOr, where } from "../choices.ts";
import { amax, amin } from "../reductions.ts";
import { broadcast } from "../views.ts";
import { keepAxes, mark } from "./compose.ts";

/**
 * The index along `axis` of the largest element, as int64: of the first one if several are equal, and of the first NaN
 * if there is one, as in PyTorch. Takes bool. The reduced axis stays in the output's logical domain, as in `sum`. An
 * axis without elements has no index: the result is beyond it. Throws `axis-out-of-range`.
 */
export function argmax(tensor: TensorView, axis: number): TensorView {
  const place = callOf("argmax", [tensor], axis);
  const own = resolveAxis(axis, tensor.rank, place);
  const { builder } = tensor[internals];
  const most = keepAxes(amax(tensor, [own]), [own], tensor);
  const isMost = logicalOr(eq(tensor, most), isnan(tensor));
  const along = iotaSpec(at(tensor.extents, own), constant(0), constant(1), "int64", place);
  const indices = broadcast(
    applyIn(builder, along, [], place),
    Array.from({ length: tensor.rank }, (_, i) => i !== own),
  );
  const first = amin(where(isMost, indices, Number.MAX_SAFE_INTEGER), [own]);
  mark(first, { name: "argmax", operands: { x: tensor.id }, outputs: [first.id], kept: [], axes: [own] });
  return first;
}
