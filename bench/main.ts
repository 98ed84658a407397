/** Runs the benchmarks that are a suite, and prints what they measured: `npm run bench`. See README.md in this folder. */
import { cpuSuite } from "./cpu.ts";
import { cpuLine } from "./harness/figures.ts";
import { runSuite } from "./harness/suite.ts";
import { loweringSuite } from "./lowering.ts";
import { matmulSuite } from "./matmul.ts";
import { parseSuite } from "./parse.ts";
import { pointToPointSuite } from "./point-to-point.ts";
import { pointwiseSuite } from "./pointwise.ts";
import { verifySuite } from "./verify.ts";

console.log(cpuLine());
for (const suite of [
  loweringSuite,
  verifySuite,
  parseSuite,
  matmulSuite,
  pointwiseSuite,
  cpuSuite,
  pointToPointSuite,
]) {
  await runSuite(await suite());
}
