/** Adds axes of extent 1. */
import { at } from "../../../../support/invariant.ts";
import { type AxisShape, type Tensor, withoutReductions } from "../../../domain.ts";
import { constant } from "../../../scalar/scalar.ts";
import { type Call, rankOf, reject, shapeText } from "../../call.ts";
import type { OpBase, OpRow, SpecOf } from "../../row.ts";
import { axisView } from "../families.ts";

export interface BroadcastOp extends OpBase {
  readonly kind: "Broadcast";
  /** Whether axis i of the output is new. The other axes are the operand's, in order. */
  readonly flags: readonly boolean[];
}

/** Throws `bad-argument`. */
export function broadcastSpec(tensor: Tensor, flags: readonly boolean[], place: Call): SpecOf<BroadcastOp> {
  const kept = flags.filter((flag) => !flag).length;
  const rank = rankOf(tensor);
  if (kept !== rank) {
    reject(place, {
      code: "bad-argument",
      message: "a broadcast has the wrong number of false flags",
      found: `${kept} false flag${kept === 1 ? "" : "s"} for ${shapeText(tensor)}`,
      expected: `${rank} false flag${rank === 1 ? "" : "s"}, one per axis of the tensor, and true for each new axis`,
      help: "give one flag per axis of the output",
    });
  }
  return { kind: "Broadcast", flags: [...flags] };
}

export const broadcastRow: OpRow<BroadcastOp> = {
  ...axisView<BroadcastOp>(({ flags }) => flags.flatMap((flag, axis) => (flag ? [] : [{ axis, offset: 0 }]))),
  standalone: false,
  shape: ({ flags }, operands) => {
    const own = withoutReductions(at(operands, 0).domain.logical).values();
    const axes = flags.flatMap((flag): readonly AxisShape[] => {
      if (flag) return [{ extent: constant(1), iterType: "broadcast" }];
      const next = own.next();
      return next.done === true ? [] : [next.value];
    });
    return { axes };
  },
  respec: ({ flags }, operands, _, place) => broadcastSpec(at(operands, 0), flags, place),
};
