/** A benchmark of several tasks: run by tinybench, printed as a table of medians and rates. */
import { Bench, type BenchOptions, type FnOptions } from "tinybench";

export interface Task {
  readonly name: string;
  readonly run: () => unknown;
  readonly options?: FnOptions;
  /** What one call does, for a rate. */
  readonly work?: { readonly amount: number; readonly unit: "GFLOP/s" | "GB/s" | "MB/s" };
}

export interface Suite {
  readonly name: string;
  readonly options: BenchOptions;
  readonly tasks: readonly Task[];
  /** What it prints beside the table, and closes. */
  readonly after?: () => Promise<void> | void;
}

const perSecond = { "GFLOP/s": 1e9, "GB/s": 1e9, "MB/s": 1e6 } as const;

export async function runSuite({ name, options, tasks, after }: Suite): Promise<void> {
  const bench = new Bench({ name, ...options });
  for (const task of tasks) bench.add(task.name, task.run, task.options);
  await bench.run();
  console.log(`\n${name}`);
  console.table(
    bench.tasks.map(({ result }, i) => {
      const { name: task, work } = tasks[i] ?? { name: "" };
      const isDone = result.state === "completed";
      const milliseconds = isDone ? result.latency.p50 : NaN;
      const rate = work === undefined ? NaN : work.amount / perSecond[work.unit] / (milliseconds / 1e3);
      return {
        task,
        "median ms": isDone ? Number(milliseconds.toPrecision(3)) : result.state,
        rate: Number.isNaN(rate) ? "" : `${rate.toFixed(1)} ${work?.unit}`,
      };
    }),
  );
  await after?.();
}
