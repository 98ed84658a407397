/**
 * Runs passes in order. The pipeline, not the pass, validates what a pass made and tells the observer; a pass that
 * returns the same object is not validated again.
 */
import { DiagnosticError, fail } from "../diagnostics/diagnostic.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import type { HostProgram } from "../host/nodes.ts";
import { convertOpToCommunication } from "./communicate/convert-op-to-communication.ts";
import { deallocate } from "./buffers/deallocate.ts";
import { decomposeReshardings } from "./reshard/decompose-reshardings.ts";
import type { Pass, PassContext, Stage, StagePrograms } from "./pass.ts";
import { prepareFusion } from "./prepare/prepare-fusion.ts";
import { segment } from "./segment/segment.ts";
import { shrinkStreamBuffers } from "./buffers/shrink-stream-buffers.ts";
import { streamParallelType } from "./stream-loops/stream-parallel-type.ts";
import { validators } from "./validators.ts";

/** The passes of the MultiDeviceExecutor path, in their order. */
export const passes = {
  decomposeReshardings,
  segment,
  streamParallelType,
  convertOpToCommunication,
  deallocate,
  shrinkStreamBuffers,
} as const;

export const passNames: readonly string[] = Object.values(passes).map((pass) => pass.name);

/** Told after every pass that ran; `program` is what it returned. */
export type PassObserver = (event: {
  readonly pass: string;
  readonly program: FusionData | HostProgram;
  readonly changed: boolean;
}) => void;

/** Passes that lead to another kind of program and so cannot be left out. */
const required: ReadonlySet<string> = new Set([segment.name]);

/** Stages whose promises need not hold with a pass left out: the recorder refuses what cannot run. */
const promisesOf: ReadonlyMap<string, readonly Stage[]> = new Map([
  [decomposeReshardings.name, ["communicating"]],
  [streamParallelType.name, ["looped", "communicating"]],
  [convertOpToCommunication.name, ["communicating"]],
]);

/** Lowers a Fusion to one rank's HostProgram. Throws `bad-option` for a pass that does not exist, and what passes and validators find. */
export function runPipeline(fusion: FusionData, context: PassContext, observe: PassObserver = () => {}): HostProgram {
  requireKnownPasses(context.options.disablePass);
  const prepared = prepareFusion(fusion, context.options);
  validate("fusion", prepared);
  const disabled = new Set(context.options.disablePass);
  const run = <From extends Stage, To extends Stage>(
    pass: Pass<From, To>,
    program: StagePrograms[From] & StagePrograms[To],
  ): StagePrograms[To] => (disabled.has(pass.name) ? program : runObserved(pass, program, context, observe));
  const decomposed = run(decomposeReshardings, prepared);
  const segmented = runObserved(segment, decomposed, context, observe);
  const looped = run(streamParallelType, segmented);
  const communicating = run(convertOpToCommunication, looped);
  return run(shrinkStreamBuffers, run(deallocate, communicating));
}

function runObserved<From extends Stage, To extends Stage>(
  pass: Pass<From, To>,
  program: StagePrograms[From],
  context: PassContext,
  observe: PassObserver,
): StagePrograms[To] {
  const result = pass.run(program, context);
  const same: unknown = program;
  const changed = result !== same;
  const unsure = context.options.disablePass.flatMap((name) => promisesOf.get(name) ?? []);
  if (changed && !unsure.includes(pass.to)) validate(pass.to, result);
  observe({ pass: pass.name, program: result, changed });
  return result;
}

/** Throws what the stage's validator finds. */
export function validate<S extends Stage>(stage: S, program: StagePrograms[S]): void {
  const findings = validators[stage](program);
  if (findings.length > 0) throw new DiagnosticError(findings);
}

function requireKnownPasses(names: readonly string[]): void {
  for (const name of names) {
    if (passNames.includes(name) && !required.has(name)) continue;
    fail({
      code: "bad-option",
      message: required.has(name) ? `pass ${name} cannot be left out` : `there is no pass ${name}`,
      place: { kind: "option", text: "disablePass (--disable-pass)" },
      found: name,
      expected: `one of ${passNames.filter((known) => !required.has(known)).join(", ")}`,
      help: "name one of these passes",
    });
  }
}
