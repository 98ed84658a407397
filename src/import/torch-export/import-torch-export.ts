/** A file of torch.export or a printed graph, with a sharding plan, as every format of model files is read. */
import type { ByteSource } from "../byte-source.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";
import { manualModel } from "../plan/manual-model.ts";
import { shardedModel } from "../plan/apply-plan.ts";
import { autoPlan } from "../plan/auto-plan.ts";
import { parsePlan } from "../plan/parse-plan.ts";
import type { ImportedInput, ImportedModel, ImportOptions } from "../model.ts";
import { buildModel } from "./build.ts";
import type { ExportedModel, ModelInput } from "./model.ts";
import { isCollective } from "./group-collective.ts";
import { readFxText } from "./fx-text.ts";
import { type ExportedProgram, readExportedProgram } from "./read.ts";

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
  return importedOf(model, devices);
}

const roles = {
  user: "argument",
  parameter: "parameter",
  buffer: "constant",
  constant: "constant",
  folded: "constant",
} as const satisfies { readonly [K in ModelInput["kind"]]: ImportedInput["role"] };

export function importedOf({ fusion, inputs, outputs, sizes }: ExportedModel, devices: number | null): ImportedModel {
  let users = 0;
  return {
    fusion,
    devices,
    inputs: inputs.map(({ name, kind, read }) => ({
      names: kind === "user" ? [name, `in${users++}`] : [name],
      role: roles[kind],
      // Weights are read when they are asked for: a prediction needs none.
      get value() {
        return read();
      },
    })),
    outputs: outputs.map(({ name }) => name),
    sizes,
  };
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
