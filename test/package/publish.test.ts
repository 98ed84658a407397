/** Both packages are ready for a registry: their manifests, one version, and what each entry exports. */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import * as braid from "@braid-compiler/braid";
import * as internals from "@braid-compiler/braid/internals";
import { packageName } from "../../src/host/program-file.ts";

const root = path.resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(path.join(root, file), "utf8");

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly publishConfig: { readonly access: string };
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}

const manifest = JSON.parse(read("package.json")) as Manifest;
const { version } = manifest;

describe("package.json", () => {
  it("may be published under a scope, with the command braid", () => {
    expect(manifest.name).toBe("@braid-compiler/braid");
    expect(packageName).toBe(manifest.name);
    expect(manifest.private).toBeUndefined();
    expect(manifest.publishConfig).toEqual({ access: "public" });
    expect(manifest.bin).toEqual({ braid: "dist/cli/main.js" });
  });

  it("exports what the build writes and the sources have", () => {
    const modules = Object.entries(manifest.exports).flatMap(([subpath, target]) =>
      typeof target === "string" ? [] : [{ subpath, file: target.default }],
    );
    expect(modules.map(({ subpath }) => subpath)).toEqual([".", "./cpu", "./cuda", "./mpi", "./internals"]);
    for (const { file } of modules) {
      expect(existsSync(path.join(root, file)), file).toBe(true);
      expect(existsSync(path.join(root, file.replace("dist/", "src/").replace(/js$/u, "ts"))), file).toBe(true);
    }
  });

  it("has the version that all other places name", () => {
    const lock = JSON.parse(read("package-lock.json")) as Manifest & { packages: Readonly<Record<string, Manifest>> };
    expect([lock.version, lock.packages[""]?.version]).toEqual([version, version]);
    expect(read("python/pyproject.toml")).toContain(`\nname = "braid-torch"\nversion = "${version}"\n`);
    expect(read("CHANGELOG.md")).toMatch(new RegExp(`^## ${version.replaceAll(".", "\\.")}\\b`, "mu"));
    for (const page of ["README.md", "docs/pytorch.md", "python/README.md"]) {
      const files = read(page).match(/\bbraid[\w-]*-\d[\w.]*(?:-[\w-]+)?\.(?:tgz|whl)/gu) ?? [];
      expect(files.length, page).toBeGreaterThan(0);
      const built = [`braid-compiler-braid-${version}.tgz`, `braid_torch-${version}-py3-none-any.whl`];
      expect(
        files.filter((file) => !built.includes(file)),
        page,
      ).toEqual([]);
    }
  });
});

describe("the entries", () => {
  it("export functions and objects of the API, and stages apart from them", () => {
    const api = "program Fusion DeviceMesh gradients HostProgramBuilder parse print importModel lower record link";
    const uses = "compile choose verify explain simulate parseProfile MultiDeviceExecutor Tensor DiagnosticError";
    expect(Object.keys(braid)).toEqual(
      expect.arrayContaining([...api.split(" "), ...uses.split(" "), "matmul", "set"]),
    );
    expect(Object.keys(internals)).toEqual(expect.arrayContaining(["passes", "runPass", "printProgram"]));
    expect(Object.keys(internals).filter((name) => Object.hasOwn(braid, name))).toEqual([]);
  });
});
