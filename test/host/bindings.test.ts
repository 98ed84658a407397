/**
 * Bindings after a branch: a tensor is bound if either side leaves it bound, also if sides free, nest, and undo each
 * other.
 */
import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { type BoundTensors, createBoundTensors } from "../../src/host/validate/validate.ts";
import type { TensorId } from "../../src/ir/domain.ts";
import { makeId } from "../../src/support/invariant.ts";

const tensors = [0, 1, 2, 3].map((i) => makeId<TensorId>(i));

type Step =
  | { readonly kind: "add" | "delete"; readonly tensor: TensorId }
  | { readonly kind: "either"; readonly then: readonly Step[]; readonly otherwise: readonly Step[] };

function follow(bound: BoundTensors, steps: readonly Step[]): void {
  for (const step of steps) {
    if (step.kind === "either") {
      bound.either(
        () => {
          follow(bound, step.then);
        },
        () => {
          follow(bound, step.otherwise);
        },
      );
    } else bound[step.kind](step.tensor);
  }
}

/** The same by copies. */
function left(before: ReadonlySet<TensorId>, steps: readonly Step[]): ReadonlySet<TensorId> {
  const bound = new Set(before);
  for (const step of steps) {
    if (step.kind === "either") {
      const sides = [...left(bound, step.then), ...left(bound, step.otherwise)];
      bound.clear();
      for (const tensor of sides) bound.add(tensor);
    } else bound[step.kind](step.tensor);
  }
  return bound;
}

const { steps } = fc.letrec<{ readonly step: Step; readonly steps: readonly Step[] }>((tie) => ({
  step: fc.oneof(
    { maxDepth: 3 },
    fc.record({ kind: fc.constantFrom("add", "delete"), tensor: fc.constantFrom(...tensors) }),
    fc.record({ kind: fc.constant("either"), then: tie("steps"), otherwise: tie("steps") }),
  ),
  steps: fc.array(tie("step"), { maxLength: 4 }),
}));

describe("bound tensors", () => {
  it("are those of copies made at every branch", () => {
    let branches = 0;
    fc.assert(
      fc.property(fc.subarray(tensors), steps, (initial, program) => {
        const bound = createBoundTensors(initial);
        follow(bound, program);
        const expected = left(new Set(initial), program);
        expect(tensors.filter((tensor) => bound.has(tensor))).toEqual(tensors.filter((tensor) => expected.has(tensor)));
        if (program.some(({ kind }) => kind === "either")) branches++;
      }),
      { numRuns: 500 },
    );
    expect(branches).toBeGreaterThan(100);
  });
});
