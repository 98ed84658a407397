/** The rows of `braid bench` whose schedule is known: everything but `scheduleChoice=auto`. */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { planBlock } from "../compare/block/plan-block.ts";
import { planOwn } from "../compare/braid/plan-own.ts";
import { type Primitive, type Problem, primitives } from "../compare/primitives.ts";
import type { OwnImplementation } from "../compare/workload.ts";
import type { Program } from "../../src/commands/program.ts";
import { isOneOf, invariant } from "../../src/support/invariant.ts";
import { type MeasuredRow, measuredBlocks, ownRows, sizeText } from "../measured-rows.ts";
import {
  type CommittedRun,
  type MeasuredProfile,
  measuredProfiles,
  resultsFile,
  type RunKind,
} from "./committed-run.ts";

const newest = "2 x H200, the newest";

export function benchRuns(): readonly CommittedRun[] {
  const sources = [
    ...primitives.flatMap((primitive) => [
      [`${primitive}-4xH200.csv`, "4 x H200"],
      [`choice-${primitive}-4xH200.csv`, "4 x H200"],
      [`${primitive}-2xH200.csv`, "2 x H200, a later one"],
      [`interval-${primitive}-2xH200.csv`, newest],
      // Each file of 2 x H100 is of a machine of its own, but for those of random shapes.
      [`random-${primitive}-2xH100.csv`, "random-*-2xH100.csv"],
      [`${primitive}-2xH100.csv`, `${primitive}-2xH100.csv`],
    ]),
    ...["tp-allreduce-small-2xH100.csv", "tp-columnwise-small-2xH100.csv"].map((name) => [name, name]),
    ["interval-block-2xH200.csv", newest],
    ...["", "-again", "-third", "-fourth"].map((name) => [`block${name}-2xH100.csv`, `block${name}-2xH100.csv`]),
  ];
  const planned = new Map<string, Program>();
  return sources.flatMap(([source = "", machine = ""]) => runsIn(fileURLToPath(resultsFile(source)), machine, planned));
}

/**
 * The rows of a file whose name ends in the name of a shipped profile. `planned`: Programs of blocks, by profile and row,
 * because a Program is predicted once.
 */
export function runsIn(file: string, machine: string, planned = new Map<string, Program>()): readonly CommittedRun[] {
  const source = path.basename(file);
  const profile = source.replace(/^.*-|\.csv$/g, "");
  invariant(isOneOf<MeasuredProfile>(measuredProfiles, profile), "results are named after a profile", { file });
  const of = <P>(row: MeasuredRow<P>, kind: RunKind, name: string, plan: () => Program): readonly CommittedRun[] => {
    const { options } = row.implementation;
    if (options.scheduleChoice === "auto") return [];
    const text = `${name} ${row.text}`;
    const shared = { source, machine, profile, kind, text, graph: options.graph !== "off", isRun: true } as const;
    return [{ ...shared, program: plan(), measured: row.milliseconds }];
  };
  const setting = { on: "cuda", profile: null } as const;
  return [
    ...ownRows(file).flatMap((row) => {
      const { problem, implementation } = row;
      const timed = profile === "2xH100" ? implementation : asTimed(implementation, problem);
      const plan = (): Program => planOwn(timed, problem, setting).program;
      return of(row, kindOf(row, source), `${problem.primitive} ${sizeText(problem)}`, plan);
    }),
    ...measuredBlocks(file).flatMap((row) => {
      const { problem, implementation, text } = row;
      const name = `${problem.model} ${problem.cut} ${problem.pass}`;
      const key = `${profile} ${name} ${text}`;
      const plan = (): Program => {
        const program = planned.get(key) ?? planBlock(implementation, problem, setting).compilation.program;
        planned.set(key, program);
        return program;
      };
      return of(row, "transformer blocks", name, plan);
    }),
  ];
}

const kindOfPrimitive: { readonly [P in Primitive]: RunKind } = {
  "tp-columnwise": "allgather + matmul",
  "tp-rowwise": "matmul + reduce-scatter",
  "tp-allreduce": "matmul + all-reduce",
};

/** Shapes drawn at random and those of the plain files have at least `fewRows` rows. */
function kindOf({ problem, implementation }: MeasuredRow, source: string): RunKind {
  if (source.includes("-small-") || problem.m < fewRows) return "few rows";
  return implementation.name === "communication-only" ? "communication alone" : kindOfPrimitive[problem.primitive];
}

const fewRows = 1024;

/**
 * When the runs on H200 were timed, `ownLast` changed no all-reduce: the own GEMM of its first half leads to signals of
 * the second.
 */
function asTimed(implementation: OwnImplementation, { primitive }: Problem): OwnImplementation {
  if (primitive !== "tp-allreduce") return implementation;
  return { ...implementation, options: { ...implementation.options, ownLast: false } };
}
