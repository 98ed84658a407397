/** Rotary position embedding. */
import { at } from "../../../../support/invariant.ts";
import { type Call, reject, shapeText } from "../../../ops/call.ts";
import { constantValue } from "../../../scalar/fold.ts";
import { chunk, cat } from "../shape.ts";
import type { TensorView } from "../../tensor-view.ts";
import { add, mul, sub } from "../elementwise.ts";
import { alignRight, floatCall, inDType, mark, wide } from "./compose.ts";
import { lastAxis } from "./statistics.ts";

/**
 * Rotates the two halves x1, x2 of the last axis: x1 cos - x2 sin, then x2 cos + x1 sin. `cos` and `sin` have half of
 * the last axis; they stretch along axes of extent 1, and along leading axes that they lack. 16-bit floats are computed
 * in float. Throws `shape-mismatch`, `dtype-mismatch` (integers and bool), `axis-out-of-range` (no axis),
 * `index-out-of-range` (fewer than two elements), `foreign-tensor`.
 */
export function rope(tensor: TensorView, cos: TensorView, sin: TensorView): TensorView {
  const place = floatCall("rope", [tensor, cos, sin]);
  const axis = lastAxis(tensor, place);
  requireHalves(tensor, cos, sin, place);
  const x = wide(tensor);
  const [first, second] = halves(x);
  const [c, s] = [alignRight(cos, x), alignRight(sin, x)];
  const rotated = [sub(mul(first, c), mul(second, s)), add(mul(second, c), mul(first, s))];
  const y = cat(
    rotated.map((half) => inDType(half, tensor.dtype)),
    axis,
  );
  const operands = { x: tensor.id, cos: cos.id, sin: sin.id };
  mark(y, { name: "rope", operands, outputs: [y.id], kept: [], axes: [axis] });
  return y;
}

/** Throws `shape-mismatch`. Of an extent that is known only at run time, the sizes are checked there. */
function requireHalves(tensor: TensorView, cos: TensorView, sin: TensorView, place: Call): void {
  const extentOf = ({ extents }: TensorView): number | null => {
    const last = extents.at(-1);
    return last === undefined ? null : constantValue(last);
  };
  const extent = extentOf(tensor);
  if (extent === null) return;
  const isOdd = extent % 2 !== 0;
  const other = [cos, sin].find((each) => ![null, 1, extent / 2].includes(extentOf(each)));
  if (!isOdd && other === undefined) return;
  reject(place, {
    code: "shape-mismatch",
    message: isOdd ? "the last axis has no halves" : "an angle does not have half of the last axis",
    found: (other === undefined || isOdd ? [tensor] : [tensor, other]).map((each) => shapeText(each.data())).join(", "),
    expected: "x [.., 2 n], cos [.., n], sin [.., n]",
    help: isOdd ? "give the heads an even size" : "give cos and sin one element per pair of elements that rotate",
  });
}

/** The halves of the last axis. */
export function halves(x: TensorView): readonly [TensorView, TensorView] {
  const parts = chunk(x, 2, -1);
  return [at(parts, 0), at(parts, 1)];
}
