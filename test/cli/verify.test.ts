/** Output and exit status of `braid verify`, and `braid run` with a program that does not verify. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { programCommand } from "../../src/cli/flags/option-flags.ts";
import { whileBuilding } from "../../src/cli/program/apart/build-apart.ts";
import { type VerifyFlags, type VerifyResult, verifyFile } from "../../src/cli/verify/verify-file.ts";
import { at } from "../../src/support/invariant.ts";
import { cli, type ProgramFolder, programFolder } from "./captured-cli.ts";

const example = path.resolve(import.meta.dirname, "../../examples/nvfuser/allgather-matmul.ts");
const ring = path.resolve(import.meta.dirname, "../fixtures/programs/ring-allgather-matmul.ts");

/** Of 14 equal layers. */
const layered = ["examples/hosts/llama.ts", "--on", "cuda", "--devices", "2", "--set", "LAYERS=14,BACKWARD=1"];

/** y = x + x on one stream, z = y + y on another that waits for it, or does not. */
const twoStreams = (waits: boolean): string => `
import { add, Fusion, HostProgramBuilder, program } from "@braid-compiler/braid";
export default program({}, () => {
  const h = new HostProgramBuilder();
  const x = h.input([4, 8]);
  const [y, z] = [h.tensor([4, 8]), h.tensor([4, 8])];
  h.output(z);
  h.allocate(y);
  h.allocate(z);
  const caller = h.getCurrentStream();
  const [one, other] = [h.stream(0), h.stream(1)];
  h.setCurrentStream(one);
  h.synchronize(caller);
  h.add(x, x, { out: y });
  h.setCurrentStream(other);
  h.synchronize(${waits ? "one" : "caller"});
  h.add(y, y, { out: z });
  h.setCurrentStream(caller);
  h.synchronize(one);
  h.synchronize(other);
  return h.build();
}, { reference: () => {
  const f = new Fusion();
  const x = f.input([4, 8]);
  const y = add(x, x);
  f.output(add(y, y));
  return f;
} });
`;

/** What the body lacks, it says in a test. */
const missing = (body: string): string => `
import { DeviceMesh, HostProgramBuilder, program } from "@braid-compiler/braid";
export default program({}, ({ devices }) => {
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(devices);
  const x = h.input([2, 4], { mesh });
  const [y, z] = [h.tensor([2, 4], { mesh }), h.tensor([2, 4], { mesh })];
  h.output(z);
  h.allocate(y);
  h.allocate(z);
  h.set(x, { out: y });
  ${body}
  return h.build();
});
`;

/** Two replicas of two devices, whose loop runs its iterations one after the other, or has none. */
const replicas = (loops: number): string => `
import { DeviceMesh, Fusion, linear, program, relu } from "@braid-compiler/braid";
export default program({}, () => {
  const f = new Fusion();
  const [x, w, v] = [f.input([8, 4]), f.input([6, 4]), f.input([4, 6])];
  for (const each of f.inputs) each.setDeviceMesh(DeviceMesh.of({ dp: 2, tp: 2 }));
  w.outerSplit(0, 2).parallelize("tp");
  v.outerSplit(1, 2).parallelize("tp");
  ${loops === 0 ? "" : 'x.outerSplit(0, 4).parallelize("Stream");'}
  x.outerSplit(${loops}, 2).parallelize("tp");
  f.output(linear(relu(linear(x, w)), v));
  return f;
});
`;

/** By table of the section on JSON: the names in its first column. */
function documentedFields(): readonly (readonly string[])[] {
  const [, section = ""] = readFileSync(path.resolve(import.meta.dirname, "../../docs/verifier.md"), "utf8").split(
    "## JSON\n",
  );
  const tables = section.split(/^\| field.*\n/m).slice(1);
  return tables.map((table) =>
    [...table.matchAll(/^\| (`[^|]*)\|/gm)].flatMap(([, cell = ""]) =>
      [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name),
    ),
  );
}

/** What `braid run` does with the command that `braid verify` prints. */
function replayed(out: string): ReturnType<typeof cli> {
  const [, args = ""] = /^replay: braid (.*)$/m.exec(out) ?? [];
  return cli(...args.split(" "));
}

let folder: ProgramFolder;
let racing: string;
beforeAll(() => {
  folder = programFolder();
  racing = folder.write("racing.ts", twoStreams(false));
});
afterAll(() => {
  folder.remove();
});

describe("braid verify", () => {
  it("says ok and how much it looked at", async () => {
    const { status, out, err } = await cli("verify", example, "--devices", "2");
    expect([status, err]).toEqual([0, ""]);
    expect(out).toMatch(/^\S+allgather-matmul\.ts: ok; 2 devices, 4 streams, 164 commands on 12 queues; [\d.]+ ms\n$/);
  });

  it("reports a race with both commands, the line of the dump, the fix and the repair; status 1", async () => {
    const { status, out } = await cli("verify", racing, "--devices", "1");
    expect(status).toBe(1);
    expect(out).toContain("error[data-race]: a write and a read of T1 on rank 0 have no order\n");
    expect(out).toMatch(/note: first: rank 0, stream 1 \(worker 0\), command 3 \(launch\), line 8, of T1 = T0 \+ T0\n/);
    expect(out).toMatch(
      /note: second: rank 0, stream 2 \(worker 1\), command 6 \(launch\), line 13, of T2 = T1 \+ T1\n/,
    );
    expect(out).toContain("fix: Synchronize worker 0 on worker 1 before T2 = T1 + T1\n");
    expect(out).toContain(
      `\nwith this it verifies:\n  add \`h.synchronize(h.stream(0))\` after the call at ${racing}:16:5\n`,
    );
    const verbose = await cli("verify", racing, "--devices", "1", "--print", "all");
    expect(verbose.out).toContain(
      `with this it verifies:\n  add \`h.synchronize(h.stream(0))\` after the call at ${racing}:16:5\n`,
    );
    const lower = await cli("lower", racing, "--devices", "1");
    const lines = lower.out.split("\n");
    expect(lines[7]).toContain("T1_g_float");
    expect(lines[12]).toContain("T2_g_float");
  });

  it.each([
    [
      "a wait in a loop",
      `h.forLoop(2, (i) => {
    const part = h.select(y, 0, i);
    const e = h.communication("Allreduce", { input: part, output: part });
    h.add(part, part, { out: h.select(z, 0, i) });
  });`,
    ],
    [
      "a wait before a branch",
      `const e = h.communication("Allreduce", { input: y, output: y });
  h.ifThenElse(1, () => {
    h.add(y, y, { out: z });
  });`,
    ],
    [
      "a stream",
      `const caller = h.getCurrentStream();
  h.setCurrentStream(h.stream(1));
  h.synchronize(caller);
  h.add(x, x, { out: y });
  h.setCurrentStream(caller);
  h.ifThenElse(0, () => {}, () => {
    h.add(y, y, { out: z });
  });`,
    ],
  ])("says which call of a program file repairs it: %s", async (what, body) => {
    const text = missing(body);
    const file = folder.write(`${what.replaceAll(/\W/gu, "-")}.ts`, text);
    const { status, out, err } = await cli("verify", file, "--devices", "2");
    expect([status, err]).toEqual([1, ""]);
    const added = /^ {2}add `h\.(.*?)\((.*)\)` (after the call at|first in the [a-z ]+ of) \S+?:(\d+):\d+(.*)$/mu.exec(
      out,
    );
    expect(added, out).not.toBeNull();
    const [, method = "", operand = "", place = "", line = "", where = ""] = added ?? [];
    const posted = where.endsWith("its result")
      ? line
      : /, where posted is the result of \S+?:(\d+):/u.exec(where)?.[1];
    const lines = text.split("\n");
    if (posted !== undefined) expect(at(lines, Number(posted) - 1)).toContain("const e = ");
    const call = `h.${method}(${operand === "posted" ? "e" : operand});`;
    const index = Number(line) - 1;
    // A scope begins after the last brace that its line opens.
    if (place.startsWith("first")) lines[index] = at(lines, index).replace(/\{$/u, `{ ${call}`);
    else lines.splice(index + 1, 0, call);
    const repaired = folder.write("repaired.ts", lines.join("\n"));
    expect(await cli("verify", repaired, "--devices", "2")).toMatchObject({ status: 0, err: "" });
  });

  it.each([true, false])("says of ranks that are replicas what it says of every rank", async (waits) => {
    const text = twoStreams(waits)
      .replace("{ add, ", "{ add, DeviceMesh, ")
      .replace("() => {", "({ devices }) => {")
      .replace(
        "h.output(z);",
        "for (const each of [x, y, z]) each.setDeviceMesh(DeviceMesh.range(devices));\n  h.output(z);",
      );
    const file = folder.write(`replicas-${waits}.ts`, text);
    const verify = async (...flags: readonly string[]): Promise<string> => {
      const { out, err } = await cli("verify", file, "--devices", "6", ...flags);
      expect(err).toBe("");
      return out.replace(/; [\d.]+ ms\n/, "\n");
    };
    const every = await verify("--verify", "full");
    expect(every).toContain(waits ? "ok; 6 devices" : "and 5 more of the same statements");
    expect(await verify()).toBe(every);
  });

  it("has few layers stand for all", async () => {
    const verify = async (...flags: readonly string[]): Promise<string> => {
      const { out, err } = await cli("verify", ...layered, ...flags);
      expect(err).toBe("");
      return out.replace(/; [\d.]+ ms\n/, "\n");
    };
    const every = await verify("--verify", "full");
    expect(every).toMatch(/^examples\/hosts\/llama.ts: ok; 2 devices, .*\n$/);
    expect(await verify()).toBe(`layers: 10 of the equal ones are as the others; --verify full proves each\n${every}`);
  });

  it.each([0, 1])("verifies all ranks of replicas only if a finding is to name them: %s notes", async (notes) => {
    const file = folder.write(`noted-${notes}.ts`, replicas(notes));
    const verify = async (
      ...flags: readonly string[]
    ): Promise<VerifyResult & { readonly steps: readonly string[] }> => {
      const steps: string[] = [];
      const step = (label: string): void => void steps.push(label);
      const parsed = programCommand("verify")
        .parse([...flags, file], { from: "user" })
        .opts<VerifyFlags>();
      const own = { ...parsed, devices: 4 };
      const result = await whileBuilding(file, own, step, (building) => verifyFile(file, own, {}, { building, step }));
      return { ...result, steps };
    };
    const every = await verify("--verify", "full");
    const { report, steps } = await verify();
    expect(report.findings.map(({ code }) => code)).toEqual(notes === 0 ? [] : ["iterations-serialized"]);
    expect(report).toEqual(every.report);
    const whole = "a replica has findings: verifying all 4 ranks, which they name";
    expect(steps.filter((label) => label === whole)).toHaveLength(notes);
    expect(steps.filter((label) => label.startsWith("lowering"))).toHaveLength(1);
  });

  it("writes the repaired program, which verifies", async () => {
    const repaired = path.join(folder.path, "repaired.hir");
    const { status, out } = await cli("verify", racing, "--devices", "1", "--repair", repaired);
    expect(status).toBe(1);
    expect(out).toContain(`written: ${repaired}\n`);
    const lines = readFileSync(repaired, "utf8").split("\n");
    expect(at(lines, 12)).toBe("  Synchronize Stream ( 0 )");
    expect((await cli("verify", repaired)).status).toBe(0);
  });

  it("prints JSON", async () => {
    const { status, out } = await cli("verify", racing, "--devices", "1", "--json");
    expect(status).toBe(1);
    const document: unknown = JSON.parse(out);
    expect(document).toMatchObject({
      devices: 1,
      streams: 4,
      ok: false,
      size: { ranks: 1, commands: 11, streams: 3 },
      findings: [
        {
          code: "data-race",
          severity: "error",
          occurrences: 1,
          commands: [
            { rank: 0, stream: 1, command: 3, line: 8, run: 1 },
            { rank: 0, stream: 2, command: 6, line: 13, run: 1 },
          ],
          memory: { rank: 0, tensor: "T1", slice: "T1[:, :]", bytes: 128 },
          ancestor: { rank: 0, stream: 0, kind: "recordEvent" },
        },
      ],
    });
  });

  it("prints the fields that docs/verifier.md names, and no others", async () => {
    const { out } = await cli("verify", racing, "--devices", "1", "--json");
    const document = JSON.parse(out) as {
      findings: { commands: object[]; ancestor: object; missingEdge: { from: object } }[];
    };
    const finding = at(document.findings, 0);
    const [whole = [], ofFinding = [], ofPlace = []] = documentedFields();
    expect(Object.keys(document).toSorted()).toEqual(whole.toSorted());
    expect(Object.keys(finding).toSorted()).toEqual(ofFinding.toSorted());
    for (const place of [...finding.commands, finding.ancestor, finding.missingEdge.from]) {
      expect(Object.keys(place).toSorted()).toEqual(ofPlace.toSorted());
    }
  });

  it("writes a page that needs nothing else", async () => {
    const page = path.join(folder.path, "report.html");
    const { out } = await cli("verify", racing, "--devices", "1", "--report", page);
    expect(out).toContain(`written: ${page}\n`);
    const html = readFileSync(page, "utf8");
    expect(html).toMatch(/^<!doctype html>/);
    expect(html).not.toMatch(/<(script|link|img)[^>]*(src|href)=|@import/);
  });

  it("escapes what the page shows", async () => {
    const odd = folder.write('a<b>&"c.ts', twoStreams(false));
    const page = path.join(folder.path, "odd.html");
    await cli("verify", odd, "--devices", "1", "--report", page);
    const html = readFileSync(page, "utf8");
    expect(html).toContain("a&lt;b&gt;&amp;&quot;c.ts: 1 finding");
    expect(html).not.toContain("a<b>");
  });

  it("says why a report cannot be written", async () => {
    const { status, err } = await cli(
      "verify",
      example,
      "--devices",
      "1",
      "--report",
      path.join(folder.path, "no/x.html"),
    );
    expect(status).toBe(2);
    expect(err).toContain("error[file-unwritable]");
  });

  it.each(["--report", "--interleaving"])("an unwritable %s hides no finding", async (flag) => {
    const nowhere = path.join(folder.path, "no/x.html");
    const { status, out, err } = await cli("verify", racing, "--devices", "1", flag, nowhere);
    expect([status, out.includes("data-race"), out.includes("written:")]).toEqual([1, true, false]);
    expect(err).toContain("error[file-unwritable]");
  });
});

describe("braid run", () => {
  it("refuses what the verifier finds; status 1", async () => {
    const { status, out, err } = await cli("run", racing, "--devices", "1", "--check");
    expect([status, out]).toEqual([1, ""]);
    expect(err).toContain("error[data-race]");
    expect(err).toContain("`braid verify` names the statements that a host program lacks");
  });

  it("runs it unproven if asked to", async () => {
    expect((await cli("run", racing, "--devices", "1", "--verify", "off")).status).toBe(0);
  });

  it("shows a race that spoils one of several copies of an output", async () => {
    const unlike = /^T2 on rank 2: off by up to \d\S+ from the first copy, fingerprint [0-9a-f]{16}$/m;
    const dump = (await cli("lower", ring, "--devices", "3", "--set", "M=9,K=32,N=16", "--backend", "cuda")).out;
    // Without the synchronization of the workers with the caller, who writes the inputs.
    const mutant = folder.write("mutant.hir", dump.replace(/\n *Synchronize Stream 0(?=\n)/, ""));
    const schedule = path.join(folder.path, "late-inputs.txt");
    expect((await cli("verify", mutant, "--interleaving", schedule)).status).toBe(1);
    const right = folder.write("ring.hir", dump);
    expect((await cli("run", right, "--interleaving", "seed:1")).out).not.toContain("from the first copy");
    const { status, out } = await cli("run", mutant, "--interleaving", schedule);
    // In the list as recorded, and in rewritten ones: --on cuda has a copy stream.
    for (const flags of [
      ["--schedule", "computeStreams=1,inPlace"],
      ["--on", "cuda"],
      ["--schedule", "copyStream=dedicated"],
    ]) {
      const verified = await cli("verify", mutant, ...flags, "--interleaving", schedule);
      const isRecorded = flags.includes("computeStreams=1,inPlace");
      expect(verified.out.includes("of the recorded list, before the schedule"), flags.join(" ")).toBe(isRecorded);
      expect(verified.out.includes("--schedule copyStream=dedicated")).toBe(!isRecorded);
      expect((await replayed(verified.out)).out, flags.join(" ")).toMatch(unlike);
    }
    expect(status).toBe(0);
    expect(out).toMatch(unlike);
  });

  it("replays the counterexample, whose output differs; the right program passes under it", async () => {
    const schedule = path.join(folder.path, "race.txt");
    const { out } = await cli("verify", racing, "--devices", "1", "--interleaving", schedule);
    expect(out).toContain(`written: ${schedule}\n`);
    const wrong = await cli("run", racing, "--devices", "1", "--check", "--interleaving", schedule);
    expect(wrong.status).toBe(1);
    expect(wrong.err).toContain("error[check-failed]");
    const right = folder.write("right.ts", twoStreams(true));
    expect((await cli("run", right, "--devices", "1", "--check")).status).toBe(0);
    expect(await replayed(out)).toMatchObject({ status: 1, err: wrong.err });
    const impossible = await cli("run", right, "--devices", "1", "--check", "--interleaving", schedule);
    expect(impossible.err).toContain("error[interleaving-invalid]");
  });
});
