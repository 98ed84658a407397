/**
 * `braid` runs in a browser: nothing that its entry imports statically comes from Node, or from a package but valibot,
 * which imports nothing.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const source = path.resolve(import.meta.dirname, "../../src");

/** Every module that `file` imports statically, itself included, with the specifiers that are no files. */
function staticImports(file: string, seen = new Map<string, string[]>()): Map<string, string[]> {
  if (seen.has(file)) return seen;
  const outside: string[] = [];
  seen.set(file, outside);
  const text = readFileSync(file, "utf8");
  for (const [, specifier = ""] of text.matchAll(/^(?:import|export)\b(?:[^;"]*?from)?\s*"([^"]+)";/gm)) {
    if (specifier.startsWith(".")) staticImports(path.resolve(path.dirname(file), specifier), seen);
    else outside.push(specifier);
  }
  return seen;
}

describe("the entry of braid", () => {
  const modules = staticImports(path.join(source, "index.ts"));

  it("reaches the executor, the passes and the IR", () => {
    const names = [...modules.keys()].map((file) => path.relative(source, file));
    expect(names).toEqual(
      expect.arrayContaining(["executor/multi-device-executor.ts", "compile/lower.ts", "ir/api/fusion.ts"]),
    );
  });

  it("imports no Node module and no package but valibot", () => {
    const outside = [...modules.values()].flat().filter((specifier) => specifier !== "valibot");
    expect(outside).toEqual([]);
  });

  it("imports none once it is built", () => {
    const built = staticImports(path.resolve(source, "../dist/index.js"));
    expect(built.size).toBeGreaterThan(2);
    expect([...built.values()].flat().filter((specifier) => specifier !== "valibot")).toEqual([]);
  });

  it("gets nothing more with valibot", () => {
    const file = fileURLToPath(import.meta.resolve("valibot"));
    expect([...staticImports(file)]).toEqual([[file, []]]);
    expect(readFileSync(file, "utf8")).not.toMatch(/\brequire\(|\bprocess\b|\bimport\(/);
  });

  it("loads back ends only on demand", () => {
    const names = [...modules.keys()].map((file) => path.relative(source, file));
    expect(names.filter((name) => /^backends\/[^/]+\//.test(name))).toEqual([]);
  });
});
