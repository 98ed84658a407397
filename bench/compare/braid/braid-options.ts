/**
 * The options of Braid's implementations, as named in `--impl "braid;NAME=VALUE"`: how a primitive is built, and rows
 * of the schema of options.
 */
import { type GivenOptions, options, optionRow, scheduleNames, type ValuesOf } from "../../../src/compile/options.ts";
import type { KindInfo } from "../../../src/compile/options/kind.ts";
import { oneOf, wholeNumber } from "../../../src/compile/options/kinds.ts";
import { isOneOf, keysOf } from "../../../src/support/invariant.ts";
import { loopForms } from "../primitives.ts";

const ownRows = {
  form: {
    kind: oneOf(loopForms),
    help: "how a loop communicates: as p2p of --schedule, or a loop over chunks with one collective each; default: rotated",
  },
  backend: { kind: oneOf(["nccl", "cuda"]), help: `${options.backend.help}; default: cuda, but nccl for linear` },
  chunks: { kind: wholeNumber(1, 4), help: "chunks of form collective; default: the number of devices" },
  outputs: {
    kind: wholeNumber(1, 2),
    help: "tensors that the rows of the result are split into, each communicated by itself; for loops over devices of tp-rowwise and tp-allreduce",
  },
  scheduleChoice: {
    kind: oneOf(["given", "auto"]),
    help: "use the form and the rewrites as they are given, or choose the fastest by simulation with --profile; default: given",
  },
} as const;

const sharedNames = ["protocol", "streams", "interStreamSync", "graph", ...scheduleNames] as const;

export type BraidOptions = ValuesOf<typeof ownRows> & GivenOptions<(typeof sharedNames)[number]>;

export type BraidOption = keyof typeof ownRows | (typeof sharedNames)[number];

export interface BraidOptionRow {
  readonly kind: KindInfo;
  readonly help: string;
}

const ownNames = keysOf(ownRows);

export const braidOptionNames: readonly BraidOption[] = [...ownNames, ...sharedNames];

export function braidOptionRow(name: BraidOption): BraidOptionRow {
  return isOneOf(ownNames, name) ? ownRows[name] : optionRow(name);
}
