/** Compiles a program file or a dump and writes its plan. Nothing is printed here. */
import { packageVersion } from "../../backends/package-file.ts";
import { requireLinked, requireVerified, verified } from "../../compile/compile.ts";
import { loweringNames, type NamesOf, type Options, type ValuesOf } from "../../compile/options.ts";
import type { CompileGiven } from "../../compile/options/flags-text.ts";
import { text, wholeNumber } from "../../compile/options/kinds.ts";
import { pickOptions } from "../../compile/options/resolve.ts";
import type { OptionRow } from "../../compile/options/row.ts";
import { inputSizes } from "../../compile/program/input-sizes.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { indexLimits } from "../../ir/runs.ts";
import { programHash, withoutOrigins } from "../../launch/exchange.ts";
import { makePlan } from "../../plan/make-plan.ts";
import { reasonText } from "../../support/wording.ts";
import { printedGiven } from "../flags/compared-options.ts";
import { profileToChooseWith, withOwnProfile } from "../flags/profile.ts";
import { requirePlanFolder, writePlanFolder } from "../plan/plan-folder.ts";
import type { ApartBuilding } from "../program/apart/build-apart.ts";
import { buildProgram } from "../program/build-program.ts";
import { optimizeLater } from "../program/optimize-later.ts";
import { compileFile } from "../program/compile-file.ts";
import { requireNotLowered } from "../program/dump-file.ts";
import { modelSizes } from "../program/program-of-model.ts";
import type { ProgressStep } from "../terminal/progress.ts";

export type CompileCommandFlags = Options<NamesOf<"compile">> & CompileOwnFlags;

export interface CompileResult {
  readonly file: string;
  readonly folder: string;
  readonly devices: number;
  /** The chosen schedule and the reason; null if none was to be chosen. */
  readonly choice: string | null;
  /** Verified, of all ranks. */
  readonly commands: number;
  /** Of all ranks. */
  readonly operations: number;
  readonly kernels: number;
  /** Of all files. */
  readonly bytes: number;
  readonly files: readonly string[];
}

/** Throws the verifier's findings, `plan-unsupported` and `file-unwritable`. */
export async function compilePlan(
  file: string,
  asked: CompileCommandFlags,
  given: CompileGiven,
  { building, step }: { readonly building: ApartBuilding | null; readonly step: ProgressStep },
): Promise<CompileResult> {
  requireGpus(asked);
  const flags = await withOwnProfile(asked, given);
  const folder = flags.out;
  await requirePlanFolder(folder);
  const profile = await profileToChooseWith(flags);
  const lowering = pickOptions(loweringNames, given);
  step(`loading ${file}`);
  const { backend: _, ...others } = lowering;
  requireNotLowered(file, others);
  const { source, signature, reference, model } = await buildProgram(
    file,
    { ...flags, fold: false },
    lowering,
    building,
  );
  optimizeLater();
  const sizes = inputSizes(signature, modelSizes(model, flags.sizes));
  step(`compiling for ${flags.devices} devices`);
  const all = { ...flags, on: "cuda" } as const;
  const { compiled, choice } = await compileFile(file, source, all, given, sizes, profile, { onProgress: step });
  const compilation = requireVerified(verified(requireLinked(compiled), { notes: false, onProgress: step }));
  const { capability, multiprocessors } = flags;
  const plan = makePlan(compilation, {
    braid: packageVersion(),
    program: programHash(withoutOrigins(compilation.program)),
    options: printedGiven(given),
    target: { capability, multiprocessors },
    limits: reference === null ? new Map() : indexLimits(reference.data(), sizes),
    names:
      model === null ? null : { inputs: model.inputs.map(({ names: [name = ""] }) => name), outputs: model.outputs },
  });
  step(`writing ${folder}`);
  const bytes = await writePlanFolder(folder, plan.files);
  return {
    file,
    folder,
    devices: flags.devices,
    choice: choice === null ? null : reasonText(choice),
    commands: compilation.report.size.commands,
    operations: plan.operations,
    kernels: [...plan.files.keys()].filter((name) => name.endsWith(".cu")).length,
    bytes,
    files: [...plan.files.keys()],
  };
}

function requireGpus({ on }: Options<"on">): void {
  if (on === "cuda") return;
  fail("option-value", "a plan is for GPUs", {
    place: { kind: "option", text: "--on" },
    found: `--on ${on}`,
    expected: "--on cuda, which is the default",
    help: "leave --on out, or run the program on the CPU with braid run",
  });
}

// The options of `braid compile` alone.

const compile = { group: "output", commands: ["compile"] } as const;

export const compileRows = {
  out: {
    ...compile,
    short: "o",
    required: true,
    kind: text("folder", "plan/"),
    help: "write the plan to this folder, which is made if needed",
  },
  capability: {
    ...compile,
    within: "gpu",
    kind: wholeNumber(80, 90),
    default: 90,
    help: "compute capability, times 10: 90 for 9.0",
  },
  multiprocessors: {
    ...compile,
    within: "gpu",
    kind: wholeNumber(1, 132),
    default: 132,
    help: "number of multiprocessors",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

/** With their defaults. */
type CompileOwnFlags = Required<ValuesOf<typeof compileRows>>;
