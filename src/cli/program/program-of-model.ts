/** Loads a model file of a framework as a program. Other files do not load this module. */
import path from "node:path";
import { readRegularText, regularSource } from "../../backends/regular-file.ts";
import { placedData } from "../../compile/lower.ts";
import { requireMeshDevices } from "../../compile/lower-all.ts";
import type { GivenOptions, LoweringName } from "../../compile/options.ts";
import { requireKnownParameters } from "../../compile/program/known-parameters.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { importModel } from "../../import/import-model.ts";
import { loaders } from "../../import/loader.ts";
import type { ImportedModel, ImportedInput } from "../../import/model.ts";
import { systemReason } from "../../support/wording.ts";
import { type BuildFlags, type BuiltProgram, type FindLayers, type ModelFlags } from "./built-program.ts";
import { loaderOfFile } from "./dump-file.ts";
import { splitBackward } from "../../compile/split-backward.ts";
import { Fusion } from "../../ir/api/fusion.ts";
import { at } from "../../support/invariant.ts";

/** Throws `file-unreadable` and what `importModel` throws. */
async function loadModel(file: string, flags: ModelFlags): Promise<ImportedModel> {
  const { entry, gradients, devices, half, fold } = flags;
  requireGradients(flags);
  const model = await (loaderOfFile(file)?.content === "text" ? readRegularText(file) : regularSource(file)).catch(
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
  const loader = loaderOfFile(file);
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
  findLayers: FindLayers,
): Promise<BuiltProgram> {
  requireKnownParameters(file, {}, flags.set);
  const whole = await loadModel(file, flags);
  const model = flags.half === undefined ? whole : halfOfModel(whole, flags.half.pass, flags.half.save);
  const data = model.fusion.data();
  requireMeshDevices(data.tensors, flags.devices);
  const source = { data: () => data };
  const layers = findLayers(data);
  return {
    source,
    // Equal layers have the same symbolic extents.
    signature:
      layers === null ? placedData(source, lowering) : { ...data, tensors: placedData(layers.more, lowering).tensors },
    layers,
    reference: source,
    lineOf: null,
    text: null,
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

/* `--half`: the forward or the backward pass of a model as a program, with names for what one saves for the other. */

/**
 * Both halves of one model with one policy agree on the saved tensors: `saved.0`, `saved.1` and so on, which are the last
 * outputs of the forward pass and the last inputs of the backward pass. A saved tensor that is an output of the model
 * has the output's name in both.
 */
export function halfOfModel(
  model: ImportedModel,
  half: "forward" | "backward",
  save: "all" | "minimal" | number,
): ImportedModel {
  const { fusion, apart } = model;
  if (apart === undefined) return model;
  const { request, names } = apart;
  const { forward, backward, saved, gradients } = splitBackward(
    fusion,
    request,
    typeof save === "number" ? { bytes: save } : save,
  );
  const outputNames = new Map(fusion.outputs.map(({ id }, i) => [id, at(model.outputs, i)]));
  const savedNames = new Map(saved.map(({ forward: { id } }, i) => [id, outputNames.get(id) ?? `saved.${i}`]));
  if (half === "forward") {
    const cotangents = new Set(request.cotangents.map(({ id }) => id));
    const data = forward.data();
    return {
      ...model,
      fusion: new Fusion({ ...data, inputs: data.inputs.filter((id) => !cotangents.has(id)) }),
      inputs: model.inputs.filter((_, i) => !cotangents.has(at(fusion.inputs, i).id)),
      outputs: forward.outputs.map(({ id }) => outputNames.get(id) ?? savedNames.get(id) ?? ""),
    };
  }
  const inputs = new Map(fusion.inputs.map(({ id }, i) => [id, at(model.inputs, i)]));
  return {
    ...model,
    fusion: backward,
    inputs: backward.inputs.map(
      ({ id }): ImportedInput => inputs.get(id) ?? { names: [savedNames.get(id) ?? ""], value: null },
    ),
    outputs: names.filter((_, i) => at(gradients, i)),
  };
}

/* `--sizes` of a model file: by the framework's names, in the range of the file, and the example's where none is given. */

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
