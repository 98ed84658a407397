/** Fixes of diagnostics about files, typed: the file is mended or another one named, and the diagnostic is gone. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { cliApart } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const example = path.resolve(import.meta.dirname, "../../examples/set.ts");

const folder = ownFolder();

const named = (name: string): string => path.join(folder.path, name);

interface Row {
  readonly code: string;
  readonly fix: RegExp;
  /** The command line, with the mistake or the fix. */
  readonly command: (isFixed: boolean) => Promise<readonly string[]> | readonly string[];
  /** What a machine without GPUs says next. */
  readonly next?: string;
}

const body = "const f = new Fusion();\n  const x = f.input([4]);\n  f.output(relu(x));\n  return f;";

/** `verify` of a program file of this text. */
function ofText(name: string, code: string, fix: RegExp, text: (isFixed: boolean) => string): Row {
  return { code, fix, command: (isFixed) => ["verify", folder.write(`${name}-${Number(isFixed)}.ts`, text(isFixed))] };
}

function program(imported: string, head = "", inside = body): string {
  return `import { Fusion, program${imported} } from "@braid-compiler/braid";\n${head}\nexport default program({}, () => {\n  ${inside}\n});\n`;
}

/** The input that a run of `examples/set.ts` takes, as a file. */
async function array(): Promise<string> {
  const { out } = await cliApart("run", example, "--out", named("arrays"), "--json");
  expect(out).toContain(".npy");
  return path.join(named("arrays"), /[\w-]+\.npy/u.exec(out)?.[0] ?? "");
}

async function traced(...flags: readonly string[]): Promise<string> {
  const file = named("trace.json");
  expect((await cliApart("run", example, "--trace", file, ...flags)).status).toBe(0);
  return file;
}

const measured = (file: string, ...flags: readonly string[]): readonly string[] => [
  "explain",
  example,
  "--trace",
  file,
  "--on",
  "cpu",
  ...flags,
];

const rows: readonly Row[] = [
  ofText("import", "program-threw", /add relu to the import/u, (isFixed) => program(isFixed ? ", relu" : "")),
  ofText("await", "program-threw", /remove the await/u, (isFixed) =>
    program(", relu", isFixed ? "" : "await new Promise(() => {});"),
  ),
  ofText("exit", "program-threw", /remove process\.exit/u, (isFixed) =>
    program(", relu", isFixed ? "" : "process.exit(1);"),
  ),
  ofText("text", "program-threw", /throw new Error/u, (isFixed) =>
    program(", relu", isFixed ? "" : "throw Object.create(null);"),
  ),
  ofText("default", "program-invalid", /wrap the code .* export it as default/u, (isFixed) =>
    program(", relu").replace("export default", isFixed ? "export default" : "export const p ="),
  ),
  ofText("returns", "program-invalid", /end the function with `return f;`/u, (isFixed) =>
    program(", relu", "", isFixed ? body : body.replace("return f;", "")),
  ),
  ofText("async", "program-invalid", /remove `async`/u, (isFixed) =>
    program(", relu").replace("() =>", isFixed ? "() =>" : "async () =>"),
  ),
  {
    code: "file-unreadable",
    fix: /check the path/u,
    command: (isFixed) => ["verify", isFixed ? example : `${example}x.ts`],
  },
  {
    code: "file-unreadable",
    fix: /correct the path after --inputs/u,
    command: async (isFixed) => ["run", example, "--inputs", `T0=${await array()}${isFixed ? "" : "x.npy"}`],
  },
  {
    code: "file-unwritable",
    fix: /make the folder, or name another file/u,
    command: (isFixed) => ["run", example, "--trace", named(isFixed ? "t.json" : "none/t.json")],
  },
  {
    code: "tensor-file-invalid",
    fix: /write or copy the file again/u,
    command: async (isFixed) => {
      const file = await array();
      if (!isFixed) writeFileSync(file, readFileSync(file).subarray(0, -4));
      return ["run", example, "--inputs", `T0=${file}`];
    },
  },
  {
    code: "tensor-file-invalid",
    fix: /save the array with np\.save/u,
    command: async (isFixed) => {
      const file = await array();
      if (!isFixed) writeFileSync(file, "1 2 3");
      return ["run", example, "--inputs", `T0=${file}`];
    },
  },
  {
    code: "trace-invalid",
    fix: /trace the run again/u,
    command: async (isFixed) => {
      const file = await traced();
      if (!isFixed) writeFileSync(file, readFileSync(file, "utf8").slice(0, -9));
      return measured(file);
    },
  },
  {
    code: "trace-mismatch",
    fix: /give explain the options of the run/u,
    command: async (isFixed) => measured(await traced("--devices", "2"), "--devices", isFixed ? "2" : "4"),
  },
  {
    code: "file-unreadable",
    fix: /trace a run: braid run FILE --trace/u,
    command: async (isFixed) => measured(isFixed ? await traced() : named("no.json")),
  },
  {
    code: "plan-mismatch",
    fix: /run it on 2 devices/u,
    command: async (isFixed) => {
      await cliApart("compile", example, "--devices", "2", "-o", named("plan"));
      return ["run", named("plan"), "--on", "cuda", "--devices", isFixed ? "2" : "4"];
    },
    next: "backend-unavailable",
  },
];

it.each(rows)("$fix of $code, typed, mends it", async ({ code, fix, command, next }) => {
  const refused = await cliApart(...(await command(false)));
  expect([refused.status, refused.err]).toEqual([2, expect.stringContaining(`error[${code}]`)]);
  expect(refused.err).toMatch(fix);
  const { status, err } = await cliApart(...(await command(true)));
  if (next === undefined || status === 0) expect([status, err]).toEqual([0, expect.not.stringContaining("error[")]);
  else expect(err).toContain(`error[${next}]`);
});
