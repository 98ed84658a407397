/**
 * Small programs of every form of communication, as command lists: every example, under every set of options that
 * changes what it does.
 */
import { type CommandList, DiagnosticError, record } from "@braid-compiler/braid";
import { type MemoryModel, memoryModels } from "../../../src/compile/memory-models.ts";
import { lowerAll, type ProgramSource } from "../../../src/compile/lower-all.ts";
import type { HostProgram } from "../../../src/host/nodes.ts";
import type { Built } from "../../../src/host/program-file.ts";
import type { LoweringOptions } from "../../../src/passes/options.ts";
import { sizesFromMeshes } from "../../../src/ir/sizes.ts";
import { loadPattern, patternFiles } from "../../support/example-program.ts";

export interface SmallProgram {
  readonly name: string;
  readonly lists: readonly CommandList[];
}

const optionSets: readonly Partial<LoweringOptions>[] = [
  {},
  { p2p: "linear" },
  { p2p: "broadcast" },
  { insertReshardingAfter: true },
  { backend: "cuda" },
  { backend: "cuda", protocol: "put" },
  { backend: "cuda", interStreamSync: true },
  { backend: "cuda", p2p: "broadcast" },
  { deallocate: false, shrink: false },
];

/** Sizes just large enough that every axis is divided by devices and chunks. */
function smallParameters(devices: number): Readonly<Record<string, number>> {
  return { S: 2, M: 2 * devices * devices, K: 2 * devices, N: 2 };
}

/** Programs of `devices` ranks and `streams` streams; those whose lists equal an earlier one's are left out. */
export async function smallPrograms(
  devices: number,
  streams: number,
  model: MemoryModel = memoryModels.braid,
): Promise<readonly SmallProgram[]> {
  const programs = new Map<string, SmallProgram>();
  for (const file of patternFiles) {
    const program = await loadPattern(file);
    const known = Object.keys(program.defaults);
    const params = Object.fromEntries(
      Object.entries(smallParameters(devices)).filter(([name]) => known.includes(name)),
    );
    for (const options of optionSets) {
      const source = ((): ProgramSource => {
        const built = program.build({ devices, params });
        return "data" in built ? built : (rank) => hostOf(program.build({ devices, rank, params }));
      })();
      const lists = listsOf(source, { devices, streams, ...model }, options);
      if (lists === null) continue;
      const key = JSON.stringify(lists);
      const name = `${file} ${JSON.stringify(options)}, ${devices} devices, ${streams} streams`;
      if (!programs.has(key)) programs.set(key, { name, lists });
    }
  }
  return [...programs.values()];
}

function hostOf(built: Built): HostProgram {
  if ("data" in built) throw new Error("a Fusion for some ranks only");
  return built;
}

/** Null where the options do not admit the program. */
function listsOf(
  source: ProgramSource,
  recording: MemoryModel & { readonly devices: number; readonly streams: number },
  options: Partial<LoweringOptions>,
): readonly CommandList[] | null {
  try {
    const { signature, hosts } = lowerAll(source, { ...options, devices: recording.devices });
    const sizes = sizesFromMeshes(signature.tensors);
    const { protocol = "get" } = options;
    return hosts.map((host, rank) => record(host, { rank, sizes, protocol, ...recording }));
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}
