/** `--gradients`: the gradients of a model's parameters and arguments, as outputs of its program or apart from it. */
import { fail } from "../diagnostics/diagnostic.ts";
import { gradients as gradientsOf } from "../ir/api/gradients.ts";
import type { TensorView } from "../ir/api/tensor-view.ts";
import { dtypes } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import { suggestion } from "../support/wording.ts";
import type { ImportedInput, ImportedModel, ImportOptions } from "./model.ts";

/**
 * The model with the cotangents of the outputs as its last inputs (`dy`, or `dy0`, `dy1` of several outputs), and the
 * gradient of each input `w` of `wrt` that an output depends on as the output `grad.w`. Without `wrt`, inputs that no
 * derivative reaches have none. Throws `bad-option`.
 */
export function withGradients(model: ImportedModel, options: ImportOptions): ImportedModel {
  const { gradients: cotangent, wrt, apart = false, file = "model" } = options;
  if (cotangent === undefined) return model;
  const { fusion } = model;
  const of = [...fusion.outputs];
  const arguments_ = model.inputs.filter(({ names }) => names.some((name) => /^in\d+$/u.test(name))).length;
  const chosen = chosenInputs(model, wrt, file);
  const inputs = of.map((_, i): ImportedInput => {
    const name = of.length === 1 ? cotangent : `${cotangent}${i}`;
    return { names: [name, `in${arguments_ + i}`], value: null };
  });
  const cotangents = of.map((tensor, i) => {
    const [name = cotangent] = at(inputs, i).names;
    return fusion.input(tensor.extents, tensor.dtype).named(name);
  });
  const request = { of, cotangents, wrt: chosen.map(({ tensor }) => tensor), allowUnused: wrt === undefined };
  const names = chosen.map(({ name }) => `grad.${name}`);
  const differentiable = { ...model, inputs: [...model.inputs, ...inputs] };
  if (apart) return { ...differentiable, apart: { request, names } };
  const added = gradientsOf(fusion, request).flatMap((tensor, i) => {
    if (tensor === null) return [];
    fusion.output(tensor);
    return [at(names, i)];
  });
  return { ...differentiable, outputs: [...model.outputs, ...added] };
}

interface Candidate {
  readonly name: string;
  readonly tensor: TensorView;
  readonly input: ImportedInput;
}

/** Those of `wrt`; without it the parameters of the model, or all floats of a format that has none. Throws `bad-option`. */
function chosenInputs(
  { fusion, inputs }: ImportedModel,
  wrt: readonly string[] | undefined,
  file: string,
): readonly Candidate[] {
  const known = fusion.inputs.flatMap((tensor, i): Candidate[] => {
    const input = at(inputs, i);
    const isFloat = dtypes[tensor.dtype].family === "float" && input.role !== "constant";
    return isFloat ? [{ name: at(input.names, 0), tensor, input }] : [];
  });
  if (wrt === undefined) {
    const parameters = known.filter(({ input }) => input.role === "parameter");
    return inputs.some(({ role }) => role !== undefined) ? parameters : known;
  }
  return wrt.map((name) => {
    const found = known.find(({ input }) => input.names.includes(name));
    if (found !== undefined) return found;
    const all = known.map((each) => each.name);
    return fail("bad-option", `the model has no parameter or argument ${name}`, {
      place: { kind: "file", path: file },
      found: name,
      expected: `floating-point inputs that an output depends on, such as ${all.slice(0, 3).join(", ")}`,
      help: suggestion(name, all, "leave it out, or name it as the model does"),
    });
  });
}
