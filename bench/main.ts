/** Runs every benchmark and prints what it measured: `npm run bench`. See README.md in this folder. */
import { cpus } from "node:os";
import { benchCpu } from "./cpu.ts";
import { benchLowering } from "./lowering.ts";
import { benchMatmul, gigaflops } from "./matmul.ts";
import { benchParse, megabytesPerSecond } from "./parse.ts";
import { benchPointToPoint } from "./point-to-point.ts";
import { benchPointwise, gigabytesPerSecond } from "./pointwise.ts";
import { benchVerify } from "./verify.ts";

console.log(`${cpus()[0]?.model ?? "unknown CPU"}, ${cpus().length} cores, Node ${process.versions.node}`);
for (const run of [benchLowering, benchVerify, benchParse, benchMatmul, benchPointwise, benchCpu, benchPointToPoint]) {
  const bench = await run();
  console.log(`\n${bench.name ?? ""}`);
  const rows = bench.tasks.map((task) => ({
    task: task.name,
    "median ms": task.result.state === "completed" ? Number(task.result.latency.p50.toPrecision(3)) : task.result.state,
    "GFLOP/s": gigaflops(bench, task.name)?.toFixed(1) ?? "",
    "MB/s": megabytesPerSecond(bench, task.name)?.toFixed(0) ?? "",
    "GB/s": gigabytesPerSecond(bench, task.name)?.toFixed(1) ?? "",
  }));
  console.table(rows);
}
