/** Loads a model file of a framework as a program. Other files do not load this module. */
import path from "node:path";
import { readRegularText, regularSource } from "../../backends/regular-file.ts";
import { placedData } from "../../compile/lower.ts";
import { requireMeshDevices } from "../../compile/lower-all.ts";
import type { GivenOptions, LoweringName } from "../../compile/options.ts";
import { requireKnownParameters } from "../../compile/program/known-parameters.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { importModel } from "../../import/import-model.ts";
import { loaderOf, loaders } from "../../import/loader.ts";
import type { ImportedModel } from "../../import/model.ts";
import { halfOfModel } from "./half-of-model.ts";
import { systemReason } from "../../support/system-reason.ts";
import type { BuildFlags, BuiltProgram, ModelFlags } from "./built-program.ts";

/** Throws `file-unreadable` and what `importModel` throws. */
export async function loadModel(file: string, flags: ModelFlags): Promise<ImportedModel> {
  const { entry, gradients, devices, half, fold } = flags;
  requireGradients(flags);
  const model = await (loaderOf(file)?.content === "text" ? readRegularText(file) : regularSource(file)).catch(
    (error: unknown) => unreadable(file, error),
  );
  const plan = flags.plan === undefined || flags.plan === "auto" ? flags.plan : await planIn(flags.plan);
  return importModel(model, {
    file,
    devices,
    ...(entry === undefined ? {} : { entry }),
    ...(plan === undefined ? {} : { plan }),
    ...(gradients === undefined ? {} : { gradients: gradients.cotangent }),
    ...(gradients?.wrt ? { wrt: gradients.wrt } : {}),
    ...(half === undefined ? {} : { apart: true }),
    ...(fold === undefined ? {} : { fold }),
  });
}

/** Throws `option-value`. */
function requireGradients({ gradients, half }: ModelFlags): void {
  if (half === undefined || gradients !== undefined) return;
  fail("option-value", "there are no gradients, so the program has no halves", {
    place: { kind: "option", text: `--half ${half.pass}` },
    found: "no --gradients",
    expected: "--gradients with the name of the cotangent",
    help: "add --gradients dy, or leave out --half",
  });
}

/** The number of devices that a file names; null for none. Throws what `loadModel` throws. */
export async function devicesOfModel(file: string, flags: ModelFlags): Promise<number | null> {
  const loader = loaderOf(file);
  if (loader?.content === "text" && loader.devices !== undefined) {
    const text = await readRegularText(file).catch((error: unknown) => unreadable(file, error));
    const devices = loader.devices(text);
    if (devices !== null) return devices;
  }
  return (await loadModel(file, flags)).devices;
}

/** Throws `file-unreadable`. */
async function planIn(file: string): Promise<{ readonly text: string; readonly file: string }> {
  const text = await readRegularText(file).catch((error: unknown) =>
    fail("file-unreadable", "the sharding plan cannot be read", {
      place: { kind: "option", text: `--plan ${file}` },
      found: systemReason(error),
      expected: "a readable file of JSON, or auto",
      help: `check the path; it resolves to ${path.resolve(file)}`,
    }),
  );
  return { text, file };
}

/** Throws what `loadModel` throws, `option-unknown` and `mesh-too-large`. */
export async function programOfModel(
  file: string,
  flags: BuildFlags,
  lowering: GivenOptions<LoweringName>,
): Promise<BuiltProgram> {
  requireKnownParameters(file, {}, flags.set);
  const whole = await loadModel(file, flags);
  const model = flags.half === undefined ? whole : halfOfModel(whole, flags.half.pass, flags.half.save);
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
  return fail("file-unreadable", "the model cannot be read", {
    place: { kind: "file", path: file },
    found: systemReason(error),
    expected: `a readable file that ends in ${loaders.flatMap(({ suffixes }) => suffixes).join(", ")}`,
    help: `check the path; it resolves to ${path.resolve(file)}`,
  });
}
