/** Sorting: the order of one operand, and all operands in it. `top_k` takes the first elements of an order. */
import { argsort, cast, gather, topk } from "../../../ir/api/ops.ts";
import { at } from "../../../support/invariant.ts";
import { number, requireAxes } from "../read-attributes.ts";
import { dtypeIn, scalarOf, splatOf, type MlirValue, ownWhole } from "../value.ts";
import { firstRegion, madeValues, operandAt, type ReadRow, type Reading, refuse, resultType } from "./reading.ts";

function sortValues(reading: Reading): readonly MlirValue[] {
  const { reader, op, operands } = reading;
  const { shape } = operandAt(reading).type;
  const dimension = number(reader, op, ["dimension"], -1);
  const axis = dimension < 0 ? dimension + shape.length : dimension;
  requireAxes(reader, op, [axis], shape.length);
  const direction = directionOf(reading);
  return madeValues(reading, () => {
    const tensors = operands.map((value) => ownWhole(reading, value));
    const order = argsort(at(tensors, 0), axis, { descending: direction === "descending" });
    return tensors.map((tensor) => gather(tensor, axis, order));
  });
}

/** Whether the region puts smaller elements first, tried on two pairs. */
function directionOf(reading: Reading): "ascending" | "descending" {
  const { reader, operands } = reading;
  const region = firstRegion(reading);
  const isFirst = (a: number, b: number): boolean => {
    const scalars = operands.flatMap(({ type }) => [a, b].map((each) => scalarOf(reader, type.element, each)));
    const [result] = reading.region(region, scalars);
    return result !== undefined && Number(splatOf(result) ?? 0) === 1;
  };
  const found = [isFirst(0, 1), isFirst(1, 0), isFirst(1, 1)].join(" ");
  if (found === "true false false") return "ascending";
  if (found === "false true false") return "descending";
  return refuse(reading, "an order of another form", "a comparison of the first operand by LT or GT");
}

/** `%values, %indices = chlo.top_k(%x, k = 2)`, along the last axis. */
function topK(reading: Reading): readonly MlirValue[] {
  const { reader, op } = reading;
  const value = operandAt(reading);
  const k = number(reader, op, ["k"]);
  const axis = value.type.shape.length - 1;
  return madeValues(reading, () => {
    const { values, indices } = topk(ownWhole(reading, value), k, axis);
    return [values, cast(indices, dtypeIn(resultType(reading, 1)))];
  });
}

export const sortingRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.sort": { read: sortValues, note: "by one operand" },
  "chlo.top_k": { read: topK },
};
