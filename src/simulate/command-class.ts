/**
 * Classes of commands by what times them in a machine profile. Predictions of one class err alike, because they come
 * from the same measurements; those of different classes err independently.
 */
import { touchesPeers } from "../commands/barriers.ts";
import type { Program } from "../commands/program.ts";
import { at } from "../support/invariant.ts";

/**
 * gemms; kernels: all others on the rank's own memory; copies, within the rank and over links; transfers: the library's;
 * reductionsInPeers: kernels in peers' memory; host: launches, events, signals and the fixed cost of a run.
 */
export const commandClasses = ["gemms", "kernels", "copies", "transfers", "reductionsInPeers", "host"] as const;
export type CommandClass = (typeof commandClasses)[number];

/** One number for each class. */
export type ByClass = { readonly [C in CommandClass]: number };

export function byClass(valueOf: (of: CommandClass) => number): ByClass {
  return {
    gemms: valueOf("gemms"),
    kernels: valueOf("kernels"),
    copies: valueOf("copies"),
    transfers: valueOf("transfers"),
    reductionsInPeers: valueOf("reductionsInPeers"),
    host: valueOf("host"),
  };
}

/** The class of the command at `index` of `rank`'s list. */
export function commandClassOf(program: Program, rank: number, index: number): CommandClass {
  const command = at(at(program.ranks, rank).commands, index);
  switch (command.kind) {
    case "copy":
      return "copies";
    case "transfer":
      return "transfers";
    case "launch": {
      if (touchesPeers(program, rank, command)) return "reductionsInPeers";
      const { kind } = at(program.kernels, command.kernel);
      return kind === "matmul" || kind === "linear" ? "gemms" : "kernels";
    }
    default:
      return "host";
  }
}
