/** A file of torch.export, with a sharding plan, as every format of model files is read. */
import type { ByteSource } from "../byte-source.ts";
import { autoPlan, shardedModel } from "../plan/apply-plan.ts";
import { parsePlan } from "../plan/parse-plan.ts";
import type { ImportedGradients, ImportedModel, ImportOptions } from "../model.ts";
import { buildModel } from "./build.ts";
import { gradientsApart, withGradients } from "./gradients.ts";
import type { ExportedModel } from "./model.ts";
import { type ExportedProgram, readExportedProgram } from "./read.ts";

/** Throws `model-syntax`, `model-unsupported`, `model-invalid`, `sharding-plan-invalid`. */
export function importTorchExport(source: ByteSource, options: ImportOptions = {}): ImportedModel {
  const { file = "model" } = options;
  const program = readExportedProgram(source, file);
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
    sizes: new Map([...sizes].map(([extent, { name, min, max, example }]) => [extent, { name, min, max, example }])),
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
  if (plan === undefined) return { model: buildModel(program, fold), devices: null };
  if (plan === "auto") return { model: shardedModel(program, autoPlan(program, devices), fold), devices: null };
  const parsed = parsePlan(plan.text, plan.file);
  const count = Object.values(parsed.mesh).reduce((product, size) => product * size, 1);
  return { model: shardedModel(program, parsed, fold), devices: count };
}
