/**
 * Frees every intermediate after its last use, in the innermost scope that holds all its uses.
 *
 *   T1 = ALLOCATE(...); T1 = Set(T0); T2 = Set(T1); T3 = Set(T0)
 * becomes
 *   T1 = ALLOCATE(...); T1 = Set(T0); T2 = Set(T1); Deallocate T1; T3 = Set(T0)
 *
 * A use of a view (HirAliasSelect, ShardByStream) is a use of the tensor that it views, and a Wait is a use of the
 * operands of its communication. Inputs, outputs and tensors that the program frees already stay. nvFuser has
 * AllocateAndDeallocate on its other path only.
 */
import type { TensorId } from "../../ir/domain.ts";
import type { HostProgram } from "../../host/nodes.ts";
import { isSlicing, walk, writesOf } from "../../host/traverse.ts";
import type { Pass } from "../pass.ts";
import { collectUses, freeInScope } from "./uses.ts";

export const deallocate: Pass<"communicating", "communicating"> = {
  name: "deallocate",
  from: "communicating",
  to: "communicating",
  run: (program, { options }) => {
    if (!options.deallocate) return program;
    const uses = collectUses(program);
    const body = freeInScope(program.body, ownedTensors(program), uses);
    return body === program.body ? program : { ...program, body };
  },
};

/** Tensors that the program allocates and does not free: no inputs, outputs or views. */
function ownedTensors(program: HostProgram): ReadonlySet<TensorId> {
  const owned = new Set<TensorId>();
  const others = new Set<TensorId>([...program.inputs, ...program.outputs]);
  for (const statement of walk(program.body)) {
    if (isSlicing(statement)) others.add(statement.output);
    else if (statement.kind === "Deallocate") others.add(statement.tensor);
    else for (const tensor of writesOf(statement)) owned.add(tensor);
  }
  for (const tensor of others) owned.delete(tensor);
  return owned;
}
