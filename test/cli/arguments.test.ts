/** Bad arguments: each gets one message with the option, the value and the expected form, and status 2. */
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cli, type ProgramFolder, programFolder } from "./captured-cli.ts";

const dump = path.resolve(import.meta.dirname, "../fixtures/dumps/e2-allgather.hir");
const example = path.resolve(import.meta.dirname, "../../examples/nvfuser/allgather-matmul.ts");
let folder: ProgramFolder;
let symbolic: string;

beforeAll(() => {
  folder = programFolder();
  symbolic = folder.write(
    "symbolic.ts",
    `import { DeviceMesh, Fusion, program, set } from "@braid-compiler/braid";
export default program({}, ({ devices }) => {
  const f = new Fusion();
  const a = f.input([devices, null, null], "float");
  const b = set(a);
  f.output(b);
  for (const tv of [a, b]) tv.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(0).parallelize("DIDx");
  return f;
});`,
  );
});
afterAll(() => {
  folder.remove();
});

interface BadArguments {
  readonly args: readonly string[];
  readonly expected: readonly string[];
}

const bad: readonly BadArguments[] = [
  {
    args: ["lwoer", "x.ts"],
    expected: [
      "there is no command lwoer",
      "lower, run, verify, explain, compile, bench, calibrate, playground, doctor",
      "did you mean lower?",
    ],
  },
  {
    args: ["prove", "x.ts"],
    expected: [
      "there is no command prove",
      "expected: one of lower, run, verify, explain, compile, bench, calibrate, playground, doctor",
    ],
  },
  { args: ["help", "lwoer"], expected: ["there is no command lwoer", "did you mean lower?"] },
  { args: ["calibrate"], expected: ["option --out <file> is missing", "found: nothing", "braid calibrate --out"] },
  { args: ["run", example, "--check=all"], expected: ["found: all", "one of rows, full", "like --check=rows"] },
  { args: ["lower"], expected: ["missing required argument", "found: nothing", "expected: braid lower"] },
  { args: ["lower", "a.ts", "b.ts"], expected: ["arguments that the command does not take", "found: b.ts"] },
  { args: ["lower", example, "--devcies", "8"], expected: ["no option --devcies", "did you mean --devices?"] },
  { args: ["lower", example, "--report", "x"], expected: ["no option --report", "fix: see braid lower --help"] },
  { args: ["lower", example, "--rank"], expected: ["option --rank has no value", "expected: --rank <"] },
  { args: ["playground", "--port", "99999"], expected: ["--port", "found: 99999", "0 to 65535"] },
  { args: ["run", "a.ts", "--check", "full"], expected: ["found: full", "fix: write --check=full"] },
  { args: ["run", "--check", "full", "a.ts"], expected: ["found: a.ts", "fix: write --check=full"] },
  { args: ["run", "--check", "a.ts", "b.ts"], expected: ["found: b.ts", "fix: see braid run --help"] },
  { args: ["playground", "x.ts"], expected: ["arguments that the command does not take", "found: x.ts"] },
  { args: ["doctor", "--yaml"], expected: ["no option --yaml", "fix: see braid doctor --help"] },
  { args: ["lower", example, "--rank", "8"], expected: ["--rank", "found: 8", "expected: 0 to 7"] },
  { args: ["lower", example, "--backend", "mpi"], expected: ["--backend", "found: mpi", "one of nccl, cuda, ucc"] },
  {
    args: ["lower", example, "--schedule", "p2p=x"],
    expected: ["--schedule", "p2p=VALUE, where VALUE is one of linear, rotated, broadcast"],
  },
  {
    args: ["lower", example, "--schedule", "protocol=x"],
    expected: ["--schedule", "where VALUE is one of get, put", "like --schedule protocol=get"],
  },
  { args: ["lower", example, "--as", "braid:1999"], expected: ["--as", "one of 2025-04, 2025-05, 2025-10"] },
  { args: ["lower", example, "--as", "nvfusor"], expected: ["found: nvfusor", "expected: braid or nvfuser"] },
  { args: ["lower", example, "--print", "passes=inline"], expected: ["--print passes", "found: inline", "all, "] },
  {
    args: ["lower", dump, "--print", "passes=deallocate"],
    expected: ["pass deallocate did not run", "leave --print out"],
  },
  { args: ["lower", example, "--print", "lists,passes"], expected: ["prints one thing", "found: passes,lists"] },
  { args: ["lower", example, "--print", "list"], expected: ["found: list", "did you mean lists?"] },
  { args: ["run", example, "--print", "lists"], expected: ["found: lists", "some of host, timeline, explain"] },
  { args: ["run", example, "--print", ""], expected: ["found: nothing", "like --print host,timeline,explain"] },
  { args: ["run", example, "--schedule", "inplace"], expected: ["found: inplace", "did you mean inPlace?"] },
  { args: ["run", example, "--schedule", "auto,inPlace"], expected: ["auto alone", "leave out auto, or inPlace"] },
  { args: ["run", example, "--schedule", "p2p=linear,p2p=rotated"], expected: ["found: p2p=rotated", "at most once"] },
  { args: ["run", example, "--schedule", "auto,as-written"], expected: ["found: as-written", "auto came before"] },
  { args: ["lower", dump, "--entry", "main"], expected: ["containers of a dump have no names", "like --entry 0"] },
  { args: ["run", example, "--on", "tpu"], expected: ["--on", "one of cpu, cuda"] },
  { args: ["run", example, "--sizes", "i0=8"], expected: ["size-unknown", "i0", "remove --sizes"] },
  { args: ["run", example, "--timeout", "0"], expected: ["--timeout", "a number greater than 0"] },
  { args: ["run", example, "--interleaving", "seed:x"], expected: ["interleaving-invalid", "seed:x"] },
  { args: ["run", example, "--interleaving", "absent.txt"], expected: ["absent.txt", "no such file or directory"] },
];

describe("bad arguments", () => {
  it.each(bad)("braid $args", async ({ args, expected }) => {
    await refused(args, expected);
  });

  it.each(["lower", "run"])("braid %s: parameters, devices and sizes", async (command) => {
    await refused([command, example, "--set", "Q=3"], ["has no parameter Q", "one of S (default 8), M", "--set Q=3"]);
    await refused([command, example, "--set", "m=3"], ["has no parameter m", "did you mean M?"]);
    await refused([command, example, "--set", "M"], ["--set", "found: M", "NAME=VALUE"]);
    await refused([command, example, "--set", "M=100"], ["bad-extent", "1.5625", "allgather-matmul.ts:13:15"]);
    await refused([command, example, "--set", "S=0"], ["bad-extent", "allgather-matmul.ts:13:15"]);
    for (const devices of ["0", "-1", "2.5", "many", ""]) {
      await refused([command, example, "--devices", devices], ["--devices", "a whole number of at least 1"]);
    }
    await refused([command, example, "--devices", "1000000"], ["--devices", "and at most 65536", "found: 1000000"]);
    for (const streams of ["0", "-1", "2.5"]) {
      await refused(
        ["run", example, "--schedule", `streams=${streams}`],
        ["--schedule", "a whole number of at least 1"],
      );
    }
  });

  it.each(["lower", "run"])("braid %s: a mesh larger than the device count", async (command) => {
    const text = `import { DeviceMesh, Fusion, program, set } from "@braid-compiler/braid";
export default program({}, () => {
  const f = new Fusion();
  const a = f.input([4], "float");
  const b = set(a);
  f.output(b);
  for (const tv of [a, b]) tv.setDeviceMesh(DeviceMesh.range(4));
  return f;
});`;
    const file = folder.write("four.ts", text);
    await refused([command, file, "--devices", "3"], ["mesh-too-large", "device 3", "--devices 4"]);
    await refused([command, file, "--devices", "1"], ["mesh-too-large", "device 3", "--devices 4"]);
  });

  it("a size that is missing, unknown, or contradicts the mesh", async () => {
    await refused(["run", symbolic], ["size-missing", "i2, i3 have no size", "--sizes i2=8,i3=8"]);
    await refused(["run", symbolic, "--sizes", "i2=8"], ["size-missing", "i3 has no size"]);
    await refused(["run", symbolic, "--sizes", "i9=8"], ["size-unknown", "i9", "one of i2, i3"]);
    await refused(["run", symbolic, "--sizes", "i2=0"], ["--sizes", "a whole number of at least 1"]);
    await refused(["run", symbolic, "--sizes", "i2=8", "--sizes", "i2=9"], ["i2=8 came before"]);
  });

  it("is JSON on the output too where JSON was asked for", async () => {
    const { status, out, err } = await cli("lower", example, "--set", "Q=3", "--json");
    expect(status).toBe(2);
    expect(err).toContain("error[option-unknown]");
    const { error } = JSON.parse(out) as { error: { status: number; diagnostics: { code: string; found: string }[] } };
    expect(error.status).toBe(2);
    expect(error.diagnostics).toMatchObject([{ code: "option-unknown", found: "Q" }]);
  });
});

async function refused(args: readonly string[], expected: readonly string[]): Promise<void> {
  const { status, out, err } = await cli(...args);
  for (const part of expected) expect(err, args.join(" ")).toContain(part);
  expect(err.match(/^error\[/gm), err).toHaveLength(1);
  expect(err).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m);
  expect(out).toBe("");
  expect(status).toBe(2);
}
