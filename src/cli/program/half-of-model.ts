/** `--half`: the forward or the backward pass of a model as a program, with names for what one saves for the other. */
import { splitBackward } from "../../compile/split-backward.ts";
import type { ImportedInput, ImportedModel } from "../../import/model.ts";
import { Fusion } from "../../ir/api/fusion.ts";
import { at } from "../../support/invariant.ts";

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
