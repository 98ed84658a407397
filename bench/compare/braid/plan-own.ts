/**
 * Compiles Braid's own implementations as `braid run` does, with the given options or with the ones chosen by
 * simulation on a machine profile.
 */
import { fail } from "../../../src/diagnostics/diagnostic.ts";
import type { Target } from "../../../src/compile/compile.ts";
import { type AnyCompilation, compile, requireVerified, verified } from "../../../src/compile/compile.ts";
import type { LoweringOptions } from "../../../src/passes/options.ts";
import { scheduleNames } from "../../../src/compile/options.ts";
import { pickOptions } from "../../../src/compile/options/resolve.ts";
import { requireNoSchedule } from "../../../src/tune/choose/consider.ts";
import type { BraidOptions } from "./braid-options.ts";
import { chooseForm, type Shape } from "../choose-form.ts";
import type { OwnName } from "../implementation.ts";
import type { Layout } from "./operands.ts";
import type { OwnImplementation, PlannedProgram, Setting } from "../workload.ts";
import { buildPrimitive, type Form, type Primitive, type Problem, takesOutputs } from "../primitives.ts";

/** The Program that runs, and the layout of its operands. */
export interface Planned extends PlannedProgram {
  readonly layout: Layout;
}

/**
 * Throws what lowering, recording, linking and the verifier throw, because not every combination of options is
 * possible.
 */
export function planOwn(implementation: OwnImplementation, problem: Problem, setting: Setting): Planned {
  const { options } = implementation;
  requirePieces(implementation, problem);
  const { shape, compilation, reason } =
    options.scheduleChoice === "auto"
      ? chosen(implementation, problem, setting)
      : said(implementation, problem, setting.on);
  const { program } = requireVerified(verified(compilation, { notes: false }));
  return { implementation, layout: { problem, ...shape }, program, reason };
}

/** Not verified yet. */
interface Decided {
  readonly shape: Shape;
  readonly compilation: AnyCompilation;
  readonly reason: string | null;
}

function said({ name, options }: OwnImplementation, problem: Problem, on: Target): Decided {
  const form = formOf(name, options);
  const { devices } = problem;
  const { chunks = devices, outputs = 1 } = options;
  // NCCL for the serial baseline and for the one form that only NCCL has; copies between devices otherwise.
  const { backend = form === "serial" || form === "linear" ? "nccl" : "cuda", streams } = options;
  const p2p = form === "linear" || form === "broadcast" ? form : "rotated";
  const shape = { form, chunks, outputs };
  const compilation = compile(buildPrimitive(form, problem, shape), {
    ...loweringOf(options, problem),
    backend,
    p2p,
    devices,
    on,
    schedule: pickOptions(scheduleNames, options),
    verify: "off",
    ...(streams === undefined ? {} : { streams }),
  });
  return { shape, compilation, reason: null };
}

/** Chooses the form, its chunks and the backend unless they are given. */
function chosen({ options }: OwnImplementation, problem: Problem, { profile }: Setting): Decided {
  if (profile === null) return noProfile();
  requireNoSchedule({ ...pickOptions(["streams"], options), schedule: pickOptions(scheduleNames, options) });
  const { backend, graph } = options;
  const given = {
    ...loweringOf(options, problem),
    ...(backend === undefined ? {} : { backend }),
  };
  return chooseForm(options, problem, { ...given, graph: graph !== "off" }, profile);
}

function formOf(name: OwnName, { form = "rotated" }: BraidOptions): Form {
  return name === "braid" ? form : name;
}

/** Rejects chunks or outputs that the given form does not have. If the form is to be chosen, some form has them. */
function requirePieces({ name, options }: OwnImplementation, { primitive }: Problem): void {
  const { chunks, outputs = 1 } = options;
  const form = options.scheduleChoice === "auto" && options.form === undefined ? null : formOf(name, options);
  if (chunks !== undefined && form !== null && form !== "collective") chunksWithoutLoop(form, chunks);
  if (outputs > 1 && !takesOutputs(form ?? "rotated", primitive))
    outputsWithoutLoop(form ?? "rotated", primitive, outputs);
}

function loweringOf(
  { protocol, interStreamSync = false }: BraidOptions,
  { primitive }: Problem,
): Partial<LoweringOptions> {
  return {
    interStreamSync: interStreamSync,
    // Partial results are exchanged instead of A.
    insertReshardingAfter: primitive !== "tp-columnwise",
    ...(protocol === undefined ? {} : { protocol }),
  };
}

function chunksWithoutLoop(form: Form, chunks: number): never {
  return fail({
    code: "bad-option",
    message: `form ${form} has one chunk for each device`,
    place: { kind: "option", text: "chunks" },
    found: `chunks=${chunks} with form=${form}`,
    expected: "chunks with form=collective",
    help: "leave chunks out; splitChunks cuts the chunks of other forms",
  });
}

function outputsWithoutLoop(form: Form, primitive: Primitive, outputs: number): never {
  return fail({
    code: "bad-option",
    message: `form ${form} of ${primitive} has one output`,
    place: { kind: "option", text: "outputs" },
    found: `outputs=${outputs} with form=${form}`,
    expected: "outputs with tp-rowwise or tp-allreduce in form rotated, linear or broadcast",
    help: "leave outputs out, or choose such a form",
  });
}

export function noProfile(): never {
  return fail({
    code: "bad-option",
    message: "scheduleChoice=auto needs a machine profile",
    place: { kind: "option", text: "scheduleChoice" },
    found: "scheduleChoice=auto without --profile",
    expected: "--profile FILE",
    help: "braid calibrate measures a machine and writes its profile",
  });
}
