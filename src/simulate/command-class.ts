/**
 * Classes of commands by what times them in a machine profile. Predictions of one class err alike, because they come
 * from the same measurements; those of different classes err independently.
 */
import { isGemmKernel } from "../commands/kernel.ts";
import { touchesPeers } from "../commands/barriers.ts";
import type { Program } from "../commands/program.ts";
import { at, keysOf } from "../support/invariant.ts";
import { isLocalCopy } from "../trace/command-work.ts";

/** One number for each class. */
export interface ByClass {
  /** matmul and linear. */
  readonly gemms: number;
  /** All other kernels on the rank's own memory. */
  readonly kernels: number;
  /** Within the rank and over links. */
  readonly copies: number;
  /** The library's collectives, sends and receives. */
  readonly transfers: number;
  /** Kernels in peers' memory. */
  readonly reductionsInPeers: number;
  /** Launches, events, signals and the fixed cost of a run. */
  readonly host: number;
}

export type CommandClass = keyof ByClass;

export function byCommandClass(valueOf: (of: CommandClass) => number): ByClass {
  return {
    gemms: valueOf("gemms"),
    kernels: valueOf("kernels"),
    copies: valueOf("copies"),
    transfers: valueOf("transfers"),
    reductionsInPeers: valueOf("reductionsInPeers"),
    host: valueOf("host"),
  };
}

export const commandClasses: readonly CommandClass[] = keysOf(byCommandClass(() => 0));

/** The class of the command at `index` of `rank`'s list. */
export function commandClassOf(program: Program, rank: number, index: number): CommandClass {
  const command = at(at(program.ranks, rank).commands, index);
  switch (command.kind) {
    case "copy":
      return "copies";
    case "transfer":
      return isLocalCopy(program, rank, command) ? "copies" : "transfers";
    case "launch": {
      if (touchesPeers(program, rank, command)) return "reductionsInPeers";
      return isGemmKernel(at(program.kernels, command.kernel)) ? "gemms" : "kernels";
    }
    default:
      return "host";
  }
}
