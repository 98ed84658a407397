/** The interval around a predicted time: what the run consists of, the errors of its classes, and what widens it. */
import { describe, expect, it } from "vitest";
import { planOwn } from "../../bench/compare/braid/plan-own.ts";
import { parseImplementations } from "../../bench/compare/implementation.ts";
import type { Primitive } from "../../bench/compare/primitives.ts";
import { type ExplainedRun, explainRun } from "../../src/explain/explain-run.ts";
import { intervalOf, meanErrorsWithin, type PredictedInterval } from "../../src/explain/interval.ts";
import { assumedTexts } from "../../src/explain/time-texts.ts";
import { type ByClass, commandClasses } from "../../src/simulate/command-class.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import { committedErrors } from "../../src/simulate/mean-errors.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { machine, noCosts, perMegabyte, transfersAt } from "./machine.ts";

interface Case {
  readonly of: keyof ByClass;
  readonly primitive: Primitive;
  readonly implementation: string;
  readonly slow: Partial<MachineProfile>;
}

const cases: readonly Case[] = [
  { of: "gemms", primitive: "tp-columnwise", implementation: "compute-only", slow: {} },
  {
    of: "kernels",
    primitive: "tp-rowwise",
    implementation: "braid;backend=cuda",
    slow: {
      memory: perMegabyte(1000),
      reductions: [{ kernel: "combine", dtype: "bfloat16", timings: perMegabyte(1000) }],
    },
  },
  {
    of: "copies",
    primitive: "tp-columnwise",
    implementation: "braid;backend=cuda",
    slow: { peerCopies: perMegabyte(1000) },
  },
  {
    of: "transfers",
    primitive: "tp-columnwise",
    implementation: "serial",
    slow: { transfers: transfersAt(perMegabyte(1000)) },
  },
  {
    of: "reductionsInPeers",
    primitive: "tp-allreduce",
    implementation: "braid;backend=cuda;form=collective;chunks=2",
    slow: { reductionsInPeers: perMegabyte(1000) },
  },
  { of: "host", primitive: "tp-columnwise", implementation: "compute-only", slow: { costs: { ...noCosts, run: 1e6 } } },
];

/** Fails for a program without one. */
function interval(run: Parameters<typeof intervalOf>[0], profile: MachineProfile): PredictedInterval {
  const found = intervalOf(run, profile);
  if (found === null) throw new Error("the program has no interval");
  return found;
}

function explained({ primitive, implementation, slow }: Omit<Case, "of">, devices = 4): ExplainedRun {
  const [parsed] = parseImplementations(implementation, "a test");
  if (parsed?.kind !== "braid") throw new Error(`${implementation} is no implementation of Braid`);
  const problem = { primitive, m: 1024, n: 512, k: 512, dtype: "bfloat16", devices } as const;
  const { program } = planOwn(parsed, problem, { on: "cuda", profile: null });
  const profile = machine({ on: "cuda", ...slow });
  return explainRun({ program, ...simulate(program, profile, { graph: true }) }, profile, {
    serial: null,
    graph: true,
  });
}

describe("a run's time by class of command", () => {
  it.each(cases)("adds up, most of it $of on a machine where only these are slow", ({ of, ...rest }) => {
    const { milliseconds, path } = explained(rest);
    expect(commandClasses.reduce((sum, each) => sum + path[each], 0)).toBeCloseTo(milliseconds, 9);
    for (const each of commandClasses) expect(path[each]).toBeGreaterThanOrEqual(-1e-9);
    expect(path[of] / milliseconds).toBeGreaterThan(0.8);
  });

  it("counts what GEMMs take longer beside transfers as transfers", () => {
    const implementation = "braid;backend=nccl;form=collective;chunks=8";
    const [alone, slowed] = [1, 3].map((underTransfer) => {
      const slow = { transfers: transfersAt(perMegabyte(20)), costs: { ...noCosts, underTransfer } };
      return explained({ primitive: "tp-rowwise", implementation, slow });
    });
    const interference = slowed?.causes.find(({ cause }) => cause === "interference")?.milliseconds ?? 0;
    expect(interference).toBeGreaterThan(0);
    expect(slowed?.path.gemms).toBeCloseTo(alone?.path.gemms ?? NaN, 9);
    expect(slowed?.path.transfers).toBeGreaterThanOrEqual(interference);
  });
});

describe("the interval", () => {
  it.each(cases)("is as wide as the errors of $of and of the run", ({ of, ...rest }) => {
    const run = { ...explained(rest), assumptions: [], loopedGemms: 0, besideGemms: 0 };
    const only = { ...run, path: { ...run.path, [of]: run.milliseconds } };
    for (const each of commandClasses) if (each !== of) Object.assign(only.path, { [each]: 0 });
    const { low, high, share } = interval(only, machine({ on: "cuda" }));
    expect(share).toBe(0.9);
    const unseen = 0.2 * (1 - committedErrors.seen[of]);
    const error = Math.hypot(committedErrors.classes[of], committedErrors.run, unseen);
    expect(Math.log(high / run.milliseconds)).toBeCloseTo(meanErrorsWithin * error, 9);
    expect(low * high).toBeCloseTo(run.milliseconds ** 2, 9);
    const wider = interval(only, machine({ on: "cuda", residuals: { [of]: 0.7 } }));
    expect(Math.log(wider.high / run.milliseconds)).toBeCloseTo(
      meanErrorsWithin * Math.hypot(0.7, committedErrors.run, unseen),
      9,
    );
    const others = interval(only, machine({ on: "cuda", residuals: { [of === "host" ? "gemms" : "host"]: 0.7 } }));
    expect(others.high).toBeCloseTo(high, 9);
  });

  it.each([
    ["another number of ranks", "transfers", { primitive: "tp-columnwise", implementation: "serial", slow: {} }, 8],
    [
      "copies of another number of devices",
      "copies",
      { primitive: "tp-columnwise", implementation: "braid", slow: {} },
      2,
    ],
    [
      "GEMMs larger than the grid",
      "gemms",
      {
        primitive: "tp-columnwise",
        implementation: "compute-only",
        slow: { products: [{ dtype: "bfloat16", m: [128, 512], n: [1], k: [1], teraflops: [10, 10] }] },
      },
      4,
    ],
    [
      "more bytes than were timed",
      "transfers",
      {
        primitive: "tp-columnwise",
        implementation: "serial",
        slow: { transfers: transfersAt([1, 2, 3].map((bytes) => ({ bytes, microseconds: bytes }))) },
      },
      4,
    ],
  ] as const)("widens for %s, and says so", (_, of, given, devices) => {
    const run = explained(given, devices);
    const assumed = run.assumptions.filter((each) => each.of === of);
    expect(assumed).not.toEqual([]);
    const width = (assumptions: ExplainedRun["assumptions"]): number =>
      interval({ ...run, path: { ...run.path, [of]: run.milliseconds }, assumptions }, machine({ on: "cuda" })).high;
    expect(width(assumed)).toBeGreaterThan(width([]));
  });

  it.each([
    ["braid;backend=nccl;form=collective;chunks=4", 1],
    ["serial", 0],
  ])("is wider where GEMMs are in loops, as all of %s: %d", (implementation, share) => {
    const run = explained({ primitive: "tp-columnwise", implementation, slow: {} });
    expect(run.path.gemms).toBeGreaterThan(0);
    expect(run.loopedGemms).toBeCloseTo(share * run.path.gemms, 9);
    const without = interval({ ...run, loopedGemms: 0 }, machine({ on: "cuda" }));
    expect(interval(run, machine({ on: "cuda" })).high > without.high).toBe(share > 0);
  });

  it.each([
    ["braid;backend=cuda;form=collective;chunks=4;computeStreams=1", true],
    ["braid;backend=cuda;form=collective;chunks=4;computeStreams=1;smMargin=8", false],
    ["serial;backend=cuda", false],
  ])("is wider where %s has kernels in peers' memory beside GEMMs without a margin: %s", (implementation, isWider) => {
    const slow = { reductionsInPeers: perMegabyte(100) };
    const run = explained({ primitive: "tp-allreduce", implementation, slow }, 2);
    const without = interval({ ...run, besideGemms: 0 }, machine({ on: "cuda" }));
    expect(interval(run, machine({ on: "cuda" })).high > without.high).toBe(isWider);
  });

  it("is wider on CPUs, where no committed run was", () => {
    const run = { ...explained({ primitive: "tp-columnwise", implementation: "serial", slow: {} }), assumptions: [] };
    const highOn = (on: "cpu" | "cuda"): number => interval(run, machine({ on })).high;
    expect(highOn("cpu")).toBeGreaterThan(1.3 * highOn("cuda"));
  });

  it("is none for GEMMs of another size of elements, and says so", () => {
    const products = [{ dtype: "float", m: [1], n: [1], k: [1], teraflops: [10] }] as const;
    const run = explained({ primitive: "tp-columnwise", implementation: "compute-only", slow: { products } });
    expect(assumedTexts(run.assumptions)).toContain(
      "no calibration for bfloat16: GEMMs are timed as in float (error unknown, no interval)",
    );
    expect(intervalOf(run, machine({ products }))).toBeNull();
    const without = { ...run, path: { ...run.path, gemms: 0, host: run.milliseconds } };
    expect(intervalOf(without, machine({ products }))).not.toBeNull();
  });

  it("says nothing for a program that the profile has measured", () => {
    const axis = [128, 4096];
    const grid = {
      dtype: "bfloat16",
      m: axis,
      n: axis,
      k: axis,
      teraflops: Array.from({ length: 8 }, () => 10),
    } as const;
    const slow = { products: [grid] };
    expect(explained({ primitive: "tp-columnwise", implementation: "serial", slow }).assumptions).toEqual([]);
  });
});
