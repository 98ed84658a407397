/** Programs split over processes have the bits of one process. The processes are groups in this one. */
import { describe, expect, it } from "vitest";
import { splitOverProcesses } from "../../src/backends/mpi/split/split-program.ts";
import { compile, type CompileOptions } from "../../src/compile/compile.ts";
import { exampleFusion } from "../support/example-program.ts";
import { outputsOf } from "./outputs-of.ts";
import { everyNth } from "../support/suite.ts";

const cases: readonly (readonly [
  example: string,
  devices: number,
  processes: number,
  options: Partial<CompileOptions>,
])[] = [
  ["allgather-matmul", 4, 2, {}],
  ["matmul-reduce-scatter", 4, 4, {}],
  ["matmul-allreduce", 4, 2, {}],
  ["ring-allgather-matmul", 4, 2, {}],
  ["ring-allgather-matmul", 4, 4, { backend: "cuda" }],
  ["ring-allgather-matmul", 4, 2, { backend: "cuda", protocol: "put" }],
  ["matmul-allreduce", 4, 2, { backend: "cuda" }],
  ["mlp", 3, 3, {}],
];

describe("a program split over processes", () => {
  it.each(everyNth(cases, 2))(
    "examples/%s.ts, %d ranks on %d processes, %o",
    async (example, devices, processes, options) => {
      const fusion = await exampleFusion(`${example}.ts`, devices, {});
      const { program } = compile(fusion, { devices, ...options });
      expect(await outputsOf(program, processes)).toEqual(await outputsOf(program, 0));
    },
  );

  it("does not change what stays in one process", async () => {
    const { program } = compile(await exampleFusion("mlp.ts", 2, {}), { devices: 2 });
    const split = splitOverProcesses(program, [0, 0]);
    expect(split.channels).toEqual([]);
    expect(split.programOf(0).ranks).toEqual(program.ranks);
  });
});
