/**
 * `braid verify FILE` proves the Program that `braid run FILE` and an executor with the same options execute, command
 * for command.
 */
import path from "node:path";
import { MultiDeviceExecutor, type Program } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import { programCommand } from "../../src/cli/flags/option-flags.ts";
import type { CompileGiven } from "../../src/compile/options/flags-text.ts";
import { type ApartBuilding, whileBuilding } from "../../src/cli/program/apart/build-apart.ts";
import { inputSizes } from "../../src/compile/program/input-sizes.ts";
import { buildProgram } from "../../src/cli/program/build-program.ts";
import { drawInputs } from "../../src/compile/program/inputs.ts";
import { runFile } from "../../src/cli/run/run-file.ts";
import type { RunFlags } from "../../src/cli/run/run-flags.ts";
import { verifyFile } from "../../src/cli/verify/verify-file.ts";
import { options } from "../../src/compile/options.ts";
import { createCpuBackend } from "../../src/cpu.ts";
import { exampleFiles } from "../support/example-program.ts";
import { combinations } from "../support/split-cases.ts";
import { everyNth, sample } from "../support/suite.ts";
import { roundProfile } from "../simulate/profile.ts";
import { programFolder } from "./captured-cli.ts";

const streams = 3;

const flags: RunFlags = {
  ...programCommand("run").parse(["FILE"], { from: "user" }).opts<RunFlags>(),
  devices: 2,
  streams,
  blas: "off",
};

const example = (name: string): string => path.resolve(import.meta.dirname, "../../examples", name);

/** Programs for GPUs run here, too, and without threads: what is compared is what a back end of that name is given. */
function backendFor(on: RunFlags["on"]): Backend {
  return { ...createCpuBackend({ blas: "off", workers: 0 }), name: on };
}

function commandsOf(program: Program | null | undefined): unknown {
  return program?.ranks.map(({ streams, commands }) => ({ streams, commands }));
}

function building<T>(file: string, own: RunFlags, work: (of: ApartBuilding | null) => Promise<T>): Promise<T> {
  return whileBuilding(file, own, () => {}, work);
}

async function expectSame(file: string, own: RunFlags, given: CompileGiven): Promise<Program> {
  const step = (): void => {};
  const [verified, ran] = await building(file, own, async (of) => [
    await verifyFile(file, { ...own, verbose: false, full: "full" }, given, { building: of, step }),
    await runFile(file, own, given, {
      backend: backendFor(own.on),
      world: null,
      localRanks: null,
      holderOf: (rank: number) => rank,
      building: of,
      step,
    }),
  ]);
  expect(verified.report.ok).toBe(true);
  expect(commandsOf(ran?.last.program)).toEqual(commandsOf(verified.program));
  expect(ran?.choice).toBe(verified.choice);
  if (verified.program === null) throw new Error("nothing was verified");
  return verified.program;
}

it.each(everyNth(combinations({ name: exampleFiles, on: options.on.kind.choices.filter((on) => on !== "mpi") }), 19))(
  "$name on $on",
  async ({ name, on }) => {
    await expectSame(example(name), { ...flags, on }, { streams });
  },
);

const copies = combinations({ on: options.on.kind.choices, protocol: ["get", "put"] as const });

it.each(sample(copies, 4))("with copies between peers: $protocol on $on", async ({ on, protocol }) => {
  const file = example("ring-allgather-matmul.ts");
  const program = await expectSame(file, { ...flags, on }, { streams, backend: "cuda", protocol });
  const roles = program.ranks[0]?.streams.map(({ role }) => role);
  expect(roles?.includes("copy")).toBe(on === "cuda");
});

// CUDA in quick, the others in long.
const backEnds = options.on.kind.choices.toSorted((a, b) => Number(b === "cuda") - Number(a === "cuda"));

describe.each(everyNth(backEnds, backEnds.length))("on %s", (on) => {
  it("with a schedule, and the copy stream that the flags name", async () => {
    const schedule = { inPlace: true, copyStream: on === "cpu" ? "dedicated" : "inline" } as const;
    await expectSame(example("ring-allgather-matmul.ts"), { ...flags, on }, { streams, schedule, backend: "cuda" });
  });

  it("with a chosen schedule", async () => {
    const name = "ring-allgather-matmul.ts";
    const folder = programFolder();
    const profile = folder.write("machine.json", JSON.stringify(roundProfile));
    const program = await expectSame(example(name), { ...flags, on, schedule: "auto", profile }, {});
    const file = example(name);
    const { source, signature } = await building(file, flags, (of) => buildProgram(file, flags, {}, of));
    const executor = await MultiDeviceExecutor.create(source, {
      devices: flags.devices,
      on: backendFor(on),
      schedule: "auto",
      profile: roundProfile,
    });
    let ran: Program | null = null;
    const sizes = inputSizes(signature, flags.sizes);
    await executor.run(drawInputs(signature, sizes, 0, new Map()), { onReport: (_, own) => void (ran = own) });
    await executor.close();
    folder.remove();
    expect(commandsOf(ran)).toEqual(commandsOf(program));
  });
});
