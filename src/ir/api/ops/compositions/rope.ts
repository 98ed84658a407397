/** Rotary position embedding. */
import type { DType } from "../../../../numerics/dtype.ts";
import { at } from "../../../../support/invariant.ts";
import { type Call, reject, shapeText } from "../../../ops/call.ts";
import { constantValue, foldDiv } from "../../../scalar/fold.ts";
import { constant } from "../../../scalar/scalar.ts";
import { cat, chunk, unsqueeze } from "../shape.ts";
import { reshape, select } from "../views.ts";
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
  lastAxis(tensor, place);
  requireHalves(tensor, cos, sin, place);
  return rotated(tensor, cos, sin, { pairs: "halves", dtype: tensor.dtype });
}

/** Which elements of the last axis rotate together: i and n + i, or 2 i and 2 i + 1. */
export type RotatedPairs = "halves" | "neighbours";

/** `rope` of operands that fit, with a result of `dtype`. */
export function rotated(
  tensor: TensorView,
  cos: TensorView,
  sin: TensorView,
  { pairs, dtype }: { readonly pairs: RotatedPairs; readonly dtype: DType },
): TensorView {
  const [first, second] = pairsOf(tensor, pairs);
  const [c, s] = [alignRight(cos, tensor), alignRight(sin, tensor)];
  const parts = [sub(mul(first, c), mul(second, s)), add(mul(second, c), mul(first, s))].map((part) =>
    inDType(part, dtype),
  );
  const y =
    pairs === "halves"
      ? cat(parts, -1)
      : reshape(
          cat(
            parts.map((part) => unsqueeze(part, -1)),
            -1,
          ),
          tensor.extents,
        );
  const operands = { x: tensor.id, cos: cos.id, sin: sin.id };
  mark(y, { name: "rope", operands, outputs: [y.id], kept: [], axes: [tensor.rank - 1], pairs });
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

/** The two elements of each pair, in the dtype to compute in. */
export function pairsOf(x: TensorView, pairs: RotatedPairs): readonly [TensorView, TensorView] {
  if (pairs === "halves") {
    const parts = chunk(wide(x), 2, -1);
    return [at(parts, 0), at(parts, 1)];
  }
  // Casts come after the views: a cast before them would be stored.
  const rows = x.extents.slice(0, -1);
  const both = reshape(x, [...rows, foldDiv(at(x.extents, rows.length), constant(2)), 2]);
  return [wide(select(both, -1, 0)), wide(select(both, -1, 1))];
}
