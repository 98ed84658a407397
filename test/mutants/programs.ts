/** Small programs of every form of communication, as command lists: every example, under every set of options that changes what it does. */
import { readdirSync } from "node:fs";
import path from "node:path";
import { DiagnosticError, type CommandList, lower, type LoweringOptions, record } from "braid";
import { loadProgram } from "../../src/cli/load-program.ts";
import { sizesFromMeshes } from "../../src/ir/sizes.ts";

export interface SmallProgram {
  readonly name: string;
  readonly lists: readonly CommandList[];
}

const folder = path.resolve(import.meta.dirname, "../../examples");

const optionSets: readonly Partial<LoweringOptions>[] = [
  {},
  { pointToPoint: "linear" },
  { pointToPoint: "broadcast" },
  { insertReshardingAfter: true },
  { communicatorBackend: "cuda" },
  { communicatorBackend: "cuda", p2pProtocol: "put" },
  { communicatorBackend: "cuda", interStreamSynchronization: true },
  { communicatorBackend: "cuda", pointToPoint: "broadcast" },
  { deallocate: false, shrinkStreamBuffers: false },
];

/** Sizes just large enough that every axis is divided by devices and chunks. */
function smallParameters(devices: number): Readonly<Record<string, number>> {
  return { S: 2, M: 2 * devices * devices, K: 2 * devices, N: 2 };
}

/** Programs of `devices` ranks and `streams` streams; those whose lists equal an earlier one's are left out. */
export async function smallPrograms(devices: number, streams: number): Promise<readonly SmallProgram[]> {
  const programs = new Map<string, SmallProgram>();
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".ts"))) {
    const { program } = await loadProgram(path.join(folder, file));
    const known = Object.keys(program.defaults);
    const params = Object.fromEntries(
      Object.entries(smallParameters(devices)).filter(([name]) => known.includes(name)),
    );
    for (const options of optionSets) {
      const lists = listsOf(() => program.build({ devices, params }), devices, streams, options);
      if (lists === null) continue;
      const key = JSON.stringify(lists);
      const name = `${file} ${JSON.stringify(options)}, ${devices} devices, ${streams} streams`;
      if (!programs.has(key)) programs.set(key, { name, lists });
    }
  }
  return [...programs.values()];
}

/** Null where the options do not admit the program. */
function listsOf(
  build: () => Parameters<typeof lower>[0],
  devices: number,
  numberOfStreams: number,
  options: Partial<LoweringOptions>,
): readonly CommandList[] | null {
  try {
    const fusion = build();
    const sizes = sizesFromMeshes(fusion.data().tensors);
    return Array.from({ length: devices }, (_, rank) =>
      record(lower(fusion, { ...options, rank }), {
        rank,
        sizes,
        numberOfStreams,
        p2pProtocol: options.p2pProtocol ?? "get",
      }),
    );
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}
