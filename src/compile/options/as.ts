/**
 * `--as FORM[:ERA][,roots=MEANING]`: whose host programs a program or a dump stands for. This is the one place that says
 * what fidelity to nvFuser's dumps means.
 */
import * as v from "valibot";
import type { ParseOptions } from "../../host/parse/parse.ts";
import { defaultDumpStyle, type DumpStyle, dumpStyles } from "../../ir/scalar/scalar.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { type MemoryModel, memoryModels } from "../memory-models.ts";
import { kindOf } from "./kinds.ts";

export interface Fidelity {
  readonly form: "braid" | "nvfuser";
  /** The spelling to print; null: that of `defaultDumpStyle`. */
  readonly era: DumpStyle | null;
  /** How to read the constant roots of a dump; `era` if nothing is said. */
  readonly roots: NonNullable<ParseOptions["roots"]>;
}

const text = new RegExp(`^(braid|nvfuser)(?::(${dumpStyles.join("|")}))?(?:,roots=(devices|positions))?$`, "u");

const forms = v.object({
  form: v.picklist(["braid", "nvfuser"]),
  era: v.nullable(v.picklist(dumpStyles)),
  roots: v.picklist(["era", "devices", "positions"]),
});

export const fidelity = kindOf<Fidelity>({
  schema: forms,
  expected: `braid or nvfuser, then :ERA (one of ${dumpStyles.join(", ")}), then ,roots=devices or ,roots=positions for a dump`,
  argument: "form:era",
  example: `nvfuser:${defaultDumpStyle}`,
  parse: (given) => {
    const [, form, era = null, roots = "era"] = text.exec(given.trim()) ?? [];
    return { form, era, roots };
  },
  print: ({ form, era, roots }) => `${form}${era === null ? "" : `:${era}`}${roots === "era" ? "" : `,roots=${roots}`}`,
});

/** The lowering and recording options that it stands for. Of a dump, which is lowered already, only the latter apply. */
export function optionsOf(given: Fidelity | undefined, isDump: boolean): Partial<LoweringOptions & MemoryModel> {
  if (given === undefined) return {};
  const memory = memoryModels[given.form];
  return isDump || given.form === "braid" ? memory : { ...nvfuserLowering, ...memory };
}

/** What nvFuser lowers, and the statements that it has. */
export const nvfuserLowering = { nvfuserLimits: true, deallocate: false, shrink: false } as const;

export function styleOf(given: Fidelity | undefined): DumpStyle {
  return given?.era ?? defaultDumpStyle;
}
