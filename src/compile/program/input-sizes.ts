/** The sizes of symbolic extents, from meshes and from `--sizes`. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { Signature } from "../lower-all.ts";
import { requireMeshSizes, type Sizes, sizesFromMeshes } from "../../ir/sizes.ts";
import { at } from "../../support/invariant.ts";
import { suggestion } from "../../support/wording.ts";

/** Throws `size-unknown`, `size-missing`, `size-contradicts-mesh`. */
export function inputSizes(program: Signature, given: ReadonlyMap<string, number>): Sizes {
  const symbols = inputSymbols(program);
  const unknown = [...given.keys()].find((name) => !symbols.includes(name));
  if (unknown !== undefined) failUnknown(unknown, symbols);
  const sizes = new Map([...sizesFromMeshes(program.tensors), ...given]);
  const missing = symbols.filter((name) => !sizes.has(name));
  if (missing.length > 0) failMissing(missing);
  requireMeshSizes(program.tensors, sizes);
  return sizes;
}

/** The printed names of the inputs' symbolic extents, in order. */
function inputSymbols(program: Signature): readonly string[] {
  const axes = program.inputs.flatMap((id) => at(program.tensors, id).domain.logical);
  return [...new Set(axes.flatMap(({ extent }) => (extent.kind === "symbol" ? [extent.name] : [])))];
}

function failUnknown(name: string, symbols: readonly string[]): never {
  const none = symbols.length === 0;
  fail("size-unknown", `the program has no symbolic extent ${name}`, {
    place: { kind: "option", text: "--sizes" },
    found: name,
    expected: none ? "no --sizes, since all extents are constant" : `one of ${symbols.join(", ")}`,
    help: none
      ? "remove --sizes, or make an input with a null extent"
      : suggestion(name, symbols, "give sizes to these extents only"),
  });
}

function failMissing(missing: readonly string[]): never {
  fail("size-missing", `${missing.join(", ")} ${missing.length === 1 ? "has" : "have"} no size`, {
    place: { kind: "option", text: "--sizes" },
    found: "symbolic extents without a size",
    expected: `--sizes ${missing.map((name) => `${name}=N`).join(",")}`,
    help: `add --sizes ${missing.map((name) => `${name}=8`).join(",")} (with your sizes)`,
  });
}
