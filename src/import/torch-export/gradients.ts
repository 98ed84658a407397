/** The gradients of a model's parameters and arguments, as outputs of its program. */
import { fail } from "../../diagnostics/diagnostic.ts";
import { gradients } from "../../ir/api/gradients.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { suggestion } from "../../support/wording.ts";
import type { ImportedGradients } from "../model.ts";
import type { ExportedModel, ModelInput, ModelOutput } from "./model.ts";

/**
 * Adds the cotangents of the outputs as inputs (`dy`, or `dy0`, `dy1` of several outputs), and the gradient of each
 * input `w` of `wrt` that an output depends on as the output `grad.w`. Throws `bad-option`.
 */
export function withGradients(model: ExportedModel, cotangent: string, wrt?: readonly string[]): ExportedModel {
  const { model: differentiable, apart } = gradientsApart(model, cotangent, wrt);
  const { fusion, inputs, outputs } = differentiable;
  const added = gradients(fusion, apart.request).flatMap((tensor, i): ModelOutput[] => {
    if (tensor === null) return [];
    fusion.output(tensor);
    return [{ name: at(apart.names, i), tensor }];
  });
  return { ...differentiable, inputs, outputs: [...outputs, ...added] };
}

/** The model with the cotangents as its last inputs, and what is to be differentiated. Throws `bad-option`. */
export function gradientsApart(
  model: ExportedModel,
  cotangent: string,
  wrt?: readonly string[],
): { readonly model: ExportedModel; readonly apart: ImportedGradients } {
  const { fusion, inputs, outputs } = model;
  const of = outputs.map(({ tensor }) => tensor);
  const cotangents = of.map((tensor, i): ModelInput => {
    const name = of.length === 1 ? cotangent : `${cotangent}${i}`;
    return {
      name,
      kind: "user" as const,
      tensor: fusion.input(tensor.extents, tensor.dtype).named(name),
      read: () => null,
    };
  });
  const chosen = wrt === undefined ? floats(inputs.filter(({ kind }) => kind === "parameter")) : named(model, wrt);
  const request = {
    of,
    cotangents: cotangents.map(({ tensor }) => tensor),
    wrt: chosen.map(({ tensor }) => tensor),
  };
  const names = chosen.map(({ name }) => `grad.${name}`);
  return { model: { ...model, inputs: [...inputs, ...cotangents] }, apart: { request, names } };
}

function floats(inputs: readonly ModelInput[]): readonly ModelInput[] {
  return inputs.filter(({ tensor }) => dtypes[tensor.dtype].family === "float");
}

/** Throws `bad-option`. */
function named({ path, inputs }: ExportedModel, names: readonly string[]): readonly ModelInput[] {
  const known = floats(inputs.filter(({ kind }) => kind === "parameter" || kind === "user"));
  return names.map((name) => {
    const found = known.find((each) => each.name === name);
    if (found !== undefined) return found;
    const all = known.map((each) => each.name);
    return fail("bad-option", `the model has no parameter or argument ${name}`, {
      place: { kind: "file", path },
      found: name,
      expected: `floating-point inputs that an output depends on, such as ${all.slice(0, 3).join(", ")}`,
      help: suggestion(name, all, "leave it out, or name it as the model does"),
    });
  });
}
