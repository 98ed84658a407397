/** README.md has a row for every test of nvFuser's suites, and every row with a file has a test in it. */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { nvfuserSuites, otherSuites } from "./names.ts";

const folder = import.meta.dirname;
const page = readFileSync(path.resolve(folder, "README.md"), "utf8");

interface Row {
  readonly name: string;
  readonly file: string | undefined;
  readonly reason: string;
}

/** The table below a heading. */
function rowsOf(suite: string): readonly Row[] {
  const [, section = ""] = page.split(`## ${suite}\n`);
  const [table = ""] = section.split("\n## ");
  const lines = table.split("\n").filter((line) => line.startsWith("| "));
  return lines.slice(2).map((line) => {
    const [name = "", ours = "", reason = ""] = line
      .split("|")
      .slice(1)
      .map((cell) => cell.trim());
    return { name, file: /^`nvfuser\/(?<file>\S+)`$/u.exec(ours)?.groups?.file, reason };
  });
}

/** The text of a test file and of the programs that it imports, directly or not. */
function sourceOf(file: string): string {
  const text = readFileSync(path.join(folder, file), "utf8");
  const programs = [...text.matchAll(/from "\.\/(?<name>[a-z-]+-programs\.ts)"/gu)];
  return [text, ...programs.map(({ groups }) => sourceOf(groups?.name ?? ""))].join("\n");
}

const counts = {
  "test_sharding.cpp": 18,
  "test_overlap.cpp": 7,
  "test_overlap.py": 11,
  "test_stream.cpp": 6,
  "test_stream.py": 3,
  "test_resharding.cpp": 35,
  "test_multidevice_sharding.cpp": 27,
  "test_multidevice_matmul.cpp": 8,
  "test_matmul.py": 12,
  "test_sharding.py": 8,
  "test_multidevice_transformer.cpp": 11,
  "test_transformer.py": 3,
  "test_multidevice.py": 11,
  "test_communication.py": 7,
  "test_dtensor.py": 3,
  "test_alphafold3.py": 1,
  "test_deepseek_v3.py": 1,
  "test_expert_parallel.py": 1,
  "test_transformer_engine.py": 1,
  "test_multidevice_alltoallv.cpp": 1,
  "test_multidevice_dispatch_combine.cpp": 4,
  "test_multidevice_ipc.cpp": 8,
  "test_multidevice_tma.cpp": 3,
};

it("all suites have all of nvFuser's tests", () => {
  const found = Object.entries(nvfuserSuites).map(([suite, names]) => [suite, new Set(names).size]);
  expect(Object.fromEntries(found)).toEqual(counts);
});

describe.each(Object.entries(nvfuserSuites))("%s", (suite, names) => {
  it("has a row for each test", () => {
    expect(rowsOf(suite).map(({ name }) => name)).toEqual(names);
  });

  it("has a test, or a reason, in each row", () => {
    for (const { name, file, reason } of rowsOf(suite)) {
      if (file === undefined) expect(reason, name).not.toBe("");
      else {
        const last = name.slice(name.lastIndexOf(".") + 1);
        expect(sourceOf(file), name).toMatch(new RegExp(`["\`.]${last}["\`,]`, "u"));
      }
    }
  });
});

it("the other suites have a row each, whose file there is", () => {
  const rows = rowsOf("Other suites");
  expect(rows.flatMap(({ name }) => name.split(", "))).toEqual(otherSuites);
  const [, table = ""] = page.split("## Other suites");
  const files = [...table.matchAll(/`(?<file>conformance\/[^`]+)`/gu)].map(({ groups }) => groups?.file ?? "");
  expect(files.filter((file) => !existsSync(path.resolve(folder, "..", file)))).toEqual([]);
});
