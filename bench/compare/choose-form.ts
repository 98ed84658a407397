/**
 * scheduleChoice=auto: chooses the form of a primitive and its schedule by the shortest predicted time. A user's
 * program has one form. A primitive has several that mean the same: one collective and one matmul, loops whose chunks
 * are collectives of the library or in peers' memory, loops over the devices.
 */
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import type { AnyCompilation } from "../../src/compile/compile.ts";
import { type ChooseOptions, type CompiledCandidate, considerSchedules } from "../../src/tune/choose/consider.ts";
import { decide } from "../../src/tune/choose/decide.ts";
import type { CommunicatorBackend } from "../../src/host/collectives.ts";
import type { LoweringOptions } from "../../src/passes/options.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import type { BraidOptions } from "./braid/braid-options.ts";
import { buildPrimitive, type Form, type Pieces, type Primitive, type Problem, takesOutputs } from "./primitives.ts";

/** A primitive's Fusion in one form. */
export interface Shape extends Pieces {
  readonly form: Form;
}

export interface ChosenForm {
  readonly shape: Shape;
  /** Not verified yet. */
  readonly compilation: AnyCompilation;
  /** The reason for the choice, in one line. */
  readonly reason: string;
}

/**
 * `given`: the user's form, chunks and outputs, which are then not chosen. Throws what lowering throws if no form can
 * be lowered.
 */
export function chooseForm(
  given: Pick<BraidOptions, "form" | "chunks" | "outputs">,
  problem: Problem,
  lowering: Omit<ChooseOptions, "devices">,
  profile: MachineProfile,
): ChosenForm {
  const { devices } = problem;
  const considered: (CompiledCandidate & { readonly shape: Shape })[] = [];
  const errors: DiagnosticError[] = [];
  for (const { shape, name, lowering: own } of shapesOf(given, problem)) {
    const together = joined(lowering, own);
    if (together === null) continue;
    try {
      const fusion = buildPrimitive(shape.form, problem, shape);
      const found = considerSchedules(fusion, { ...together, devices }, profile);
      const nameOf = (own: string): string => (name === "" ? own : `${name}, ${own}`);
      for (const each of found) {
        const { candidate } = each;
        const named = { ...candidate, name: nameOf(candidate.name) };
        considered.push({ ...each, candidate: named, shape });
      }
    } catch (error) {
      // The rows do not divide evenly, or the form does not support the options.
      if (!(error instanceof DiagnosticError)) throw error;
      errors.push(error);
    }
  }
  const [firstError] = errors;
  if (considered.length === 0 && firstError !== undefined) throw firstError;
  const { picked, reason } = decide(considered);
  return { shape: picked.shape, compilation: picked.compiled(), reason };
}

interface NamedShape {
  readonly shape: Shape;
  readonly name: string;
  readonly lowering: Partial<LoweringOptions>;
}

/** Chunk counts of loops over collectives. Each is the fastest for some size. */
const chunkCounts = [2, 4, 8] as const;

/**
 * The backends of whole collectives and of loops over them. A reduction is one kernel in peers' memory. A gather would
 * copy there, which loops over devices do better.
 */
const backendsOf: { readonly [P in Primitive]: readonly CommunicatorBackend[] } = {
  "tp-columnwise": ["nccl"],
  "tp-rowwise": ["nccl", "cuda"],
  "tp-allreduce": ["nccl", "cuda"],
};

function shapesOf(
  { form, chunks, outputs }: Pick<BraidOptions, "form" | "chunks" | "outputs">,
  { devices, primitive }: Problem,
): readonly NamedShape[] {
  const shape = (of: Form, pieces: Partial<Pieces> = {}): Shape => ({
    form: of,
    chunks: devices,
    outputs: 1,
    ...pieces,
  });
  if (form !== undefined) {
    const pieces = { chunks: chunks ?? devices, outputs: outputs ?? 1 };
    return [{ shape: { form, ...pieces }, name: "", lowering: {} }];
  }
  const inChunks = (count: number, lowering: Partial<LoweringOptions>): NamedShape => ({
    shape: shape("collective", { chunks: count }),
    name: `${count} chunks`,
    lowering,
  });
  // With the user's chunks, the collectives may also be copies.
  if (chunks !== undefined) return [inChunks(chunks, {})];
  const loopOver = (count: number, name: string): NamedShape => ({
    shape: shape("rotated", { outputs: count }),
    name,
    lowering: {},
  });
  if (outputs !== undefined) return [loopOver(outputs, "")];
  const backends = backendsOf[primitive];
  const wholes = backends.map((backend): NamedShape => ({
    shape: shape("serial"),
    name: "",
    lowering: { backend, overlap: false },
  }));
  // Between two devices, one half of the result is complete, and on its way, while the GEMM of the other runs. With four
  // outputs, and with more devices, this was not faster.
  const inHalves = takesOutputs("rotated", primitive) && devices === 2 ? [loopOver(2, "2 outputs")] : [];
  const collectives = chunkCounts.flatMap((count) =>
    backends.map((backend) => inChunks(count, { backend, overlap: true })),
  );
  return [...wholes, loopOver(1, ""), ...inHalves, ...collectives];
}

/** The form's options joined with the user's; null if they differ. */
function joined<T extends object>(given: T, own: Partial<LoweringOptions>): (T & Partial<LoweringOptions>) | null {
  const set = new Map(Object.entries(given));
  const differs = Object.entries(own).some(([name, value]) => set.has(name) && set.get(name) !== value);
  return differs ? null : { ...given, ...own };
}
