/** What the busiest device receives in examples, patterns and fixtures of passes: with their own parameters and options. */
import { readdirSync } from "node:fs";
import path from "node:path";
import { compile, DiagnosticError, type Fusion, type LowerOptions } from "@braid-compiler/braid";
import type { Built } from "../../src/host/program-file.ts";
import { sizesFromMeshes } from "../../src/ir/sizes.ts";
import { exampleFiles, loadExample, loadPattern, patternFiles } from "../support/example-program.ts";
import type { Fixtures } from "../support/fixture.ts";
import type { Picture } from "../support/shard-picture.ts";
import { mostReceived } from "./received-bytes.ts";

export interface ProgramSource {
  /** `examples/mlp.ts`, `sharding/grid`. */
  readonly name: string;
  /** Null if the file has a host program. */
  readonly build: () => Promise<Fusion | null>;
  readonly options: LowerOptions;
  /** As many as the meshes have if not given. */
  readonly devices?: number;
}

/** Whether it takes so long to lower that the quick suite leaves it out. */
export function isSlow({ name }: ProgramSource): boolean {
  return /^(?:examples\/transformer|stream-parallel-type|loop-over-devices|shrink-stream-buffers)\//u.test(name);
}

const exampleDevices = 4;
const fixturesFolder = path.resolve(import.meta.dirname, "../fixtures");
/** Of extents that a fixture leaves open: small, and devices and chunks divide it. */
const openExtent = 24;

export async function programSources(): Promise<readonly ProgramSource[]> {
  const examples = exampleFiles.map((file): ProgramSource => {
    const hosts = file.startsWith("hosts") ? 2 : 1;
    return {
      name: `examples/${file}`,
      build: async () => fusionIn((await loadExample(file)).build({ devices: exampleDevices, hosts })),
      options: {},
      devices: exampleDevices,
    };
  });
  const patterns = patternFiles.map((file): ProgramSource => ({
    name: `programs/${file}`,
    build: async () => fusionIn((await loadPattern(file)).build({ devices: exampleDevices })),
    options: {},
    devices: exampleDevices,
  }));
  return [...examples, ...patterns, ...(await fixtures())];
}

function fusionIn(built: Built): Fusion | null {
  return "data" in built ? built : null;
}

async function fixtures(): Promise<readonly ProgramSource[]> {
  const files = readdirSync(fixturesFolder, { recursive: true, encoding: "utf8" })
    .filter(
      (file) => file.endsWith(".ts") && !/^(?:programs|findings|tensor-files)/u.test(file) && !/error-/u.test(file),
    )
    .sort();
  const sources = files.map(async (file): Promise<readonly ProgramSource[]> => {
    const module: unknown = await import(path.join(fixturesFolder, file));
    if (path.basename(file) !== "fixtures.ts") {
      const { default: picture } = module as { readonly default: Picture };
      return [{ name: file.slice(0, -".ts".length), build: async () => picture.build().f, options: {} }];
    }
    const { default: table } = module as { readonly default: Fixtures };
    return Object.entries(table)
      .filter(([name]) => !name.startsWith("error-"))
      .map(([name, { build, options = {} }]) => ({
        name: `${path.posix.dirname(file)}/${name}`,
        build: async () => build(),
        options,
      }));
  });
  return (await Promise.all(sources)).flat();
}

/** By name, of those that compile. */
export async function bytesOfPrograms(sources: readonly ProgramSource[]): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for (const source of sources) {
    const bytes = await programBytes(source);
    if (bytes !== null) found.set(source.name, bytes);
  }
  return found;
}

/** Null for what has no Fusion, or is refused or has open extents that do not fit together. */
async function programBytes(source: ProgramSource): Promise<number | null> {
  const fusion = await source.build();
  if (fusion === null) return null;
  const { tensors, inputs } = fusion.data();
  const fromMeshes = sizesFromMeshes(tensors);
  const open = inputs
    .flatMap((id) => tensors[id]?.domain.logical ?? [])
    .flatMap(({ extent }) => (extent.kind === "symbol" && !fromMeshes.has(extent.name) ? [extent.name] : []));
  const last = Math.max(0, ...tensors.flatMap(({ mesh }) => mesh?.devices ?? []));
  const { rank: _rank, onPass: _onPass, ...options } = source.options;
  try {
    const { program } = compile(fusion, {
      ...options,
      devices: source.devices ?? last + 1,
      sizes: new Map(open.map((name) => [name, openExtent])),
      verify: "off",
    });
    return mostReceived(program);
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return null;
  }
}
