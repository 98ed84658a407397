/** Where the largest element is, by ops that any sharding of the axis allows. */
import { resolveAxis } from "../../../ops/call.ts";
import type { TensorView } from "../../tensor-view.ts";
import { callOf } from "../apply.ts";
import { eq, isnan, logicalOr, where } from "../choices.ts";
import { amax, amin } from "../reductions.ts";
import { indicesAlong, keepAxes, mark } from "./compose.ts";

/**
 * The index along `axis` of the first largest element, as int64; NaN is the largest, as in PyTorch. Takes bool. The
 * reduced axis stays in the output's logical domain, as in `sum`. An axis without elements has no index: the result is
 * beyond it. Throws `axis-out-of-range`.
 */
export function argmax(tensor: TensorView, axis: number): TensorView {
  const place = callOf("argmax", [tensor], axis);
  const own = resolveAxis(axis, tensor.rank, place);
  const most = keepAxes(amax(tensor, [own]), [own], tensor);
  const isMost = logicalOr(eq(tensor, most), isnan(tensor));
  const first = amin(where(isMost, indicesAlong(tensor, own, place), Number.MAX_SAFE_INTEGER), [own]);
  mark(first, { name: "argmax", operands: { x: tensor.id }, outputs: [first.id], kept: [], axes: [own] });
  return first;
}
