/** Calls, which are inlined, loops whose trip count the file says, which are unrolled, and choices of branches. */
import { cast, eq } from "../../../ir/api/ops.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { chosenBy } from "../../views.ts";
import { at } from "../../../support/invariant.ts";
import { wordIn, attributeOf, itemsIn } from "../read-attributes.ts";
import { splatOf, ownView, type MlirValue } from "../value.ts";
import { contradicted, firstRegion, madeValues, operandAt, type ReadRow, type Reading, refuse } from "./reading.ts";
import { withSharding } from "../place.ts";
import { identityRow } from "./shape.ts";

/* Shardy's ops on whole tensors, which say where a value lies and leave it as it is. */

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
    const items = itemsIn(attributeOf(op, name));
    return values.map((value, i) => withSharding(reader, op.position, value, items[i]));
  };
  return sharded(reading.region(firstRegion(reading), sharded(reading.operands, "in_shardings")), "out_shardings");
}

const placing =
  "sharding_constraint reshard data_flow_edge func_data_flow_edge all_gather all_slice all_to_all all_reduce " +
  "reduce_scatter collective_permute replicated_to_unreduced sharded_to_unreduced";

export const shardyRows: Readonly<Record<string, ReadRow>> = {
  ...Object.fromEntries(
    placing.split(" ").map((name) => [`sdy.${name}`, { read: constraint, note: "as the sharding of its result" }]),
  ),
  "sdy.named_computation": { read: namedComputation, note: "inlined" },
  "sdy.propagation_barrier": { ...identityRow, note: "has no effect" },
  "sdy.sharding_group": { read: () => [], note: "has no effect" },
};

function callFunction(reading: Reading): readonly MlirValue[] {
  const { op, operands } = reading;
  const name = wordIn(attributeOf(op, "callee") ?? op.items[0] ?? null);
  return name === null ? refuse(reading, "no name of a function", "@name") : reading.call(name, operands);
}

/** The op as its decomposition, a function of the module. */
function composite(reading: Reading): readonly MlirValue[] {
  const name = wordIn(attributeOf(reading.op, "decomposition"));
  return name === null
    ? refuse(reading, "no decomposition", "decomposition = @name")
    : reading.call(name, reading.operands);
}

const mostIterations = 10_000;

function whileLoop(reading: Reading): readonly MlirValue[] {
  const [condition, body] = [firstRegion(reading), firstRegion(reading, 1)];
  let values = reading.operands;
  for (let iteration = 0; ; iteration++) {
    const [holds] = reading.region(condition, values);
    const known = holds === undefined ? null : splatOf(holds);
    if (known === null)
      return refuse(
        reading,
        "a number of iterations that a run computes",
        "a loop whose condition depends on constants, as of lax.scan and lax.fori_loop",
      );
    if (Number(known) === 0) return values;
    if (iteration === mostIterations)
      return refuse(
        reading,
        `more than ${mostIterations} iterations`,
        "a loop that can be unrolled",
        "shorten the loop, or lower its body alone",
      );
    values = reading.region(body, values);
  }
}

/** `case` and `if`: the branch of a known index, or a choice among the results of all. */
function choice(reading: Reading, branchOf: (index: number) => number): readonly MlirValue[] {
  const { op } = reading;
  const index = operandAt(reading);
  const known = splatOf(index);
  const last = op.regions.length - 1;
  if (last < 0) contradicted(reading, "no branch", "at least one branch");
  if (known !== null) {
    const branch = branchOf(Number(known));
    return reading.region(at(op.regions, branch >= 0 && branch <= last ? branch : last), []);
  }
  const branches = op.regions.map((region) => reading.region(region, []));
  if (branches.some(({ length }) => length !== op.results.length)) {
    contradicted(reading, "branches of other numbers of results", `${op.results.length} from each`);
  }
  const make = (): readonly TensorView[] => {
    const chosen = ownView(reading, index);
    const number = chosen.dtype === "bool" ? cast(chosen, "int") : chosen;
    return op.results.map((_, i) => {
      const results = branches.map((values) => ownView(reading, at(values, i)));
      return results
        .slice(0, -1)
        .reduceRight(
          (rest, value, branch) => chosenBy(eq(number, chosen.dtype === "bool" ? 1 - branch : branch), value, rest),
          at(results, last),
        );
    });
  };
  return madeValues(reading, make, [index, ...branches.flat()]);
}

export const controlRows: Readonly<Record<string, ReadRow>> = {
  "func.call": { read: callFunction, note: "inlined" },
  call: { read: callFunction, note: "inlined" },
  "stablehlo.composite": { read: composite, note: "as its decomposition" },
  "stablehlo.while": {
    read: whileLoop,
    note: `of a constant number of iterations, at most ${mostIterations}; unrolled`,
  },
  "stablehlo.case": { read: (reading) => choice(reading, (index) => index), note: "computes all branches" },
  "stablehlo.if": {
    read: (reading) => choice(reading, (index) => (index === 0 ? 1 : 0)),
    note: "computes both branches",
  },
};
