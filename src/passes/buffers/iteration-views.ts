/** The slices through which an iteration of a loop uses buffers that are allocated before it. */
import { type IterDomain, isDID, type TensorId } from "../../ir/domain.ts";
import type { HirAliasSelect, HostProgram, Statement } from "../../host/nodes.ts";
import { accessesOf } from "../../host/traverse.ts";
import { at } from "../../support/invariant.ts";
import type { Guard, Step } from "./iteration-steps.ts";

/** A slice of a candidate, or a slice of a slice. */
export interface View {
  readonly of: TensorId;
  /** Whether it covers all that the device has of the iteration's slice. */
  readonly whole: boolean;
  readonly position: number;
  readonly guards: readonly Guard[];
}

export interface Views {
  readonly byTensor: ReadonlyMap<TensorId, View>;
  readonly slicesOf: ReadonlyMap<TensorId, readonly HirAliasSelect[]>;
  readonly unfit: ReadonlySet<TensorId>;
}

/** The slices of `candidates` in `steps`. `unfit` are the candidates whose slices are ambiguous within an iteration. */
export function collectViews(program: HostProgram, steps: readonly Step[], candidates: ReadonlySet<TensorId>): Views {
  const byTensor = new Map<TensorId, View>();
  const slicesOf = new Map<TensorId, HirAliasSelect[]>();
  const unfit = new Set<TensorId>();
  for (const [position, { statement, guards }] of steps.entries()) {
    if (statement.kind === "ForLoop") {
      for (const tensor of namedIn(statement.body)) {
        if (candidates.has(tensor)) unfit.add(tensor);
        const view = byTensor.get(tensor);
        if (view !== undefined) unfit.add(view.of);
      }
    }
    if (statement.kind !== "HirAliasSelect") continue;
    const { input, output, axis } = statement;
    const outer = byTensor.get(input);
    const again = byTensor.get(output);
    if (again !== undefined) unfit.add(again.of);
    if (candidates.has(input)) {
      slicesOf.set(input, [...(slicesOf.get(input) ?? []), statement]);
      byTensor.set(output, { of: input, whole: true, position, guards });
    } else if (outer !== undefined) {
      const selected: IterDomain = at(at(program.tensors, input).domain.logical, axis);
      const whole = outer.whole && isDID(selected.parallelType);
      byTensor.set(output, { of: outer.of, whole, position, guards: [...outer.guards, ...guards] });
    }
  }
  return { byTensor, slicesOf, unfit };
}

function namedIn(body: readonly Statement[]): readonly TensorId[] {
  return body.flatMap((statement): readonly TensorId[] => {
    if (statement.kind === "ForLoop") return namedIn(statement.body);
    if (statement.kind === "IfThenElse") return [...namedIn(statement.then), ...namedIn(statement.else)];
    const { reads, writes } = accessesOf(statement);
    return [...reads, ...writes];
  });
}
