/**
 * The passes in order, and the loop that runs them. It validates the Fusion after each pass that changed it, of a host
 * program the statements that a pass changed, and the whole after the last pass. It reports times to the observer.
 */
import { type Diagnostic, DiagnosticError, fail } from "../diagnostics/diagnostic.ts";
import type { HostProgram } from "../host/nodes.ts";
import { validateStatements } from "../host/validate/validate.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import { originated, withOrigins } from "../ir/origin.ts";
import { clock } from "../support/clock.ts";
import { deallocate } from "./buffers/deallocate.ts";
import { writeOverInputs } from "./buffers/write-over-inputs.ts";
import { shrinkStreamBuffers } from "./buffers/shrink-stream-buffers.ts";
import { convertOpToCommunication } from "./communicate/convert-op-to-communication.ts";
import { coverCommunications } from "./communicate/cover-communications.ts";
import { sinkWaits } from "./communicate/sink-waits.ts";
import { exchangeSums, loopOverDevices } from "./device-loops/loop-over-devices.ts";
import type { Pass, PassContext, Stage, StagePrograms } from "./pass.ts";
import { decomposeAttention } from "./prepare/decompose-attention.ts";
import { foldPermutes, foldSums } from "./prepare/fold-permutes.ts";
import { ignoreStreamAxes } from "./prepare/ignore-stream-axes.ts";
import { ignoreUnitDimensions } from "./prepare/ignore-unit-dimensions.ts";
import { placeCasts, placeScalars } from "./prepare/place-scalars.ts";
import { removeDeadOps } from "./prepare/remove-dead-ops.ts";
import { propagateShardings } from "./propagate/propagate-shardings.ts";
import type { LoweringOptions } from "./options.ts";
import { insertRoutes } from "./routes/insert-routes.ts";
import { splitIndices } from "./routes/split-indices.ts";
import { segment } from "./segment/segment.ts";
import { exchangeReductions } from "./stream-loops/exchange-reductions.ts";
import { streamParallelType } from "./stream-loops/stream-parallel-type.ts";
import { stageChecks } from "./validators.ts";

const fusionPasses = {
  removeDeadOps,
  decomposeAttention,
  propagateShardings,
  placeScalars,
  placeCasts,
  ignoreUnitDimensions,
  ignoreStreamAxes,
  foldPermutes,
  foldSums,
  splitIndices,
  insertRoutes,
  exchangeSums,
  loopOverDevices,
} as const;

const hostPasses = {
  exchangeReductions,
  streamParallelType,
  convertOpToCommunication,
  sinkWaits,
  coverCommunications,
  writeOverInputs,
  deallocate,
  shrinkStreamBuffers,
} as const;

export type HostPass = (typeof hostPasses)[keyof typeof hostPasses];

/** Every transform from a Fusion to a host program, in order. `segment` creates the host program. */
export const passes = { ...fusionPasses, segment, ...hostPasses } as const;

export const passNames: readonly string[] = Object.values(passes).map((pass) => pass.name);

/** After it, a host program is validated as a whole. */
const lastPass = shrinkStreamBuffers.name;

/** Passes that change the kind of program, which cannot be disabled. */
const required: ReadonlySet<string> = new Set([segment.name]);

/**
 * Without one of these passes, a program may break the guarantees of the given stages. `record` rejects programs that
 * cannot run.
 */
const unsureWithout: ReadonlyMap<string, readonly Stage[]> = new Map([
  [insertRoutes.name, ["communicating"]],
  [streamParallelType.name, ["looped", "communicating"]],
  [convertOpToCommunication.name, ["communicating"]],
]);

/** Called after every pass that ran. */
export type PassObserver = (event: {
  readonly pass: string;
  /** The pass's result: the same object as before if `changed` is false. */
  readonly program: FusionData | HostProgram;
  readonly changed: boolean;
  /** The time of the pass, without validation. */
  readonly milliseconds: number;
}) => void;

/**
 * Lowers a Fusion to one rank's host program. Throws `bad-option` for an unknown pass name, and the findings of passes
 * and validators.
 */
export function runPipeline(fusion: FusionData, context: PassContext, observe: PassObserver = () => {}): HostProgram {
  return segmentFusion(decompose(fusion, context, observe).decomposed, context, observe);
}

/** What all ranks have in common. */
export interface Decomposed {
  /** The Fusion as its tensors lie on the devices, before lowering changes any op. */
  readonly placed: FusionData;
  readonly decomposed: FusionData;
}

/** Runs the passes on the Fusion, which are the same for all ranks. Throws as `runPipeline`. */
export function decompose(fusion: FusionData, context: PassContext, observe: PassObserver = () => {}): Decomposed {
  const { options } = context;
  const { disablePass } = options;
  const step = stepper(context, observe);
  // A stage that is unsure is validated otherwise.
  const isSure = !disablePass.some((name) => unsureWithout.has(name));
  let placed = fusion;
  let decomposed = fusion;
  for (const pass of Object.values(fusionPasses)) {
    const before = decomposed;
    const isDisabled = disablePass.includes(pass.name) || (fusion.isPlaced === true && placesTensors(pass));
    const made = (own: LoweringOptions): FusionData =>
      step(pass, before, () => (isDisabled ? before : pass.run(before, { ...context, options: own })));
    if (isDisabled || !isSure) decomposed = made(options);
    else {
      const known = recall(pass.name, before, options);
      if (known !== null) {
        observe({ pass: pass.name, program: known, changed: known !== before, milliseconds: 0 });
      }
      decomposed = known ?? remember(pass.name, before, options, made);
    }
    if (placesTensors(pass)) placed = decomposed;
  }
  return { placed, decomposed };
}

/** Lowers a decomposed Fusion for one rank. Throws as `runPipeline`. */
export function segmentFusion(
  decomposed: FusionData,
  context: PassContext,
  observe: PassObserver = () => {},
): HostProgram {
  const step = stepper(context, observe);
  return runHostPasses(
    step(segment, decomposed, () => segment.run(decomposed, context)),
    context,
    observe,
  );
}

/**
 * The Fusion with the meshes and shardings that lowering gives its tensors before it changes any op: how its inputs and
 * outputs lie on the devices.
 */
export function placeTensors(fusion: FusionData, context: PassContext): FusionData {
  return Object.values(fusionPasses)
    .filter(placesTensors)
    .reduce(
      (program, pass) => (context.options.disablePass.includes(pass.name) ? program : pass.run(program, context)),
      fusion,
    );
}

function placesTensors(pass: { readonly to: Stage }): pass is Pass<"fusion", "fusion"> {
  return pass.to === "fusion";
}

/** Lowers a host program of top-level statements. Throws as `runPipeline`. */
export function runHostPasses(
  segmented: HostProgram,
  context: PassContext,
  observe: PassObserver = () => {},
): HostProgram {
  const { disablePass } = context.options;
  const step = stepper(context, observe);
  return Object.values(hostPasses).reduce<HostProgram>(
    (program, pass) =>
      step(pass, program, () => (disablePass.includes(pass.name) ? program : pass.run(program, context))),
    segmented,
  );
}

/** One pass: runs it unless it is disabled, validates the result and reports it. */
type Step = <To extends Stage>(
  pass: { readonly name: string; readonly from: Stage; readonly to: To },
  before: FusionData | HostProgram,
  run: () => StagePrograms[To],
) => StagePrograms[To];

/** Throws `bad-option` for an unknown pass name. */
function stepper({ options: { disablePass } }: PassContext, observe: PassObserver): Step {
  requireDisablable(disablePass);
  const unsure = new Set(disablePass.flatMap((name) => unsureWithout.get(name) ?? []));
  return ({ name, from, to }, before, run) => {
    const start = clock();
    const program = withOrigins(before.tensors, run);
    const milliseconds = clock() - start;
    const changed = program !== before;
    if (!unsure.has(to)) {
      // Without a required stage after it, each stage has to hold by itself.
      if (unsure.size > 0 || !("body" in program)) validate(to, program, changed ? null : from);
      else if (name === lastPass) validate(to, program);
      else if (changed) raise(validateStatements(program, "body" in before ? before : null), program);
    }
    if (!disablePass.includes(name)) observe({ pass: name, program, changed, milliseconds });
    return program;
  };
}

/** Throws the findings of the stage's checks, except those that stage `passed` has already checked. */
export function validate<S extends Stage>(stage: S, program: StagePrograms[S], passed: Stage | null = null): void {
  const known = new Set<unknown>(passed === null ? [] : stageChecks[passed]);
  raise(
    stageChecks[stage].filter((check) => !known.has(check)).flatMap((check) => check(program)),
    program,
  );
}

function raise(findings: readonly Diagnostic[], { tensors }: Pick<FusionData, "tensors">): void {
  if (findings.length === 0) return;
  throw new DiagnosticError(findings.map((each) => originated(each, tensors, true)));
}

function requireDisablable(names: readonly string[]): void {
  for (const name of names) {
    if (passNames.includes(name) && !required.has(name)) continue;
    fail("bad-option", required.has(name) ? `pass ${name} cannot be disabled` : `there is no pass ${name}`, {
      place: { kind: "option", text: "disablePass" },
      found: name,
      expected: `one of ${passNames.filter((known) => !required.has(known)).join(", ")}`,
      help: "name one of these passes",
    });
  }
}

/*
 * What passes made of Fusions. Both are immutable, so that a pass on a Fusion runs once for all options that agree where
 * it reads them. Candidates of a schedule choice mostly differ in options that only host passes read, and `explain`
 * lowers a Fusion several times.
 */

interface Made {
  /** The options that the pass read, with their values. */
  readonly read: ReadonlyMap<string | symbol, unknown>;
  readonly made: FusionData;
}

const madeOf = new WeakMap<FusionData, Map<string, Made[]>>();

/** Null if the pass has not run on the Fusion with such options. */
function recall(pass: string, fusion: FusionData, options: LoweringOptions): FusionData | null {
  const all = madeOf.get(fusion)?.get(pass) ?? [];
  const found = all.find(({ read }) => [...read].every(([name, value]) => Reflect.get(options, name) === value));
  return found?.made ?? null;
}

/** What `run` makes of the Fusion by the options that it is given. */
function remember(
  pass: string,
  fusion: FusionData,
  options: LoweringOptions,
  run: (options: LoweringOptions) => FusionData,
): FusionData {
  const read = new Map<string | symbol, unknown>();
  const get = (from: LoweringOptions, name: string | symbol): unknown => {
    const value: unknown = Reflect.get(from, name);
    read.set(name, value);
    return value;
  };
  const made = run(new Proxy(options, { get }));
  const byPass = madeOf.get(fusion) ?? new Map<string, Made[]>();
  madeOf.set(fusion, byPass);
  byPass.set(pass, [...(byPass.get(pass) ?? []), { read, made }]);
  return made;
}
