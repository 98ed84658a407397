/** What fixes of diagnostics write as code exists: flags, commands, functions and methods. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import * as braid from "@braid-compiler/braid";
import { cli } from "../cli/captured-cli.ts";

const root = path.resolve(import.meta.dirname, "../..");

describe("what fixes write as code", () => {
  const helps = sourceFiles(path.join(root, "src")).flatMap((file) =>
    helpTexts(readFileSync(file, "utf8")).map((text) => ({ file: path.relative(root, file), text })),
  );

  it("is found", () => {
    expect(helps.length).toBeGreaterThan(400);
  });

  it("has flags that a command takes", async () => {
    const commands = ["run", "explain", "lower", "compile", "verify", "bench", "calibrate", "doctor", "playground"];
    const texts = await Promise.all(commands.map(async (name) => (await cli(name, "--help")).out));
    const known = new Set(texts.flatMap((text) => text.match(/--[a-z][\w-]*/gu) ?? []));
    // Of srun.
    for (const flag of ["--mpi", "--gpus-per-node"]) known.add(flag);
    const wrong = helps.flatMap(({ file, text }) =>
      (text.match(/--[a-z][\w-]*/gu) ?? []).flatMap((flag) => (known.has(flag) ? [] : [`${file}: ${flag}`])),
    );
    expect(wrong).toEqual([]);
    const unknownCommands = helps.flatMap(({ file, text }) =>
      Array.from(text.matchAll(/\bbraid ([a-z]+) (?=FILE|-|N\b)/gu), ([, name = ""]) => name).flatMap((name) =>
        commands.includes(name) ? [] : [`${file}: braid ${name}`],
      ),
    );
    expect(unknownCommands).toEqual([]);
  });

  it("calls functions and methods that there are", () => {
    const f = new braid.Fusion();
    const x = f.input([2]);
    const builder = new braid.HostProgramBuilder();
    const made: readonly object[] = [f, x, x.axis(0), braid.DeviceMesh.range(1), builder, builder.input([2])];
    const known = new Set([
      ...Object.keys(braid),
      ...[braid.DeviceMesh, braid.Tensor].flatMap((each) => Object.getOwnPropertyNames(each)),
      ...made.flatMap((each) => Object.getOwnPropertyNames(Object.getPrototypeOf(each))),
      // Of numpy, safetensors, JAX, PyTorch, the packages of back ends, JavaScript and NVFUSER_DUMP.
      "save",
      "savez",
      "jit",
      "print_readable",
      "as_text",
      "export",
      "Shard",
      "save_file",
      "createCudaBackend",
      "joinMpi",
      "ranksOf",
      "Error",
      "host_ir",
      // Of expressions in templates.
      "map",
      "join",
    ]);
    const wrong = helps.flatMap(({ file, text }) =>
      Array.from(text.matchAll(/\b([A-Za-z_]\w*)\(/gu), ([, name = ""]) => name).flatMap((name) =>
        known.has(name) ? [] : [`${file}: ${name}()`],
      ),
    );
    expect(wrong).toEqual([]);
  });
});

function sourceFiles(folderPath: string): readonly string[] {
  return readdirSync(folderPath, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => path.join(folderPath, name));
}

/** The literals of each `help:` of a diagnostic, without what expressions put into them. */
function helpTexts(source: string): readonly string[] {
  const lines = source.split("\n");
  return lines.flatMap((line, first): readonly string[] => {
    const [, indent = "", value = ""] = /^(\s*)help:(.*)$/u.exec(line) ?? [];
    if (value === "" && !/^\s*help:$/u.test(line)) return [];
    const following = lines.slice(first + 1);
    const end = following.findIndex((other) => (/^\s*/u.exec(other)?.[0].length ?? 0) <= indent.length);
    const text = [value, ...following.slice(0, end)].join(" ");
    const literals = text.match(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`/gu) ?? [];
    return literals.map((literal) => literal.slice(1, -1).replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/gu, "…"));
  });
}
