/** `--sizes` of a model file: by the framework's names, in the range of the file, and the example's where none is given. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { ImportedModel } from "../../import/model.ts";

/** By printed name (`i0`). Throws `option-value` for a size that the model was not exported for. */
export function modelSizes(
  model: ImportedModel | null,
  given: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const sizes = new Map(given);
  for (const [extent, { name, min, max, example }] of model?.sizes ?? []) {
    const size = given.get(extent) ?? given.get(name) ?? example;
    sizes.delete(name);
    if (size === null) continue;
    sizes.set(extent, size);
    if (size >= (min ?? 0) && size <= (max ?? Infinity)) continue;
    fail("option-value", `the model takes no ${size} for ${name}`, {
      place: { kind: "option", text: "--sizes" },
      found: `${name}=${size}`,
      expected: `${min ?? 0} to ${max ?? "any number"}`,
      help: "choose a size in this range, or export the model for another one with torch.export.Dim",
    });
  }
  return sizes;
}
