/** Program files: which ones load, from where, and the messages for bad ones. */
import path from "node:path";
import process from "node:process";
import { beforeAll, describe, expect, it } from "vitest";
import { exampleFiles, loadExample } from "../support/example-program.ts";
import { cliApart } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const folder = ownFolder();

const copyProgram = `
import { DeviceMesh, Fusion, program, set } from "@braid-compiler/braid";
export default program({ S: 4, N: 8 }, ({ devices, params }) => {
  const f = new Fusion();
  const a = f.input([params.S, params.N], "float");
  const b = set(a);
  f.output(b);
  for (const tv of [a, b]) tv.setDeviceMesh(DeviceMesh.range(devices));
  b.axis(0).parallelize("Stream");
  return f;
});
`;

it("program files that load side by side leave a process.exit that exits", async () => {
  const own = process.exit.bind(process);
  process.exit = (status) => {
    throw new Error(`exits with ${status}`);
  };
  try {
    await Promise.all(exampleFiles.slice(0, 2).map(loadExample));
    expect(() => process.exit(3)).toThrow("exits with 3");
  } finally {
    process.exit = own;
  }
});

describe("a program file loads", () => {
  it.each(["copy.ts", "copy.mts", "copy.js", "copy.mjs", "with space and ü/copy.ts"])("%s", async (name) => {
    const { status, out, err } = await cliApart("lower", folder.write(name, copyProgram));
    expect(err).toBe("");
    expect(status).toBe(0);
    expect(out).toContain("%HostIrContainer");
  });

  it("by a relative path, with types, an enum, top-level await and other .ts files", async () => {
    folder.write(
      "lib/shape.ts",
      `export interface Shape { readonly rows: number }
       export const shape = (rows: number): Shape => ({ rows });`,
    );
    const file = folder.write(
      "typed.ts",
      `import { DeviceMesh, Fusion, program, set, type TensorView } from "@braid-compiler/braid";
       import { shape, type Shape } from "./lib/shape.ts";
       enum Extent { Columns = 8 }
       const rows: Shape = await Promise.resolve(shape(4));
       export default program({}, ({ devices }): Fusion => {
         const f = new Fusion();
         const a: TensorView = f.input([rows.rows, Extent.Columns], "float");
         f.output(set(a));
         for (const tv of [...f.inputs, ...f.outputs]) tv.setDeviceMesh(DeviceMesh.range(devices));
         return f;
       });`,
    );
    const { status, out, err } = await cliApart("lower", path.relative(process.cwd(), file), "--devices", "2");
    expect(err).toBe("");
    expect(status).toBe(0);
    expect(out).toContain("{4}");
  });

  it("with the running Braid, whatever lies near it", async () => {
    folder.write(
      "near/node_modules/@braid-compiler/braid/package.json",
      `{"name": "@braid-compiler/braid", "type": "module", "exports": "./i.js"}`,
    );
    folder.write("near/node_modules/@braid-compiler/braid/i.js", `throw new Error("another Braid");`);
    const { status, err } = await cliApart("lower", folder.write("near/copy.ts", copyProgram));
    expect(err).toBe("");
    expect(status).toBe(0);
  });

  it("with its own packages", async () => {
    folder.write("packages/node_modules/rows/package.json", `{"name": "rows", "type": "module", "exports": "./i.js"}`);
    folder.write("packages/node_modules/rows/i.js", `export const rows = 6;`);
    const text = `import { rows } from "rows";\n${copyProgram.replace("params.N", "rows")}`;
    const { status, out, err } = await cliApart("lower", folder.write("packages/copy.ts", text));
    expect(err).toBe("");
    expect(status).toBe(0);
    expect(out).toContain("{6}");
  });
});

interface BadFile {
  readonly name: string;
  readonly text: string;
  readonly expected: readonly string[];
}

const badFiles: readonly BadFile[] = [
  {
    name: "no-default.ts",
    text: `export const fusion = 1;`,
    expected: ["error[program-invalid]", "no default export", "found: exports fusion", "export default program("],
  },
  { name: "empty.ts", text: "", expected: ["error[program-invalid]", "no default export", "found: no exports"] },
  {
    name: "not-imported.ts",
    text: `import { program } from "@braid-compiler/braid";\nexport default program({}, () => new Fusion());`,
    expected: [
      "error[program-threw]",
      "Fusion is not defined",
      'fix: add Fusion to the import from "@braid-compiler/braid"',
    ],
  },
  {
    name: "number.ts",
    text: "export default 3;",
    expected: ["error[program-invalid]", "not a program", "found: a number"],
  },
  {
    name: "bare-function.ts",
    text: "export default () => 3;",
    expected: ["error[program-invalid]", "found: a function", "wrap the code that makes the Fusion in program(...)"],
  },
  {
    name: "bare-fusion.ts",
    text: `import { Fusion } from "@braid-compiler/braid"; export default new Fusion();`,
    expected: ["error[program-invalid]", "found: a Fusion"],
  },
  {
    name: "returns-nothing.ts",
    text: `import { program } from "@braid-compiler/braid";\nexport default program({}, () => {});`,
    expected: ["error[program-invalid]", "does not return a Fusion", "found: undefined", "returns-nothing.ts"],
  },
  {
    name: "returns-promise.ts",
    text: `import { Fusion, program } from "@braid-compiler/braid";\nexport default program({}, async () => new Fusion());`,
    expected: ["error[program-invalid]", "found: a Promise", "fix: remove `async`", "returns-promise.ts"],
  },
  {
    name: "throws-at-load.ts",
    text: `\n\nthrow new RangeError("too far\\nsecond line");`,
    expected: ["error[program-threw]", "throws-at-load.ts:3:7", "found: RangeError: too far"],
  },
  {
    name: "throws-text.ts",
    text: `throw "just text";`,
    expected: ["error[program-threw]", "throws-text.ts", "found: threw just text"],
  },
  {
    name: "throws-in-build.ts",
    text: `import { program } from "@braid-compiler/braid";\n\nexport default program({}, () => {\n  throw new Error("bad build");\n});`,
    expected: ["error[program-threw]", "throws-in-build.ts:4:9", "found: Error: bad build"],
  },
  {
    name: "syntax.ts",
    text: `import { program } from "@braid-compiler/braid";\nexport default program({}, () => {\n  const = 3;\n});`,
    expected: ["error[program-threw]", "syntax.ts:3:9", "Unexpected token"],
  },
  {
    name: "missing-import.ts",
    text: `import { x } from "./absent.ts";\nexport default x;`,
    expected: ["error[program-threw]", "Cannot find module './absent.ts'"],
  },
  {
    name: "missing-package.ts",
    text: `import { x } from "no-such-package";\nexport default x;`,
    expected: ["error[program-threw]", "Cannot find module 'no-such-package'"],
  },
  {
    name: "missing-export.ts",
    text: `import { program, Fusoin } from "@braid-compiler/braid";\nexport default program({}, () => new Fusoin());`,
    expected: [
      "error[program-threw]",
      "missing-export.ts:2",
      `"@braid-compiler/braid" has no export named Fusoin`,
      "did you mean Fusion?",
    ],
  },
  {
    name: "braid-call.ts",
    text: `/** Lines move when the file is transformed. */
import {
  Fusion,
  matmul,
  program,
} from "@braid-compiler/braid";
export default program({}, () => {
  const f = new Fusion();
  const a = f.input([2, 3], "float");
  const b = f.input([4, 5], "float");
  f.output(matmul(a, b));
  return f;
});`,
    expected: ["error[shape-mismatch]", "matmul(T0, T1)", "  where: ", "braid-call.ts:11:18"],
  },
  {
    name: "braid-call-in-helper.ts",
    text: `import { build } from "./helper.ts";\nimport { program } from "@braid-compiler/braid";\nexport default program({}, build);`,
    expected: ["error[bad-extent]", "helper.ts:4:5"],
  },
  {
    name: "no-output.ts",
    text: `import { Fusion, program } from "@braid-compiler/braid";\nexport default program({}, () => { const f = new Fusion(); f.input([2]); return f; });`,
    expected: ["error[no-output]"],
  },
];

describe("a bad program file gets one message and status 2", () => {
  beforeAll(() => {
    folder.write(
      "helper.ts",
      `import { Fusion } from "@braid-compiler/braid";\nexport function build(): Fusion {\n  const f = new Fusion();\n  f.input([-1]);\n  return f;\n}`,
    );
  });

  // All commands load files by one function.
  it.each(badFiles.map((each, i) => ({ ...each, command: i % 2 === 0 ? "lower" : "run" })))(
    "$command $name",
    async ({ command, name, text, expected }) => {
      const { status, out, err } = await cliApart(command, folder.write(name, text), "--devices", "2");
      for (const part of expected) expect(err).toContain(part);
      expect(err).not.toMatch(/^\s+at .*\(.*\)$/m);
      expect(err.match(/^error/gm)).toHaveLength(1);
      expect(out).toBe("");
      expect(status).toBe(2);
    },
  );

  it.each([
    ["a missing file", "absent.ts", "no such file or directory"],
    ["a directory", ".", "a directory"],
    ["another kind of file", "notes.md", "a file that ends in .md"],
    ["a file without extension", "notes", "no extension"],
  ])("%s", async (_, name, found) => {
    folder.write("notes.md", "");
    folder.write("notes", "");
    const { status, out, err } = await cliApart("run", path.join(folder.path, name));
    expect(err).toContain("error[file-unreadable]");
    expect(err).toContain(path.join(folder.path, name));
    expect(err).toContain(`found: ${found}`);
    expect(err).toContain("expected: a readable file that ends in .ts, .mts, .js, .mjs");
    expect([status, out]).toEqual([2, ""]);
  });
});
