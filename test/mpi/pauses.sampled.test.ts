/**
 * Runs over several processes whose workers pause at random, so that now a worker and now the main thread continues a
 * stream: all have the bits of one process.
 */
import { expect, it } from "vitest";
import { compile, type CompileOptions } from "../../src/compile/compile.ts";
import { exampleFusion } from "../support/example-program.ts";
import { runs } from "../support/suite.ts";
import { outputsOf } from "./outputs-of.ts";

const programs: readonly (readonly [example: string, options: Partial<CompileOptions>])[] = [
  ["ring-allgather-matmul", {}],
  ["ring-allgather-matmul", { backend: "cuda" }],
  ["matmul-reduce-scatter", { backend: "cuda", protocol: "put" }],
];

it.each(programs)("examples/%s.ts, %o", async (example, options) => {
  const { program } = compile(await exampleFusion(`${example}.ts`, 4, {}), { devices: 4, ...options });
  const count = runs({ quick: 1, long: 40 });
  const expected = await outputsOf(program, 0, { runs: count });
  for (const processes of [2, 4]) {
    expect(await outputsOf(program, processes, { runs: count, jitter: processes })).toEqual(expected);
  }
});
