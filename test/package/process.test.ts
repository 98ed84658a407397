/** The built command line as a process: statuses, pipes, colour, progress. `npm test` builds first. */
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeScript } from "../support/node-script.ts";

const root = path.resolve(import.meta.dirname, "../..");
const main = path.join(root, "dist/cli/main.js");
const example = path.join(root, "examples/nvfuser/allgather-matmul.ts");
let work: string;

beforeAll(() => {
  work = mkdtempSync(path.join(tmpdir(), "braid-process-"));
});
afterAll(() => {
  rmSync(work, { recursive: true });
});

interface Ended {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

function node(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [...args], { cwd: work }, (_error, out, err) => {
      resolve({ status: child.exitCode, out, err });
    });
  });
}

describe("the braid process", () => {
  it.each([
    [0, ["lower", example, "--devices", "2"]],
    [2, ["lower", example, "--devices", "0"]],
    [3, ["run", example, "--on", "cuda"]],
  ])("ends with status %i", async (status, args) => {
    expect((await node(main, ...args)).status).toBe(status);
  });

  it("does not hang on a file that waits for ever", async () => {
    writeFileSync(path.join(work, "never.ts"), "await new Promise(() => {});\nexport default 1;\n");
    const { status, out, err } = await node(main, "lower", "never.ts");
    expect([status, out]).toEqual([2, ""]);
    expect(err).toContain(
      "error[program-threw]: the program file does not finish\n  at: never.ts\n  found: an await that does not settle\n",
    );
  });

  it("names the line of the user's file, not of a built file", async () => {
    const text = `import { Fusion, matmul, program } from "@braid-compiler/braid";
export default program({}, () => {
  const f = new Fusion();
  return matmul(f.input([4, 8]), f.input([9, 4]));
});
`;
    writeFileSync(path.join(work, "mistaken.ts"), text);
    const { status, err } = await node(main, "lower", "mistaken.ts");
    expect(status).toBe(2);
    expect(err).toMatch(/^error\[shape-mismatch\].*\n  where: mistaken\.ts:4:\d+\n/s);
  });

  it("writes no colour into pipes, and leaves no file behind", async () => {
    const { out, err } = await node(main, "run", example, "--devices", "2", "--check", "--set", "M=64,K=16");
    expect(out + err).not.toContain("\u001b");
    expect(err).toBe("");
  });

  it("ends quietly when its reader has seen enough", async () => {
    const child = spawn(process.execPath, [main, "lower", example, "--print", "passes"], { cwd: work });
    child.stdout.destroy();
    let err = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
    const status = await new Promise((resolve) => child.on("close", resolve));
    expect([status, err]).toEqual([0, ""]);
  });
});

describe("progress", () => {
  let progress: string;
  beforeAll(async () => {
    progress = await nodeScript("src/cli/terminal/progress.ts");
  });
  /** Steps without and with a count, each for so long. */
  const script = (milliseconds: number, interactive: boolean): string => `
    import { withProgress } from ${JSON.stringify(progress)};
    // Nothing else runs on this thread meanwhile.
    const busy = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${milliseconds});
    const result = await withProgress({ interactive: ${interactive} }, async (step) => {
      step("first");
      step("lifting", 0, 0);
      busy();
      step("lifting", 5, 40);
      busy();
      return 42;
    });
    process.stdout.write("result " + result);
  `;

  it("says on a terminal what takes more than a second, with a bar for what can be counted, and clears its line", async () => {
    let text = { out: "", err: "" };
    // On a loaded machine the thread that draws starts late: then what it draws takes longer.
    for (const milliseconds of [1400, 6000, 20_000]) {
      text = await node("--input-type=module", "--eval", script(milliseconds, true));
      if (/ lifting \(.* lifting \[/su.test(text.err)) break;
    }
    const lines = text.err.split("\r\u001b[2K");
    expect(text.out).toBe("result 42");
    expect([lines.at(0), lines.at(-1)]).toEqual(["", ""]);
    const drawn = lines.slice(1, -1);
    const plain = drawn.filter((line) => /^[|/\\-] lifting \(\d+ s\)$/.test(line)).length;
    expect(plain).toBeGreaterThan(0);
    expect(drawn.length).toBeGreaterThan(plain);
    for (const line of drawn.slice(plain)) {
      expect(line).toMatch(/^[|/\\-] lifting \[== {18}\] 5 of 40 \(\d+ s\)$/);
    }
  });

  it("says nothing of what is quick, and nothing where no person watches", async () => {
    const runs = [script(150, true), script(650, false)].map((text) => node("--input-type=module", "--eval", text));
    for (const run of runs) expect(await run).toMatchObject({ out: "result 42", err: "" });
  });
});
