/** Whether a reference has the inputs and outputs of the program that it is compared with. */
import type { Signature } from "../../compile/lower-all.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { type TensorId, withoutReductions } from "../../ir/domain.ts";
import { evaluateScalar, printScalar } from "../../ir/scalar/scalar.ts";
import { shapeOf, type Sizes } from "../../ir/sizes.ts";
import { at } from "../../support/invariant.ts";

/** Throws `host-programs-differ` for other numbers, dtypes or sizes of inputs or outputs. */
export function requireMatchingReference(reference: Signature, program: Signature, sizes: Sizes): void {
  const own = sizesByPosition(reference, program, sizes);
  for (const side of ["inputs", "outputs"] as const) {
    const found = textOf(reference, reference[side], own);
    const expected = textOf(program, program[side], sizes);
    if (found === expected) continue;
    fail("host-programs-differ", `the reference has other ${side} than the program`, {
      place: { kind: "option", text: "--check" },
      found,
      expected,
      help: "make a Fusion with these whole tensors; --set changes the parameters of a dump's reference",
    });
  }
}

/** The reference may name its symbolic extents otherwise, so they take the sizes at the same positions. */
function sizesByPosition(reference: Signature, program: Signature, sizes: Sizes): Sizes {
  const own = new Map<string, number>();
  reference.inputs.forEach((id, i) => {
    const counterpart = program.inputs[i];
    if (counterpart === undefined) return;
    const shape = shapeOf(at(program.tensors, counterpart), sizes);
    withoutReductions(at(reference.tensors, id).domain.logical).forEach(({ extent }, axis) => {
      const size = shape[axis];
      if (extent.kind === "symbol" && size !== undefined) own.set(extent.name, size);
    });
  });
  return own;
}

/** `float [8, 16], half [4]`; an extent without a size prints by name. */
function textOf({ tensors }: Signature, ids: readonly TensorId[], sizes: Sizes): string {
  const texts = ids.map((id) => {
    const { dtype, domain } = at(tensors, id);
    const shape = withoutReductions(domain.logical).map(
      ({ extent }) => evaluateScalar(extent, (name) => sizes.get(name)) ?? printScalar(extent),
    );
    return `${dtype} [${shape.join(", ")}]`;
  });
  return texts.join(", ") || "none";
}
