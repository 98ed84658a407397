/** The rows of `braid bench` whose schedule is known: everything but `scheduleChoice=auto`. */
import { fileURLToPath } from "node:url";
import { planOwn } from "../../src/bench/braid/plan-own.ts";
import { primitives } from "../../src/bench/primitives.ts";
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
      const { program } = planOwn(implementation, problem, { on: "cuda", profile: null });
      const text = `${problem.primitive} ${sizeText(problem)} ${row.text}`;
      const graph = implementation.options.graph !== "off";
      return [{ source, text, profile, program, graph, measured: milliseconds, isRun: true }];
    }),
  );
}
