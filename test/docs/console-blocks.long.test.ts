/** Output of commands in the pages equals what the commands print. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cli, type ProgramFolder, programFolder } from "../cli/captured-cli.ts";
import { consoleCommands, matches, withoutTimes } from "../support/console-blocks.ts";
import { readmeProgram } from "../support/readme.ts";

const root = path.resolve(import.meta.dirname, "../..");
let folder: ProgramFolder;
let pipeline: string;
let plan: string;
beforeAll(() => {
  folder = programFolder();
  pipeline = folder.write("pipeline.ts", readmeProgram());
  plan = path.join(folder.path, "plan/");
});
afterAll(() => {
  folder.remove();
});

describe.each(["README.md", "docs/command-line.md", "docs/examples.md", "docs/explain.md", "docs/plan.md"])(
  "%s",
  (page) => {
    const commands = consoleCommands(page);

    it("shows commands", () => {
      expect(commands.length).toBeGreaterThan(0);
    });

    it.each(commands)("$command", async ({ command, output }) => {
      const printed = withoutTimes(
        (await printedBy(command)).replaceAll(pipeline, "pipeline.ts").replaceAll(plan, "plan/").trim(),
      );
      const shown = withoutTimes(output);
      if (!matches(printed, shown)) expect(printed).toBe(shown);
    });
  },
);

it("the README's program has about 20 lines", () => {
  expect(readmeProgram().trim().split("\n").length).toBeLessThanOrEqual(20);
});

it.each([1, 2, 3, 5, 8])("the README's program runs on %d devices", async (devices) => {
  const { status, out, err } = await cli("run", pipeline, "--devices", String(devices), "--check", "--blas", "off");
  expect([status, err]).toEqual([0, ""]);
  // The rows are no multiple of 3, nor of 8 devices in 4 chunks.
  expect(out).toMatch(/\[100, 320\] +b08dd019de377570 .* passed$/m);
});

/** What `npx braid ...` prints, or `npm ci && npm start` as package.json defines it. */
async function printedBy(command: string): Promise<string> {
  const [, start = ""] = /"start": "([^"]+)"/.exec(read("package.json")) ?? [];
  const isStart = command === "npm ci && npm start";
  let printed = isStart ? "> braid start\n" : "";
  for (const each of isStart ? start.replaceAll("node dist/cli/main.js", "npx braid").split(" && ") : [command]) {
    const { out, err } = await cli(...argumentsOf(each));
    printed += out + err;
  }
  return printed;
}

/** `pipeline.ts` is the README's program, `plan/` a folder. */
function argumentsOf(command: string): readonly string[] {
  const text = command.replace(/^npx braid /, "");
  expect(text).not.toBe(command);
  const places = new Map([
    ["pipeline.ts", pipeline],
    ["plan/", plan],
  ]);
  return text.split(" ").map((part) => places.get(part) ?? part);
}

function read(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}
