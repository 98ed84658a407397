/** The settings that the flags of `braid bench` and a configuration file make. */
import type { Command } from "commander";
import { readBenchConfig } from "../../bench/bench-config.ts";
import type { BenchFlags } from "../../bench/bench-options.ts";
import type { BenchSettings } from "../../bench/bench-plan.ts";
import { givenOptions } from "../flags/option-flags.ts";
import { profileToChooseWith } from "../flags/profile.ts";

/** Flags over the configuration file; sizes of flags stand for all sizes of the file. Throws what reading it throws. */
export async function benchSettings(command: Command, flags: BenchFlags): Promise<BenchSettings> {
  const { config: file, devices: _, profile: name, ...given } = flags;
  const config = file === undefined ? {} : await readBenchConfig(file);
  const { m: _m, n: _n, k: _k, sizes: _s, ...unsized } = config;
  const isSized = [given.m, given.n, given.k, given.sizes].some((each) => each !== undefined);
  const profile = name === undefined ? null : await profileToChooseWith({ scheduleChoice: "auto", profile: name });
  return { ...(isSized ? unsized : config), ...given, ...givenOptions(command, ["devices"]), profile };
}
