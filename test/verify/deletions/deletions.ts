/**
 * Programs without one of their synchronization lines, a `Wait` or `Synchronize`: every example under every set of
 * options, as the dump that it is lowered to, and the dumps of test/fixtures/dumps.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { compile, DiagnosticError, type HostProgram, parse, print } from "@braid-compiler/braid";
import type { CompileOptions } from "../../../src/compile/compile.ts";
import { type MemoryModel, memoryModels } from "../../../src/compile/memory-models.ts";
import { lowerAll } from "../../../src/compile/lower-all.ts";
import { repairHosts } from "../../../src/compile/repair/repair-hosts.ts";
import { without } from "../../../src/compile/repair/insertion.ts";
import { parseContainers } from "../../../src/host/parse/parse.ts";
import { rankContainers } from "../../../src/host/parse/rank-containers.ts";
import { createStatementText } from "../../../src/host/print/print.ts";
import { walk } from "../../../src/host/traverse.ts";
import type { LoweringOptions } from "../../../src/passes/options.ts";
import { loadPattern, patternFiles } from "../../support/example-program.ts";

export interface WholeProgram {
  readonly name: string;
  readonly hosts: readonly HostProgram[];
  readonly options: CompileOptions;
}

/** What becomes of a program without a line. Empty `problems`: as it should be. */
export interface Deletion {
  readonly line: string;
  /** Whether the program verifies without the line. */
  readonly isRedundant: boolean;
  readonly problems: readonly string[];
}

const root = path.resolve(import.meta.dirname, "../../..");

const optionSets: readonly Partial<LoweringOptions>[] = [
  {},
  { p2p: "linear" },
  { p2p: "broadcast" },
  { insertReshardingAfter: true },
  { backend: "cuda" },
  { backend: "cuda", protocol: "put" },
  { backend: "cuda", p2p: "broadcast" },
];

/** Those that the options admit, once each. */
export async function exampleDumps(
  devices: number,
  model: MemoryModel = memoryModels.braid,
): Promise<readonly WholeProgram[]> {
  const found = new Map<string, WholeProgram>();
  for (const file of patternFiles) {
    const program = await loadPattern(file);
    const small: Readonly<Record<string, number>> = { S: 2, M: 2 * devices * devices, K: 2 * devices, N: 2 };
    const params = Object.fromEntries(Object.entries(small).filter(([name]) => name in program.defaults));
    for (const lowering of optionSets) {
      const { protocol = "get" } = lowering;
      const texts = orNull(() => {
        const built = program.build({ devices, params });
        if (!("data" in built))
          return Array.from({ length: devices }, (_, rank) => program.build({ devices, rank, params })).flatMap(
            (host) => ("data" in host ? [] : [print(host)]),
          );
        return lowerAll(built, { ...lowering, devices }).hosts.map((host) => print(host));
      });
      if (texts === null) continue;
      const key = `${protocol} ${texts.join("\n")}`;
      if (found.has(key)) continue;
      const hosts = new Map(texts.map((text) => [text, parse(text)]));
      found.set(key, {
        name: `${file} ${JSON.stringify(lowering)}`,
        hosts: texts.flatMap((text) => hosts.get(text) ?? []),
        options: { devices, streams: 2, protocol, ...model },
      });
    }
  }
  return [...found.values()];
}

/** Those that are complete and name no sizes but their devices'. */
export function fixtureDumps(): readonly WholeProgram[] {
  const folder = path.join(root, "test/fixtures/dumps");
  return readdirSync(folder)
    .filter((name) => name.endsWith(".hir"))
    .flatMap((name) => {
      const text = readFileSync(path.join(folder, name), "utf8");
      const containers = orNull(() =>
        rankContainers(parseContainers(text), { file: name, devices: null, container: null }),
      );
      if (containers === null) return [];
      const hosts = containers.map(({ program }) => program);
      const devices = hosts.length;
      const symbols = [...text.matchAll(/\{(i\d+)\}/g)].flatMap(([, symbol]) => symbol ?? []);
      const options = {
        devices,
        ...memoryModels.nvfuser,
        sizes: Object.fromEntries(symbols.map((symbol) => [symbol, Math.max(devices, devices > 1 ? 0 : 4)])),
      };
      return orNull(() => compile(hosts, options))?.report.ok === true ? [{ name, hosts, options }] : [];
    });
}

function orNull<T>(make: () => T): T | null {
  try {
    return make();
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

/** Deletes each line of rank 0's program, and the line at the same place of the other ranks' programs. */
export function deletions({ hosts, options }: WholeProgram): readonly Deletion[] {
  const [first] = hosts;
  if (first === undefined) return [];
  return walk(first.body).flatMap(({ kind }, index) =>
    kind === "Wait" || kind === "Synchronize" ? [deletion(hosts, options, index, kind)] : [],
  );
}

function deletion(
  hosts: readonly HostProgram[],
  options: CompileOptions,
  index: number,
  kind: "Wait" | "Synchronize",
): Deletion {
  const cuts = new Map<HostProgram, HostProgram>();
  let line = "";
  for (const host of new Set(hosts)) {
    const statement = walk(host.body)[index];
    if (statement?.kind !== kind) continue;
    line ||= createStatementText(host)(statement);
    const [cut] = without([host], statement);
    if (cut !== undefined) cuts.set(host, cut);
  }
  const compiled = compile(
    hosts.map((host) => cuts.get(host) ?? host),
    { ...options, verify: "on" },
  );
  if (compiled.report.ok) return { line, isRedundant: true, problems: [] };
  const repaired = repairHosts(compiled);
  if (repaired === null) return { line, isRedundant: false, problems: ["no repair"] };
  const { added, findings } = repaired;
  // Of a signal that nobody takes, each rank has its own.
  const buffers = findings.map(({ memory, message }) => memory?.tensor ?? message);
  const problems = [
    ...(added.length === 1 ? [] : [`${added.length} statements`]),
    ...(new Set(buffers).size === buffers.length ? [] : [`several findings of a buffer: ${buffers.join(", ")}`]),
    ...(equivalent(
      line,
      added.map(({ text }) => text),
    )
      ? []
      : [`another line: ${added.map(({ text }) => text).join("; ")}`]),
    ...(compile(
      repaired.hosts.map((host) => parse(print(host))),
      { ...options, verify: "on" },
    ).report.ok
      ? []
      : ["its dump does not verify"]),
  ];
  return { line, isRedundant: false, problems };
}

/**
 * The same statement. A stream that only waited for posts may be replaced by a Wait for them, and a stream by another
 * name of it.
 */
function equivalent(line: string, added: readonly string[]): boolean {
  return added.every((text) => text === line || line.startsWith("Synchronize"));
}
