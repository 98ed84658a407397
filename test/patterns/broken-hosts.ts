/** The host programs of a pattern, before and after its fault is put in. */
import { type Compilation, compile, type HostProgram, parse, print } from "@braid-compiler/braid";
import { lowerAll } from "../../src/compile/lower-all.ts";
import { memoryModels } from "../../src/compile/memory-models.ts";
import { loadExample } from "../support/example-program.ts";
import type { BrokenPattern } from "./broken-patterns.ts";

type Given = Pick<BrokenPattern, "example" | "devices" | "params" | "edit">;

export async function hostsOf({ example, devices, params }: Given): Promise<readonly HostProgram[]> {
  const { build, defaults } = await loadExample(`transformer/${example}.ts`);
  const given = { devices, params: { ...defaults, ...params } };
  const built = build(given);
  if ("data" in built) return lowerAll(built, { devices }).hosts;
  return Array.from({ length: devices }, (_, rank) => {
    const host = build({ ...given, rank });
    if ("data" in host) throw new Error(`${example} is a Fusion for some ranks only`);
    return host;
  });
}

/** As read from the edited text. Throws if the edit changes nothing. */
export function brokenHosts({ edit }: Given, hosts: readonly HostProgram[]): readonly HostProgram[] {
  const broken = hosts.map((host, rank) => {
    const text = print(host);
    const edited = edit(text.split("\n"), rank).join("\n");
    return edited === text ? host : parse(edited);
  });
  if (broken.every((host, rank) => host === hosts[rank])) throw new Error("the edit changes nothing");
  return broken;
}

/** In the models of memory and communicators in which the examples run. */
export function compiled(hosts: readonly HostProgram[], devices: number): Compilation {
  return compile(hosts, { devices, ...memoryModels.braid, verify: "on" });
}
