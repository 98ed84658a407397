/** The plan of one `braid bench`. Flags override the configuration file, which overrides defaults. */
import type { Target } from "../../src/compile/compile.ts";
import { fail } from "../../src/diagnostics/diagnostic.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import { flagOfRow, type Options } from "../../src/compile/options.ts";
import type { BenchConfig } from "./bench-config.ts";
import { type BenchPrimitive, type BenchProblem } from "./bench-problem.ts";
import { benchRows, type Size, usual } from "./bench-options.ts";
import { blockCuts, blockPasses, requireShares } from "./block/block-problem.ts";
import { expandImplementations, type Implementation, parseImplementations, type PeerName } from "./implementation.ts";
import type { Primitive, Problem } from "./primitives.ts";

export interface BenchPlan {
  readonly primitive: BenchPrimitive;
  readonly problems: readonly BenchProblem[];
  readonly implementations: readonly Implementation[];
  readonly devices: number;
  readonly on: Target;
  readonly iterations: number;
  readonly warmup: number;
  readonly validate: boolean;
  readonly seed: number;
  readonly csv: string | null;
  readonly plot: string | null;
  readonly python: string;
  /** The profile for scheduleChoice=auto. */
  readonly profile: MachineProfile | null;
  /** Seconds for one iteration, and for an answer from PyTorch's process. */
  readonly timeout: number;
}

/** Settings from flags and a configuration file. */
export interface BenchSettings extends BenchConfig, Options<"seed" | "timeout"> {
  readonly on: Target;
  readonly profile: MachineProfile | null;
}

/** `devices` comes from the launcher or the flags. Throws `option-value` if no primitive is named. */
export function planBench(primitive: BenchPrimitive | null, settings: BenchSettings, devices: number): BenchPlan {
  const { on, seed, profile, timeout } = settings;
  const standard = usual[on];
  const named = primitive ?? settings.primitive ?? noPrimitive();
  return {
    primitive: named,
    problems: named === "block" ? blocks(settings, devices) : matmuls(named, settings, devices),
    implementations: withBaselines(settings.impl ?? usualImplementations(named, on, profile)),
    devices,
    on,
    iterations: settings.iterations ?? standard.iterations,
    warmup: settings.warmup ?? standard.warmup,
    validate: settings.validate ?? false,
    seed,
    csv: settings.csv ?? null,
    plot: settings.plot ?? null,
    python: settings.python ?? "python3",
    profile,
    timeout,
  };
}

function matmuls(primitive: Primitive, settings: BenchSettings, devices: number): readonly Problem[] {
  refuse(settings, ["model", "cut", "pass"], primitive, "sizes of a GEMM: m, n, k, size");
  const { size, dtypes } = usual[settings.on];
  const { m = [size.m], n = [size.n], k = [size.k] } = settings;
  const product = m.flatMap((rows) =>
    n.flatMap((columns) => k.map((depth): Size => ({ m: rows, n: columns, k: depth }))),
  );
  const listed = settings.m === undefined && settings.n === undefined && settings.k === undefined;
  const { sizes = [] } = settings;
  const combined = sizes.length > 0 && listed ? [] : product;
  const of: readonly DType[] = settings.dtype ?? dtypes;
  const problems = (all: readonly Size[], flag: "--set size" | "--set m"): readonly Problem[] =>
    all.flatMap((size) => of.map((dtype) => requireRows({ primitive, ...size, dtype, devices }, flag)));
  return [...problems(sizes, "--set size"), ...problems(combined, "--set m")];
}

/** Throws `bad-extent`, with the flag that gave them, for rows that the devices cannot share equally. */
function requireRows(problem: Problem, flag: "--set size" | "--set m"): Problem {
  const { primitive, m, devices } = problem;
  if (primitive === "tp-allreduce" || m % devices === 0) return problem;
  return fail({
    code: "bad-extent",
    message: `the rows of ${primitive} cannot be shared equally`,
    place: { kind: "option", text: flag },
    found: `m ${m} on ${devices} devices`,
    expected: `a multiple of ${devices}`,
    help: `use ${Math.max(1, Math.round(m / devices)) * devices} rows, or another number of --devices`,
  });
}

function blocks(settings: BenchSettings, devices: number): readonly BenchProblem[] {
  refuse(settings, ["m", "n", "k", "sizes"], "block", "model, cut and pass");
  const { model, dtypes } = usual[settings.on];
  const { model: all = [model], cut: cuts = blockCuts, pass: passes = blockPasses } = settings;
  const of: readonly DType[] = settings.dtype ?? dtypes;
  return all.flatMap((each) =>
    cuts.flatMap((cut) =>
      passes.flatMap((pass) =>
        of.map((dtype) => requireShares({ primitive: "block", model: each, cut, pass, dtype, devices })),
      ),
    ),
  );
}

/** Throws `option-value` for settings of another primitive. */
function refuse(
  settings: BenchSettings,
  names: readonly ("m" | "n" | "k" | "sizes" | "model" | "cut" | "pass")[],
  primitive: BenchPrimitive,
  expected: string,
): void {
  const given = names.find((name) => settings[name] !== undefined);
  if (given === undefined) return;
  const flag = flagOfRow(given, benchRows[given]);
  fail({
    code: "option-value",
    message: `${primitive} has no ${given}`,
    place: { kind: "option", text: flag },
    found: `${flag} with ${primitive}`,
    expected,
    help: `leave ${flag} out`,
  });
}

/**
 * The default implementations: what is chosen with a profile, nvFuser's forms without rewrites; on GPUs also with the
 * rewrites that help at most sizes, and the implementations of PyTorch and JAX.
 */
function usualImplementations(
  primitive: BenchPrimitive,
  on: Target,
  profile: MachineProfile | null,
): readonly Implementation[] {
  const lowered =
    primitive === "block"
      ? ["braid;chunks=1,4;backend=nccl", "braid;chunks=4;backend=cuda"]
      : ["braid;form=rotated;protocol=get,put", "braid;form=collective;backend=nccl"];
  const rewritten = "braid;protocol=get,put;streams=64;inPlace=true;ownLast=true;computeStreams=1;batchSignals=true";
  const chosen = profile === null ? [] : ["braid;scheduleChoice=auto"];
  const texts = [...chosen, ...lowered, ...(on === "cuda" && primitive !== "block" ? [rewritten] : [])];
  const own = texts.flatMap((text) => parseImplementations(text, "--impl"));
  if (on === "cpu") return own;
  const inPeersMemory: readonly PeerName[] =
    primitive === "tp-allreduce" ? ["torch-one-shot", "torch-two-shot"] : ["torch-async-tp"];
  const compiled: readonly PeerName[] = primitive === "block" ? ["torch-nccl-compile", "torch-async-tp-compile"] : [];
  const xla: readonly PeerName[] = primitive === "block" ? ["xla"] : ["xla", "xla-shard-map"];
  const peers: readonly PeerName[] = ["torch-nccl", ...inPeersMemory, ...compiled, "torch-compute-only", ...xla];
  return [...own, ...peers.map((name): Implementation => ({ kind: "peer", name, said: "", asked: false }))];
}

/** Puts missing baselines first and removes duplicates. */
function withBaselines(implementations: readonly Implementation[]): readonly Implementation[] {
  const baselines = ["compute-only", "serial"].flatMap((name) => expandImplementations(name, [], "--impl"));
  const all = [...baselines, ...implementations];
  const keyOf = ({ name, said }: Implementation): string => `${name} ${said}`;
  return [...new Map(all.toReversed().map((each) => [keyOf(each), each])).values()].toReversed();
}

function noPrimitive(): never {
  return fail({
    code: "option-value",
    message: "no primitive to time is given",
    place: { kind: "option", text: "braid bench PRIMITIVE" },
    found: "no primitive, on the command line or in a file",
    expected: "tp-columnwise, tp-rowwise, tp-allreduce or block",
    help: "name one: braid bench tp-columnwise",
  });
}
