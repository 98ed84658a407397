/**
 * The examples of the documentation and the patterns of the tests, loaded as the command line loads them: two ways would
 * map a stack's lines by two source maps.
 */
import { readdirSync } from "node:fs";
import path from "node:path";
import * as braid from "@braid-compiler/braid";
import { loadProgram } from "../../src/cli/program/load-program.ts";
import type { HostProgram } from "../../src/host/nodes.ts";
import type { Built, Parameters, ProgramFile } from "../../src/host/program-file.ts";

const patternsFolder = path.resolve(import.meta.dirname, "../fixtures/programs");
export const examplesFolder = path.resolve(import.meta.dirname, "../../examples");

export const exampleFiles: readonly string[] = filesIn(examplesFolder);

export async function loadExample(name: string): Promise<ProgramFile> {
  return load(path.join(examplesFolder, name));
}

/** An example that is a Fusion. Parameters that are not given have the example's values. */
export async function exampleFusion(
  name: string,
  devices: number,
  params: Partial<Parameters>,
  hosts = 1,
): Promise<braid.Fusion> {
  const { build, defaults } = await loadExample(name);
  const built = build({ devices, hosts, params: { ...defaults, ...params } });
  if (!("data" in built)) throw new Error(`${name} is a host program`);
  return built;
}

/**
 * Every pattern in nvFuser's form, with the chunks and the devices as axes of their own, and the host program by hand.
 * Names are without folders: some of these files are examples.
 */
const patternPaths: ReadonlyMap<string, string> = new Map(
  [
    ...filesIn(patternsFolder).map((name) => path.join(patternsFolder, name)),
    ...filesIn(path.join(examplesFolder, "nvfuser")).map((name) => path.join(examplesFolder, "nvfuser", name)),
    path.join(examplesFolder, "hand-built.ts"),
  ]
    .map((file): [string, string] => [path.basename(file), file])
    .sort(([a], [b]) => (a < b ? -1 : 1)),
);

export const patternFiles: readonly string[] = [...patternPaths.keys()];

export async function loadPattern(name: string): Promise<ProgramFile> {
  const file = patternPaths.get(name);
  if (file === undefined) throw new Error(`no pattern ${name}`);
  return load(file);
}

/** A pattern as a linked Program, lowered or as it is. */
export async function patternProgram(name: string, devices: number, streams: number): Promise<braid.Program> {
  const example = await loadPattern(name);
  const built = example.build({ devices });
  const source = "data" in built ? built : (rank: number) => hostProgram(example.build({ devices, rank }));
  return braid.compile(source, { devices, streams, verify: "off" }).program;
}

function hostProgram(built: Built): HostProgram {
  if ("data" in built) throw new Error("a Fusion for some ranks only");
  return built;
}

/** The names of the program files in a folder, and below it. */
function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .sort();
}

async function load(file: string): Promise<ProgramFile> {
  return (await loadProgram(file, { "@braid-compiler/braid": braid })).program;
}
