/**
 * Puts inputs in place of the outputs that are to be written over them (`Alias`), so that both are one buffer.
 *
 *   (T0, T1) -> (T2), T2 over T0:  PostOnStream(HostUnit0, Inputs:{T0, T1}, Outputs:{T2})
 * becomes
 *   (T0, T1) -> (T0):              PostOnStream(HostUnit0, Inputs:{T0, T1}, Outputs:{T0})
 *
 * Everything that reads the input has to come before the first write of the output. Otherwise the output stays, and
 * ends with a copy, T0 = Set(T2). So it does if peers access one of the two.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { HostProgram, Statement } from "../../host/nodes.ts";
import { isOp, isSlicing, walk } from "../../host/traverse.ts";
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { Alias } from "../../ir/fusion-data.ts";
import { layoutOf, sameLayout } from "../../ir/layout.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { at } from "../../support/invariant.ts";
import { withSerialStream } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { collectUses } from "./uses.ts";

export const writeOverInputs: Pass<"communicating", "communicating"> = {
  name: "write-over-inputs",
  from: "communicating",
  to: "communicating",
  run: (program) => (program.aliases ?? []).reduce(writeOver, program),
};

/** Throws `alias-invalid` for an output that lies otherwise on the devices than the input. */
function writeOver(program: HostProgram, { output: position, input }: Alias): HostProgram {
  const output = at(program.outputs, position);
  if (output === input) return program;
  const [made, replaced] = [at(program.tensors, output), at(program.tensors, input)];
  if (!liesAlike(made, replaced)) unlike(made, replaced);
  const outputs = program.outputs.with(position, input);
  if (!isLastUse(program, output, input)) {
    const copy: Statement = { kind: "Set", inputs: [output], output: input };
    // The loops over its chunks are made. The copy is of the whole.
    const tensors = program.tensors.with(input, withSerialStream(replaced));
    return { ...program, tensors, outputs, body: [...program.body, copy] };
  }
  return { ...program, outputs, body: renamed(program.body, output, input) };
}

function liesAlike(a: Tensor, b: Tensor): boolean {
  const [own, other] = [layoutOf(a), layoutOf(b)];
  return own === null || other === null ? own === other : sameLayout(own, other);
}

function unlike(made: Tensor, replaced: Tensor): never {
  fail({
    code: "alias-invalid",
    message: "an output lies on the devices otherwise than the input that it replaces",
    place: { kind: "tensor", text: printTensor(made) },
    found: `${printTensor(made)} for ${printTensor(replaced)}`,
    expected: "one mesh and one sharding for both",
    help: "annotate the output like the input, or leave it without annotations if its operands have them",
  });
}

/** Whether nothing uses the input once the output is being written, and each of the two is in this device's memory. */
function isLastUse(program: HostProgram, output: TensorId, input: TensorId): boolean {
  const { body, tensors } = program;
  const all = walk(body);
  if ([output, input].some((id) => at(tensors, id).memory === "symmetric")) return false;
  if (all.some((each) => each.kind === "P2PCommunication" && [output, input].includes(each.buffer))) return false;
  // What a view of the input is bound to, and views of that.
  const views = new Set([input]);
  for (const each of all) {
    const isView = isSlicing(each) || (isOp(each) && rowOf(each).isView);
    const source = isSlicing(each) ? each.input : isOp(each) ? each.inputs[0] : undefined;
    if (isView && source !== undefined && views.has(source)) views.add(each.output);
  }
  const uses = collectUses(program);
  const positionsOf = (ids: ReadonlySet<TensorId>): readonly number[] =>
    body.flatMap((statement, i) => ([...uses.of(statement)].some((id) => ids.has(id)) ? [i] : []));
  const [last = -1] = positionsOf(views).slice(-1);
  const [first = body.length] = positionsOf(new Set([output]));
  if (last !== first) return last < first;
  const both = at(body, first);
  return both.kind === "PostOnStream" || isOp(both);
}

/** The statements with `input` in place of `output`, which needs no memory. */
function renamed(body: readonly Statement[], output: TensorId, input: TensorId): readonly Statement[] {
  const to = (id: TensorId): TensorId => (id === output ? input : id);
  return body.flatMap((each): readonly Statement[] => {
    if (isOp(each)) {
      const further = each.further === undefined ? {} : { further: each.further.map(to) };
      return [{ ...each, inputs: each.inputs.map(to), output: to(each.output), ...further }];
    }
    switch (each.kind) {
      case "Allocate":
      case "Deallocate":
        return each.tensor === output ? [] : [each];
      case "HirAliasSelect":
      case "ShardByStream":
      case "Communication":
      case "CollectivePermute":
        return [{ ...each, input: to(each.input), output: to(each.output) }];
      case "PostOnStream":
        return [{ ...each, inputs: each.inputs.map(to), outputs: each.outputs.map(to) }];
      case "ForLoop":
        return [{ ...each, body: renamed(each.body, output, input) }];
      case "IfThenElse":
        return [{ ...each, then: renamed(each.then, output, input), else: renamed(each.else, output, input) }];
      default:
        return [each];
    }
  });
}
