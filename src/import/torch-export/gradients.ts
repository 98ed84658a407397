/** The gradients of a model's parameters, as outputs of its program. */
import { gradients } from "../../ir/api/gradients.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import type { ExportedModel, ModelOutput } from "./model.ts";

/**
 * Adds the cotangents of the outputs as inputs (`dy`, or `dy0`, `dy1` of several outputs), and the gradient of each
 * parameter `w` that an output depends on as the output `grad.w`.
 */
export function withGradients(model: ExportedModel, cotangent: string): ExportedModel {
  const { fusion, inputs, outputs } = model;
  const of = outputs.map(({ tensor }) => tensor);
  const cotangents = of.map((tensor, i) => {
    const name = of.length === 1 ? cotangent : `${cotangent}${i}`;
    return {
      name,
      kind: "user" as const,
      tensor: fusion.input(tensor.extents, tensor.dtype).named(name),
      read: () => null,
    };
  });
  const parameters = inputs.filter(
    ({ kind, tensor }) => kind === "parameter" && dtypes[tensor.dtype].family === "float",
  );
  const found = gradients(fusion, {
    of,
    cotangents: cotangents.map(({ tensor }) => tensor),
    wrt: parameters.map(({ tensor }) => tensor),
  });
  const added = found.flatMap((tensor, i): ModelOutput[] => {
    if (tensor === null) return [];
    fusion.output(tensor);
    return [{ name: `grad.${at(parameters, i).name}`, tensor }];
  });
  return { ...model, inputs: [...inputs, ...cotangents], outputs: [...outputs, ...added] };
}
