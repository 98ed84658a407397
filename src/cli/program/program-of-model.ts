/** Loads a model file of a framework as a program. Other files do not load this module. */
import path from "node:path";
import { readRegularFile } from "../../backends/regular-file.ts";
import { placedData } from "../../compile/lower.ts";
import { requireMeshDevices } from "../../compile/lower-all.ts";
import type { GivenOptions, LoweringName, Options } from "../../compile/options.ts";
import { requireKnownParameters } from "../../compile/program/known-parameters.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { importModel } from "../../import/import-model.ts";
import { loaderOf, loaders } from "../../import/loader.ts";
import type { ImportedModel } from "../../import/model.ts";
import { systemReason } from "../../support/system-reason.ts";
import type { BuildFlags, BuiltProgram } from "./built-program.ts";

/** Throws `file-unreadable` and what `importModel` throws. */
export async function loadModel(file: string, { entry }: Options<"entry">): Promise<ImportedModel> {
  const bytes = await readRegularFile(file).catch((error: unknown) => unreadable(file, error));
  const model = loaderOf(file)?.content === "text" ? bytes.toString("utf8") : bytes;
  return importModel(model, { file, ...(entry === undefined ? {} : { entry }) });
}

/** Throws what `loadModel` throws, `option-unknown` and `mesh-too-large`. */
export async function programOfModel(
  file: string,
  flags: BuildFlags,
  lowering: GivenOptions<LoweringName>,
): Promise<BuiltProgram> {
  requireKnownParameters(file, {}, flags.set);
  const model = await loadModel(file, flags);
  const data = model.fusion.data();
  requireMeshDevices(data.tensors, flags.devices);
  const source = { data: () => data };
  return {
    source,
    signature: placedData(source, lowering),
    reference: source,
    lineOf: null,
    containers: null,
    model,
    params: {},
  };
}

function unreadable(file: string, error: unknown): never {
  return fail({
    code: "file-unreadable",
    message: "the model cannot be read",
    place: { kind: "file", path: file },
    found: systemReason(error),
    expected: `a readable file that ends in ${loaders.flatMap(({ suffixes }) => suffixes).join(", ")}`,
    help: `check the path; it resolves to ${path.resolve(file)}`,
  });
}
