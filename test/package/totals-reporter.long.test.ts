/** The last lines of a vitest run name whatever failed it, also what is no test. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { afterAll, expect, it } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
const folder = realpathSync(mkdtempSync(path.join(tmpdir(), "braid-totals-")));
afterAll(() => rmSync(folder, { recursive: true }));

/** The output from the first failure on, or else the last line, and the status. */
function runOf(name: string, source: string): { readonly status: number | null; readonly end: string } {
  const own = path.join(folder, name);
  writeFileSync(`${own}.test.ts`, source);
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      path.join(root, "node_modules/vitest/vitest.mjs"),
      "run",
      "--globals",
      `--root=${folder}`,
      "--reporter=default",
      `--reporter=${path.join(root, "test/totals-reporter.ts")}`,
      `${name}.test.ts`,
    ],
    { encoding: "utf8", cwd: folder },
  );
  const first = stdout.indexOf("\nFAILED ");
  return { status, end: (first < 0 ? (stdout.trimEnd().split("\n").at(-1) ?? "") : stdout.slice(first)).trim() };
}

const passes = `it("adds", () => expect(1 + 1).toBe(2));\n`;

it.each<[string, string, string]>([
  [
    "a test",
    `${passes}describe("sums", () => it("are wrong", () => expect(1 + 1).toBe(3)));`,
    "FAILED a-test.test.ts > sums > are wrong\n  AssertionError: expected 2 to be 3 // Object.is equality\n\n1 passed, 1 failed",
  ],
  [
    "a hook",
    `${passes}describe("sums", () => {
      beforeAll(() => { throw new TypeError("no numbers"); });
      it("are right", () => expect(1 + 1).toBe(2));
    });`,
    "FAILED a-hook.test.ts > sums\n  TypeError: no numbers\n\n1 passed, 1 failed, 1 skipped",
  ],
  [
    "a hook after all",
    `${passes}afterAll(() => { throw new Error("not closed"); });`,
    "FAILED a-hook-after-all.test.ts\n  Error: not closed\n\n1 passed, 1 failed",
  ],
  [
    "a file that does not load",
    `throw new Error("no file\\nat all");`,
    "FAILED a-file-that-does-not-load.test.ts\n  Error: no file\n  at all\n\n0 passed, 1 failed",
  ],
  [
    "a stray rejection",
    `it("adds", async () => {
      void Promise.reject(new RangeError("too late"));
      await new Promise((resolve) => setTimeout(resolve, 50));
    });`,
    "FAILED outside every test\n  RangeError: too late\n\n1 passed, 1 failed",
  ],
])("%s", (what, source, expected) => {
  expect(runOf(what.replaceAll(" ", "-"), source)).toEqual({ status: 1, end: expected });
});

it("nothing", () => {
  expect(runOf("nothing", passes)).toEqual({ status: 0, end: "1 passed, 0 failed" });
});
