/** The rows of `braid bench` whose schedule is known: everything but `scheduleChoice=auto`. */
import { fileURLToPath } from "node:url";
import { planOwn } from "../../src/bench/braid/plan-own.ts";
import { type Problem, primitives } from "../../src/bench/primitives.ts";
import type { OwnImplementation } from "../../src/bench/workload.ts";
import { ownRows, sizeText } from "../measured-rows.ts";
import { type CommittedRun, resultsFile } from "./committed-run.ts";

export function benchRuns(): readonly CommittedRun[] {
  const sources = primitives.flatMap((primitive) => [
    [`${primitive}-4xH200.csv`, "4xH200"] as const,
    [`choice-${primitive}-4xH200.csv`, "4xH200"] as const,
    [`${primitive}-2xH200.csv`, "2xH200"] as const,
  ]);
  return sources.flatMap(([source, profile]) =>
    ownRows(fileURLToPath(resultsFile(source))).flatMap((row): readonly CommittedRun[] => {
      const { implementation, problem, milliseconds } = row;
      if (implementation.options.scheduleChoice === "auto") return [];
      const { program } = planOwn(asTimed(implementation, problem), problem, { on: "cuda", profile: null });
      const text = `${problem.primitive} ${sizeText(problem)} ${row.text}`;
      const graph = implementation.options.graph !== "off";
      return [{ source, text, profile, program, graph, measured: milliseconds, isRun: true }];
    }),
  );
}

/**
 * When these runs were timed, `ownLast` changed no all-reduce: the own GEMM of its first half leads to signals of the
 * second.
 */
function asTimed(implementation: OwnImplementation, { primitive }: Problem): OwnImplementation {
  if (primitive !== "tp-allreduce") return implementation;
  return { ...implementation, options: { ...implementation.options, ownLast: false } };
}
