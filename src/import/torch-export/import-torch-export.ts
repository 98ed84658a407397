/** A file of torch.export or a printed graph, with a sharding plan, as every format of model files is read. */
import type { ByteSource } from "../byte-source.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";
import { manualModel } from "../plan/manual-model.ts";
import { autoPlan, shardedModel } from "../plan/apply-plan.ts";
import { parsePlan } from "../plan/parse-plan.ts";
import type { ImportedGradients, ImportedModel, ImportOptions } from "../model.ts";
import { buildModel } from "./build.ts";
import type { ExportedModel, ModelInput, ModelOutput } from "./model.ts";
import { isCollective } from "./group-collective.ts";
import { readFxText } from "./fx-text.ts";
import { type ExportedProgram, readExportedProgram } from "./read.ts";
import { gradients } from "../../ir/api/gradients.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { suggestion } from "../../support/wording.ts";

/** Throws `model-syntax`, `model-unsupported`, `model-invalid`, `sharding-plan-invalid`. */
export function importTorchExport(source: ByteSource, options: ImportOptions = {}): ImportedModel {
  return importProgram(readExportedProgram(source, options.file), options);
}

/** A graph that PyTorch printed. Throws what `importTorchExport` throws. */
export function importFxText(text: string, options: ImportOptions = {}): ImportedModel {
  return importProgram(readFxText(text, options.file), options);
}

function importProgram(program: ExportedProgram, options: ImportOptions): ImportedModel {
  const { model, devices } = planned(program, options);
  const { model: whole, apart } = differentiated(model, options);
  const { fusion, inputs, outputs, sizes } = whole;
  let users = 0;
  return {
    fusion,
    devices,
    inputs: inputs.map(({ name, kind, read }) => ({
      names: kind === "user" ? [name, `in${users++}`] : [name],
      // Weights are read when they are asked for: a prediction needs none.
      get value() {
        return read();
      },
    })),
    outputs: outputs.map(({ name }) => name),
    sizes,
    ...(apart === null ? {} : { apart }),
  };
}

function differentiated(
  model: ExportedModel,
  { gradients, wrt, apart = false }: ImportOptions,
): { readonly model: ExportedModel; readonly apart: ImportedGradients | null } {
  if (gradients === undefined) return { model, apart: null };
  return apart ? gradientsApart(model, gradients, wrt) : { model: withGradients(model, gradients, wrt), apart: null };
}

/** Without a plan every device has the whole program. */
function planned(
  program: ExportedProgram,
  { plan, devices = 1, fold = true }: ImportOptions,
): { readonly model: ExportedModel; readonly devices: number | null } {
  if (program.graph.nodes.some(isCollective)) return parallel(program, plan, devices, fold);
  if (plan === undefined) return { model: buildModel(program, fold), devices: null };
  if (plan === "auto") return { model: shardedModel(program, autoPlan(program, devices), fold), devices: null };
  const parsed = parsePlan(plan.text, plan.file);
  return { model: shardedModel(program, parsed, fold), devices: elementCount(Object.values(parsed.mesh)) };
}

/** A graph of one rank, with collectives. Throws `bad-option` for the plan of a family, which is one of whole models. */
function parallel(
  program: ExportedProgram,
  plan: ImportOptions["plan"],
  devices: number,
  fold: boolean,
): { readonly model: ExportedModel; readonly devices: number } {
  if (plan === "auto") {
    return fail("bad-option", "the model was exported in parallel, with collectives of its own", {
      place: { kind: "file", path: program.path },
      found: "the plan auto",
      expected: "no plan, or one with mesh and groups",
      help: "leave out the plan, or export the model of one device",
    });
  }
  const parsed = plan === undefined ? null : parsePlan(plan.text, plan.file);
  const { mesh, model } = manualModel(buildModel(program, fold), parsed, devices);
  return { model, devices: mesh.devices.length };
}

/* The gradients of a model's parameters and arguments, as outputs of its program. */

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
function gradientsApart(
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
