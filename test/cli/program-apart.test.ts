/** What a program file can do to the command that loads it: nothing but a message. */
import { describe, expect, it } from "vitest";
import * as braid from "../../src/index.ts";
import { builders } from "../../src/cli/program/running-braid.ts";
import { cliApart } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const folder = ownFolder();

/** A program of one copy, with code at the top of the file and in the function that builds it. */
const program = (
  top: string,
  inside = "",
): string => `import { DeviceMesh, Fusion, program, set } from "@braid-compiler/braid";
${top}
export default program({}, ({ devices }) => {
  ${inside}
  const f = new Fusion();
  const a = f.input([4, 8], "float");
  const b = set(a);
  f.output(b);
  for (const tv of [a, b]) tv.setDeviceMesh(DeviceMesh.range(devices));
  return f;
});
`;

interface Hostile {
  readonly name: string;
  readonly text: string;
  readonly flags?: readonly string[];
  readonly expected: readonly string[];
}

const hostile: readonly Hostile[] = [
  {
    name: "exit.ts",
    text: program("process.exit(0);"),
    expected: ["the program file does not finish", "ended its process with status 0"],
  },
  {
    name: "exit-in-build.ts",
    text: program("", "process.exit();"),
    expected: ["the program file does not finish", "ended its process with status 0"],
  },
  {
    name: "loop.ts",
    text: program("while (true);"),
    flags: ["--timeout", "2"],
    expected: ["the program file does not finish", "loop.ts:2:", "still runs after 2 s", "--timeout 4"],
  },
  {
    name: "loop-in-build.ts",
    text: program("", "const turns = { count: 0 };\n  while (true) turns.count++;"),
    flags: ["--timeout", "2"],
    expected: ["the program file does not finish", "loop-in-build.ts:5:", "still runs after 2 s"],
  },
  {
    name: "loop-in-await.ts",
    text: program("async function f() {\n  await null;\n  for (;;) await null;\n}\nawait f();"),
    flags: ["--timeout", "0.5"],
    expected: ["the program file does not finish", "still runs after 0.5 s"],
  },
  {
    name: "endless-wait.ts",
    text: program("setInterval(() => {}, 1000);\nawait new Promise(() => {});"),
    flags: ["--timeout", "0.5"],
    expected: ["the program file does not finish", "still runs after 0.5 s"],
  },
  {
    name: "never.ts",
    text: program("await new Promise(() => {});"),
    expected: ["the program file does not finish", "an await that does not settle"],
  },
  {
    name: "rejection.ts",
    text: program('void Promise.reject(new RangeError("nobody waits"));'),
    expected: ["the program file threw an error", "rejection.ts:2:21", "found: RangeError: nobody waits"],
  },
  {
    name: "rejection-in-build.ts",
    text: program("", 'void Promise.reject(new RangeError("nobody waits"));'),
    expected: ["rejection-in-build.ts:4:23", "found: RangeError: nobody waits"],
  },
  {
    name: "timer.ts",
    text: program('setTimeout(() => {\n  throw new Error("late");\n});\nawait new Promise(() => {});'),
    expected: ["timer.ts:3:9", "found: Error: late"],
  },
  {
    name: "more-than-data.ts",
    text: `import { program } from "@braid-compiler/braid";
export default program({}, () => ({ kind: "HostProgram", tensors: [], units: [], streams: [], inputs: [], outputs: [], body: [() => {}] }));`,
    expected: ["error[program-invalid]", "the program holds more than data"],
  },
  {
    name: "throws-cycle.ts",
    text: program('const e = new Error("round");\ne.cause = e;\nthrow e;'),
    expected: ["throws-cycle.ts:2:11", "found: Error: round"],
  },
];

describe("a program file cannot end, block or keep the command", () => {
  it.each(hostile)("$name", async ({ name, text, flags = [], expected }) => {
    const file = folder.write(name, text);
    const { status, out, err } = await cliApart("verify", file, "--devices", "2", ...flags);
    for (const part of expected) expect(err).toContain(part);
    expect(err.match(/^error/gm)).toHaveLength(1);
    expect(err).not.toMatch(/^\s+at .*\(.*\)$/m);
    expect([status, out]).toEqual([2, ""]);
  });

  it.each(["constructor", "__proto__", "toString"])("nor take --set %s=1 for a parameter", async (name) => {
    const { status, err } = await cliApart(
      "verify",
      folder.write("plain.ts", program("")),
      "--devices",
      "2",
      "--set",
      `${name}=1`,
    );
    expect([status, err]).toEqual([2, expect.stringContaining(`found: ${name}\n`)]);
  });

  it("nor name a size that no memory has without its tensor", async () => {
    const text = program("")
      .replace("[4, 8]", "[4, params.M]")
      .replace("program({},", "program({ M: 8 },")
      .replace("{ devices }", "{ devices, params }");
    for (const command of ["verify", "explain"]) {
      const profile = command === "explain" ? ["--profile", "2xH100"] : [];
      const { status, err } = await cliApart(
        command,
        folder.write("sized.ts", text),
        "--devices",
        "2",
        "--set",
        "M=1e15",
        ...profile,
      );
      expect([status, err]).toEqual([
        2,
        expect.stringContaining("found: T0, float [4, 1000000000000000], on rank 0\n"),
      ]);
    }
  });

  it("nor does what it leaves running", async () => {
    const file = folder.write("interval.ts", program("setInterval(() => {}, 10);"));
    const { status, err } = await cliApart("verify", file, "--devices", "2");
    expect([status, err]).toEqual([0, ""]);
  });

  it("nor change what the command computes with", async () => {
    const file = folder.write("globals.ts", program("", "Math.max = () => 0; Array.prototype.map = () => [];"));
    await cliApart("lower", file, "--devices", "2");
    expect([Math.max(1, 2), [1].map(String)]).toEqual([2, ["1"]]);
  });
});

describe("what a program file prints", () => {
  it("goes to the error stream, whole, and --json stays JSON", async () => {
    const lines = 'for (let i = 0; i < 3000; i++) console.log("line", i);\nconsole.error("and this");';
    const file = folder.write("prints.ts", program(lines));
    const { status, out, err } = await cliApart("lower", file, "--devices", "2", "--json");
    expect(JSON.parse(out)).toMatchObject({ devices: 2 });
    expect(err.split("\n").filter((line) => /^line \d+$/.test(line))).toHaveLength(3000);
    expect(err).toContain("line 1\nline 2\n");
    expect(err).toContain("and this\n");
    expect(status).toBe(0);
  });

  it("is there where the file then fails", async () => {
    const file = folder.write("prints-and-fails.ts", program('console.log("before");\nthrow new Error("after");'));
    const { status, out, err } = await cliApart("lower", file);
    expect(err).toContain("before\n");
    expect(err).toContain("found: Error: after");
    expect([status, out]).toEqual([2, ""]);
  });
});

describe("a program file uses the Braid that runs", () => {
  it("has the same exports at once as the whole module", () => {
    const whole: Readonly<Record<string, unknown>> = braid;
    for (const [name, value] of Object.entries(builders)) expect(value, name).toBe(whole[name]);
  });

  it("beyond what builds programs, by name and as a namespace", async () => {
    const top = `import * as all from "@braid-compiler/braid";
import { compile, verify } from "@braid-compiler/braid";
import { cpuBackend } from "@braid-compiler/braid/cpu";
console.log(typeof verify, cpuBackend.name, all.Fusion === Fusion, Object.keys(all).includes("simulate"));`;
    const inside = `const f2 = new Fusion(); const x = f2.input([2], "float"); f2.output(set(x));
  for (const tv of [...f2.inputs, ...f2.outputs]) tv.setDeviceMesh(DeviceMesh.range(1));
  console.log(compile(f2, { devices: 1 }).report.ok);`;
    const { status, err } = await cliApart("lower", folder.write("whole.ts", program(top, inside)), "--devices", "2");
    expect(err).toContain("function cpu true true\ntrue\n");
    expect(status).toBe(0);
  });

  it("gets meshes of several dimensions back as they were", async () => {
    const text = program("").replace(
      "DeviceMesh.range(devices)",
      "new DeviceMesh([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])",
    );
    const { status, out } = await cliApart("lower", folder.write("mesh.ts", text), "--devices", "8");
    expect(out).toContain("DeviceMesh{{{0 1}{2 3}}{{4 5}{6 7}}}");
    expect(status).toBe(0);
  });
});
