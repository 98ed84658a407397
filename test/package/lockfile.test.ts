/** The lock file works for `npm ci` with an empty cache and on every platform, and downloads only packages. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

interface Entry {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly hasInstallScript?: boolean;
  readonly optional?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const text = readFileSync(path.resolve(import.meta.dirname, "../../package-lock.json"), "utf8");
const { packages } = JSON.parse(text) as { packages: Readonly<Record<string, Entry>> };
const entries = Object.entries(packages).filter(([place]) => place !== "");

describe("package-lock.json", () => {
  it("pins every package by version and integrity", () => {
    expect(entries.length).toBeGreaterThan(50);
    expect(entries.filter(([, { version, integrity }]) => version === undefined || integrity === undefined)).toEqual(
      [],
    );
  });

  it("names no registry", () => {
    expect(text).not.toMatch(/"resolved"/);
  });

  it("has one package with an install script: koffi's looks for its prebuilt binary and downloads nothing", () => {
    const withScript = entries.filter(([, { hasInstallScript }]) => hasInstallScript).map(([place]) => place);
    expect(withScript).toEqual(["node_modules/koffi"]);
    expect(entries.find(([place]) => place === "node_modules/koffi")?.[1].optional).toBe(true);
  });

  it("has the binaries of every platform, without which npm ci refuses it", () => {
    const missing = entries.flatMap(([place, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) =>
          packages[`${place}/node_modules/${name}`] === undefined && packages[`node_modules/${name}`] === undefined,
      ),
    );
    expect(missing).toEqual([]);
  });
});
