/** The flags of `braid bench`, and the settings that they make. Numbers may be lists: `-m 4096,8192`. */
import { type Command, Option } from "commander";
import type { Target } from "../../compile/compile.ts";
import type { DType } from "../../numerics/dtype.ts";
import { keysOf } from "../../support/keys-of.ts";
import { type BenchConfig, dtypeNames, readBenchConfig, type Size } from "../../bench/bench-config.ts";
import type { BenchSettings } from "../../bench/bench-plan.ts";
import { type Implementation, parseImplementations } from "../../bench/implementation.ts";
import { profileToChooseWith, profileHelp } from "../flags/choice-flags.ts";
import { badValue, choice, positiveNumber, wholeNumber } from "../flags/option-values.ts";

export interface BenchFlags {
  readonly m?: readonly number[];
  readonly n?: readonly number[];
  readonly k?: readonly number[];
  readonly size?: readonly Size[];
  readonly dtype?: readonly DType[];
  readonly impl?: readonly Implementation[];
  readonly devices?: number;
  readonly on: Target;
  readonly iterations?: number;
  readonly warmup?: number;
  readonly validate?: boolean;
  readonly seed?: number;
  readonly csv?: string;
  readonly plot?: string;
  readonly config?: string;
  readonly python?: string;
  readonly profile?: string;
  readonly timeout?: number;
  readonly json: boolean;
}

const backends = ["cpu", "cuda"] as const satisfies readonly Target[];

export function addBenchFlags(command: Command): Command {
  return command
    .addOption(new Option("-m <sizes>", "rows of the result, one size or several").argParser(sizes("-m")))
    .addOption(new Option("-n <sizes>", "columns, of each device in tp-columnwise").argParser(sizes("-n")))
    .addOption(
      new Option("-k <sizes>", "contracted, of each device in tp-rowwise and tp-allreduce").argParser(sizes("-k")),
    )
    .addOption(
      new Option("--size <MxNxK>", "one size more, beside the products of -m, -n and -k; may be repeated").argParser(
        (text: string, previous: readonly Size[] | undefined) => [...(previous ?? []), sizeOf(text)],
      ),
    )
    .addOption(
      new Option("--dtype <names>", `one or several of ${keysOf(dtypeNames).join(", ")}`).argParser((text: string) =>
        text.split(",").map(dtypeOf),
      ),
    )
    .addOption(
      new Option("--impl <name;option=value,...>", "what to time, values are alternatives; may be repeated").argParser(
        (text: string, previous: readonly Implementation[] | undefined) => [
          ...(previous ?? []),
          ...parseImplementations(text, `--impl ${text}`),
        ],
      ),
    )
    .addOption(new Option("--devices <n>", "number of devices (default: 4)").argParser(wholeNumber("--devices", 2)))
    .addOption(
      new Option(`--on <${backends.join("|")}>`, "back end").argParser(choice("--on", backends)).default("cpu"),
    )
    .addOption(new Option("--iterations <n>", "timed runs of each").argParser(wholeNumber("--iterations", 1)))
    .addOption(new Option("--warmup <n>", "runs of each before these").argParser(wholeNumber("--warmup", 0)))
    .addOption(new Option("--validate", "compare sampled elements of each result with products in double precision"))
    .addOption(new Option("--seed <s>", "seed of the random operands").argParser(wholeNumber("--seed", 0)))
    .addOption(new Option("--csv <file>", "write the results as CSV, with DDLB's column names"))
    .addOption(new Option("--plot <file>", "draw them: .svg or .html").argParser(plotFile))
    .addOption(new Option("--config <file>", "take what flags do not say from a JSON file of DDLB's form"))
    .addOption(new Option("--python <program>", "a Python that has PyTorch (default: python3)"))
    .addOption(new Option("--profile <file>", `for choice=auto: ${profileHelp}`))
    .addOption(
      new Option("--timeout <seconds>", "end a run that takes longer (default: 60)").argParser(
        positiveNumber("--timeout", 60),
      ),
    )
    .addOption(new Option("--json", "print JSON").default(false));
}

/** Flags over the configuration file. Throws what reading that throws. */
export async function benchSettings(flags: BenchFlags): Promise<BenchSettings> {
  const config = flags.config === undefined ? {} : await readBenchConfig(flags.config);
  const { m, n, k, size, dtype, impl, devices, iterations, warmup, validate, csv, plot, seed, python, timeout } = flags;
  const profile =
    flags.profile === undefined ? null : await profileToChooseWith({ scheduleChoice: "auto", profile: flags.profile });
  // Sizes of flags stand for all sizes of the file.
  const sized = m !== undefined || n !== undefined || k !== undefined || size !== undefined;
  const given: BenchSettings = {
    ...(m === undefined ? {} : { m }),
    ...(n === undefined ? {} : { n }),
    ...(k === undefined ? {} : { k }),
    ...(size === undefined ? {} : { sizes: size }),
    ...(dtype === undefined ? {} : { dtypes: dtype }),
    ...(impl === undefined ? {} : { implementations: impl }),
    ...(devices === undefined ? {} : { devices }),
    ...(iterations === undefined ? {} : { iterations }),
    ...(warmup === undefined ? {} : { warmup }),
    ...(validate === undefined ? {} : { validate }),
    ...(csv === undefined ? {} : { csv }),
    ...(plot === undefined ? {} : { plot }),
    ...(seed === undefined ? {} : { seed }),
    ...(python === undefined ? {} : { python }),
    ...(profile === null ? {} : { profile }),
    ...(timeout === undefined ? {} : { timeout: Math.ceil(timeout * 1000) }),
  };
  return { on: flags.on, ...(sized ? withoutSizes(config) : config), ...given };
}

function withoutSizes(config: BenchConfig): BenchConfig {
  const kept: { -readonly [K in keyof BenchConfig]: BenchConfig[K] } = { ...config };
  delete kept.m;
  delete kept.n;
  delete kept.k;
  delete kept.sizes;
  return kept;
}

function sizes(flag: string): (text: string) => readonly number[] {
  const read = wholeNumber(flag, 1);
  return (text) => text.split(",").map(read);
}

function sizeOf(text: string): Size {
  const [, m, n, k] = /^(\d+)x(\d+)x(\d+)$/.exec(text) ?? [];
  if (m === undefined || n === undefined || k === undefined) {
    return badValue("--size", text, "MxNxK", "write it like --size 8192x1024x4096");
  }
  const read = wholeNumber("--size", 1);
  return { m: read(m), n: read(n), k: read(k) };
}

function dtypeOf(text: string): DType {
  const dtype = Object.hasOwn(dtypeNames, text) ? dtypeNames[text] : undefined;
  return (
    dtype ?? badValue("--dtype", text, `one of ${keysOf(dtypeNames).join(", ")}`, "several are separated by commas")
  );
}

function plotFile(text: string): string {
  return /\.(svg|html)$/.test(text)
    ? text
    : badValue("--plot", text, "a file that ends in .svg or .html", "name such a file");
}
