/** An example of the documentation as a linked Program, lowered or as it is. */
import { readdirSync } from "node:fs";
import path from "node:path";
import { compile, isProgramFile, type Program } from "braid";
import type { HostProgram } from "../../src/host/nodes.ts";
import type { Built } from "../../src/host/program-file.ts";

const folder = path.resolve(import.meta.dirname, "../../examples");

export const exampleFiles: readonly string[] = readdirSync(folder).filter((name) => name.endsWith(".ts"));

export async function exampleProgram(name: string, devices: number, streams: number): Promise<Program> {
  const { default: example } = (await import(path.join(folder, name))) as { readonly default: unknown };
  if (!isProgramFile(example)) throw new Error(`${name} is no program`);
  const built = example.build({ devices });
  const source = "data" in built ? built : (rank: number) => hostProgram(example.build({ devices, rank }));
  return compile(source, { devices, streams, verify: "off" }).program;
}

function hostProgram(built: Built): HostProgram {
  if ("data" in built) throw new Error("a Fusion for some ranks only");
  return built;
}
