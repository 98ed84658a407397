/**
 * Lets point-to-point loops handle a reduction over a sharded Stream axis. The loop exchanges the devices' shares, and
 * a separate reduction follows it. It adds the shares in device order, so that every form of the loop gives the same
 * bits as a rooted Reduce.
 *
 *   T2[rStream a, DIDx b] = reduction(T1[DIDx a, b], {a})
 * becomes
 *   T3[Stream a, DIDx b] = Set(T1)
 *   T2[r a, DIDx b] = reduction(T3, {a})
 *
 * With the option `p2p: "broadcast"` each chunk is a rooted Reduce instead, and the pass does nothing.
 */
import { isOp } from "../../host/traverse.ts";
import type { Statement } from "../../host/nodes.ts";
import { at } from "../../support/invariant.ts";
import { addShares, reparallelize, type TensorEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { loopedAxis } from "./looped-axis.ts";
import { pointToPointForm } from "./point-to-point-form.ts";

export const exchangeReductions: Pass<"segmented", "segmented"> = {
  name: "exchange-reductions",
  from: "segmented",
  to: "segmented",
  run: (program, { options }) => {
    if (options.p2p === "broadcast") return program;
    const edit: TensorEdit = { tensors: [...program.tensors], iterDomainCount: program.iterDomainCount };
    const body = program.body.flatMap((statement): readonly Statement[] => {
      if (!isOp(statement) || statement.kind !== "Reduction") return [statement];
      const looped = loopedAxis(statement, edit.tensors, options);
      if (looped === null || pointToPointForm(statement, looped, edit.tensors, options)?.kind !== "reduce")
        return [statement];
      const output = at(edit.tensors, statement.output);
      const shares = addShares(edit, output, looped.axis, "Stream");
      edit.tensors[output.id] = reparallelize(output, ({ id, parallelType }) =>
        id === looped.part.id ? "Serial" : parallelType,
      );
      return [
        { kind: "Set", inputs: statement.inputs, output: shares.id },
        { ...statement, inputs: [shares.id] },
      ];
    });
    return edit.tensors.length === program.tensors.length ? program : { ...program, ...edit, body };
  },
};
