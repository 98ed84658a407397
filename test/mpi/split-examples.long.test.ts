/** Every example has the bits of one process, however its ranks are divided over processes. */
import { expect, it } from "vitest";
import { compile } from "../../src/compile/compile.ts";
import { exampleFiles, exampleFusion } from "../support/example-program.ts";
import { outputsOf } from "./outputs-of.ts";

const fusions = exampleFiles.filter(
  (file) => !/hand-built|nvfuser|ring-attention|transformer.(fsdp|pipeline)/.test(file),
);
/** Each with one of the two. */
const cases = fusions.map((file, i) => (i % 2 === 0 ? ([file, "nccl", 4] as const) : ([file, "cuda", 3] as const)));

it.each(cases)("%s, --backend %s, 4 ranks on %d processes", async (file, backend, processes) => {
  const { program } = compile(await exampleFusion(file, 4, {}), { devices: 4, backend });
  expect(await outputsOf(program, processes)).toEqual(await outputsOf(program, 0));
});
