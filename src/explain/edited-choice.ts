/** Edits of a program whose schedule was chosen: each edited program gets the schedule that would be chosen for it. */
import type { AnyCompilation } from "../compile/compile.ts";
import type { HasFusionData } from "../compile/lower.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import type { MachineProfile } from "../simulate/machine-profile.ts";
import { simulate } from "../simulate/simulate.ts";
import { chooseFor, type KnownRegions } from "../tune/choose/choose.ts";
import type { ChooseOptions } from "../tune/choose/consider.ts";
import type { CompiledLayers, FewerLayers } from "../tune/regions/fewer-layers.ts";
import type { AnnotationEdit } from "./edits.ts";

/** An edited program: compiled, all of it or that with few layers, and predicted. */
export interface Edited {
  readonly compilation: AnyCompilation;
  readonly milliseconds: number;
}

/** Of a whole program, or of one of which few layers were compiled. */
export interface ChosenOf {
  readonly source: HasFusionData;
  readonly layers: CompiledLayers | null;
  /** Regions that an edit leaves as they are keep their schedules. */
  readonly known: KnownRegions;
}

/** Null for an edit that is refused, or with which layers are not lowered alike. */
export function chosenForEdit(
  { source, layers, known }: ChosenOf,
  { apply }: AnnotationEdit,
  { graph = true, ...options }: ChooseOptions,
  profile: MachineProfile,
): Edited | null {
  const edited = (of: HasFusionData): HasFusionData => {
    const data = apply(of.data());
    return { data: () => data };
  };
  try {
    const fewer: FewerLayers | null =
      layers === null
        ? null
        : {
            few: edited(layers.few.source),
            more: edited(layers.more.source),
            missing: layers.missing,
            larger: null,
          };
    const given = { ...options, graph, verify: "off" } as const;
    const choice = chooseFor("auto", fewer?.more ?? edited(source), given, profile, fewer, known);
    if (choice === null) return null;
    const { compilation } = choice;
    if (fewer !== null) return choice.layers === null ? null : { compilation, milliseconds: choice.milliseconds };
    // Times of candidates are corrected, that of the explained program is not.
    return { compilation, milliseconds: simulate(compilation.program, profile, { graph }).milliseconds };
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}
