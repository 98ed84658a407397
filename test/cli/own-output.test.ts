/** What a program file writes past Node's streams goes to standard error, too. */
import { spawnSync } from "node:child_process";
import path from "node:path";
import process from "node:process";
import { expect, it } from "vitest";
import { ownFolder } from "./own-folder.ts";

const main = path.resolve(import.meta.dirname, "../../dist/cli/main.js");
const folder = ownFolder();

const echo = (word: string): string => `[${JSON.stringify("-e")}, ${JSON.stringify(`console.log("${word}")`)}]`;

const text = `import childProcess, { execFileSync, execSync, fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs, { appendFileSync, createWriteStream, writeFileSync, writeSync, write } from "node:fs";
import { promisify } from "node:util";
import { DeviceMesh, Fusion, program, set } from "@braid-compiler/braid";

writeSync(1, "to writeSync\\n");
fs.writeSync(1, Buffer.from("to fs.writeSync\\n"));
await promisify(write)(1, "to write\\n");
writeFileSync(1, "to writeFileSync\\n");
appendFileSync("/dev/stdout", "to a path\\n");
const stream = createWriteStream("", { fd: 1, autoClose: false });
stream.end("to a stream\\n");
await once(stream, "finish");

const node = process.execPath;
spawnSync(node, ${echo("from spawnSync")}, { stdio: "inherit" });
execFileSync(node, ${echo("from execFileSync")}, { stdio: ["ignore", "inherit", "inherit"] });
execSync("echo from execSync", { stdio: [0, 1, 2] });
await once(spawn(node, ${echo("from spawn")}, { stdio: "inherit" }), "exit");
await once(childProcess.spawn("echo", ["from a module"], { stdio: ["ignore", 1, 2] }), "exit");
await once(fork(import.meta.filename.replace("loud.ts", "child.mjs")), "exit");
console.log(execSync("echo as before").toString().trim());

export default program({}, ({ devices }) => {
  const f = new Fusion();
  const a = f.input([4, 8], "float");
  const b = set(a);
  f.output(b);
  for (const tv of [a, b]) tv.setDeviceMesh(DeviceMesh.range(devices));
  return f;
});
`;

it("from descriptors, device files and child processes", () => {
  folder.write("child.mjs", 'console.log("from fork");');
  const file = folder.write("loud.ts", text);
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, "lower", file, "--devices", "2", "--json"], {
    encoding: "utf8",
  });
  expect(
    stderr
      .split("\n")
      .filter((line) => /^(to|from|as) /.test(line))
      .toSorted(),
  ).toEqual([
    "as before",
    "from a module",
    "from execFileSync",
    "from execSync",
    "from fork",
    "from spawn",
    "from spawnSync",
    "to a path",
    "to a stream",
    "to fs.writeSync",
    "to write",
    "to writeFileSync",
    "to writeSync",
  ]);
  expect(JSON.parse(stdout)).toMatchObject({ devices: 2 });
  expect(status).toBe(0);
});
