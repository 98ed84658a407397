/**
 * The examples of the documentation, loaded as the command line loads them: two ways would map a stack's lines by two
 * source maps.
 */
import { readdirSync } from "node:fs";
import path from "node:path";
import * as braid from "braid";
import { loadProgram } from "../../src/cli/program/load-program.ts";
import type { HostProgram } from "../../src/host/nodes.ts";
import type { Built, ProgramFile } from "../../src/host/program-file.ts";

export const examplesFolder = path.resolve(import.meta.dirname, "../../examples");

export const exampleFiles: readonly string[] = readdirSync(examplesFolder).filter((name) => name.endsWith(".ts"));

export async function loadExample(name: string): Promise<ProgramFile> {
  return (await loadProgram(path.join(examplesFolder, name), { braid })).program;
}

/** An example as a linked Program, lowered or as it is. */
export async function exampleProgram(name: string, devices: number, streams: number): Promise<braid.Program> {
  const example = await loadExample(name);
  const built = example.build({ devices });
  const source = "data" in built ? built : (rank: number) => hostProgram(example.build({ devices, rank }));
  return braid.compile(source, { devices, streams, verify: "off" }).program;
}

function hostProgram(built: Built): HostProgram {
  if ("data" in built) throw new Error("a Fusion for some ranks only");
  return built;
}
