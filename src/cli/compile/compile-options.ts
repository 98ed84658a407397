/** The options of `braid compile` alone. */
import { text, wholeNumber } from "../../compile/options/kinds.ts";
import type { ValuesOf } from "../../compile/options.ts";
import type { OptionRow } from "../../compile/options/row.ts";

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
export type CompileOwnFlags = Required<ValuesOf<typeof compileRows>>;
