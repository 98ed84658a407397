/** The wheel is built without a network, holds all that the package needs, and works where it is unpacked. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { planOf, ring } from "../plan/plans.ts";
import { ended, writePlan } from "./python-ranks.ts";

const python = path.resolve(import.meta.dirname, "../../python");
const { stdout: version } = spawnSync("python3", ["-c", "import setuptools; print(setuptools.__version__)"], {
  encoding: "utf8",
});
const found = `setuptools is ${version.trim() || "not there"}`;
const [setuptools = Number.NaN] = version.split(".").map(Number);
if (!(setuptools >= 71)) console.log(`test/python/wheel is skipped: ${found}`);

const scratch = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const unpack = `
import sys, zipfile
from setuptools import build_meta
scratch, unpacked = sys.argv[1:]  # setuptools overwrites them
zipfile.ZipFile(scratch + "/" + build_meta.build_wheel(scratch)).extractall(unpacked)
`;
const use = `
import braid_torch, sys
assert braid_torch.__file__.startswith(sys.argv[1]), braid_torch.__file__
print(braid_torch.read_plan(sys.argv[2]).document["world"])
`;

// Building writes beside the sources.
const copy = path.join(scratch, "python");
cpSync(python, copy, { recursive: true, filter: (name) => !/__pycache__|\.egg-info|build$/.test(name) });

/** Of the package, without what Python compiles. */
function sources(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.\w+$/.test(name) && !name.includes("__pycache__"))
    .toSorted();
}

describe.skipIf(!(setuptools >= 71))("the wheel of braid_torch", () => {
  it("is built offline, with every file of the package, and reads a plan", async () => {
    const unpacked = path.join(scratch, "unpacked");
    const proxy = "http://127.0.0.1:9";
    const built = spawnSync("python3", ["-c", unpack, scratch, unpacked], {
      cwd: copy,
      encoding: "utf8",
      timeout: 60_000,
      // oxlint-disable-next-line node/no-process-env -- what the command inherits
      env: { ...process.env, http_proxy: proxy, https_proxy: proxy },
    });
    expect(built.stderr).not.toContain("Error");
    expect(built.status).toBe(0);
    expect(sources(path.join(unpacked, "braid_torch"))).toEqual(sources(path.join(python, "src/braid_torch")));

    const plan = path.join(scratch, "plan");
    writePlan(plan, planOf(ring(2)));
    const { out, err } = await ended(["python3", "-B", "-c", use, unpacked, plan], { PYTHONPATH: unpacked });
    expect(err).toBe("");
    expect(out).toBe("2\n");
  });
});

// Setuptools writes the same fields beside sources, where older versions can, too.
describe.skipIf(!(setuptools >= 61))("the metadata of braid_torch", () => {
  it("is what a registry takes: name, version, one line of summary, and a page of Markdown", () => {
    const write = "import setuptools; setuptools.setup(script_args=['-q', 'egg_info', '--egg-base', '..'])";
    const { status, stderr } = spawnSync("python3", ["-c", write], { cwd: copy, encoding: "utf8", timeout: 60_000 });
    expect(status).toBe(0);
    expect(stderr).not.toMatch(/error|invalid|unknown/iu);
    const metadata = readFileSync(path.join(scratch, "braid_torch.egg-info/PKG-INFO"), "utf8");
    const end = metadata.indexOf("\n\n");
    const fields = new Map(
      [...metadata.slice(0, end).matchAll(/^([\w-]+): (.*)$/gmu)].map(([, name = "", value = ""]) => [name, value]),
    );
    const [, version] = /"version": "([^"]+)"/u.exec(readFileSync(path.join(python, "../package.json"), "utf8")) ?? [];
    expect(fields.get("Metadata-Version")).toMatch(/^2\.\d$/u);
    expect(fields.get("Name")).toMatch(/^braid[-_]torch$/u);
    expect(fields.get("Version")).toBe(version);
    expect(fields.get("Summary")).toMatch(/^.{10,500}$/u);
    expect(fields.get("Requires-Python")).toBe(">=3.10");
    expect(fields.get("Description-Content-Type")).toBe("text/markdown");
    expect(metadata.slice(end).trim()).toBe(readFileSync(path.join(python, "README.md"), "utf8").trim());
  });
});
