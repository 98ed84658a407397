/** Shardy's ops on whole tensors, which say where a value lies and leave it as it is. */
import { constrained, withSharding } from "../place.ts";
import { attributeOf } from "../read-attributes.ts";
import { readSharding } from "../sharding.ts";
import type { MlirValue } from "../value.ts";
import { firstRegion, operandAt, type ReadRow, type Reading } from "./reading.ts";
import { identityRow } from "./shape.ts";

/** `sdy.sharding_constraint %0 <@mesh, [..]> : t`, and `sharding = #sdy.sharding<..>` in the generic form. */
function constraint(reading: Reading): readonly MlirValue[] {
  const { reader, op } = reading;
  const attribute = attributeOf(op, "sharding", "out_sharding") ?? op.items.find(isSharding);
  return [withSharding(reader, op.position, operandAt(reading), attribute ?? undefined)];
}

function isSharding(item: Reading["op"]["items"][number]): boolean {
  return item.kind === "named" || (item.kind === "group" && item.open === "<");
}

/** A region of its own, with shardings of what goes in and out. */
function namedComputation(reading: Reading): readonly MlirValue[] {
  const { reader, op } = reading;
  const sharded = (values: readonly MlirValue[], name: string): readonly MlirValue[] => {
    const attribute = attributeOf(op, name);
    const list = attribute?.kind === "named" && attribute.body.kind === "group" ? attribute.body.items[0] : attribute;
    if (list?.kind !== "group") return values;
    return values.map((value, i) => {
      const item = list.items[i];
      return item === undefined
        ? value
        : constrained(reader, op.position, value, readSharding(reader, op.position, item));
    });
  };
  return sharded(reading.region(firstRegion(reading), sharded(reading.operands, "in_shardings")), "out_shardings");
}

const note = "as the sharding of its result";

export const shardyRows: Readonly<Record<string, ReadRow>> = {
  "sdy.sharding_constraint": { read: constraint, note },
  "sdy.reshard": { read: constraint, note },
  "sdy.data_flow_edge": { read: constraint, note },
  "sdy.all_gather": { read: constraint, note },
  "sdy.all_slice": { read: constraint, note },
  "sdy.all_to_all": { read: constraint, note },
  "sdy.all_reduce": { read: constraint, note },
  "sdy.reduce_scatter": { read: constraint, note },
  "sdy.collective_permute": { read: constraint, note },
  "sdy.named_computation": { read: namedComputation, note: "inlined" },
  "sdy.propagation_barrier": { ...identityRow, note: "has no effect" },
  "sdy.sharding_group": { read: () => [], note: "has no effect" },
};
