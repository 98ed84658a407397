/**
 * Lets the point-to-point schedules carry a reduction over a sharded Stream axis: the shares are exchanged in the loop and reduced
 * behind it, where their order is that of the devices and every schedule gives the bits of the rooted Reduce.
 *
 *   T2[rStream a, DIDx b] = reduction(T1[DIDx a, b], {a})
 * becomes
 *   T3[Stream a, DIDx b] = Set(T1)
 *   T2[r a, DIDx b] = reduction(T3, {a})
 */
import type { IterDomain, Tensor } from "../../ir/domain.ts";
import type { HostProgram, Statement } from "../../host/nodes.ts";
import { isOp } from "../../host/statement-kinds.ts";
import { at } from "../../support/invariant.ts";
import { cloneAxes, newTensor, reparallelize } from "../edit/fusion-edit.ts";
import { loopedAxis } from "./looped-axis.ts";
import type { LoweringOptions } from "../options.ts";
import { pointToPointForm } from "./point-to-point-form.ts";

/** The same program where there is no such reduction. */
export function exchangeReductions(program: HostProgram, options: LoweringOptions): HostProgram {
  const tensors: Tensor[] = [...program.tensors];
  let { iterDomainCount } = program;
  const body = program.body.flatMap((statement): readonly Statement[] => {
    const stream = loopedAxis(statement, tensors, options);
    if (stream === null || !isOp(statement) || statement.kind !== "Reduction") return [statement];
    if (pointToPointForm(statement, stream, tensors)?.kind !== "reduce") return [statement];
    const output = at(tensors, statement.output);
    const { logical } = output.domain;
    const axes = cloneAxes(logical, iterDomainCount, ({ parallelType }) => parallelType).map((axis): IterDomain => ({
      ...axis,
      iterType: "iteration",
    }));
    iterDomainCount += axes.length;
    const shares = newTensor(tensors.length, output, axes, output.mesh);
    tensors.push(shares);
    tensors[output.id] = reparallelize(
      output,
      ({ id, parallelType }) => (id === stream.id ? "Serial" : parallelType),
      output.mesh,
    );
    return [
      { kind: "Set", inputs: statement.inputs, output: shares.id },
      { ...statement, inputs: [shares.id] },
    ];
  });
  return tensors.length === program.tensors.length ? program : { ...program, tensors, body, iterDomainCount };
}
