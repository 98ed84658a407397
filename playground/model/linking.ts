/** Which lines and commands belong together: source lines, lines of host programs, commands and their slices. */
import type { LoweredPart, VerdictPart } from "../compiler/parts.ts";

/** What the pointer or the cursor is on. Lines count from 1. */
export type Pointed =
  | { readonly kind: "source"; readonly line: number }
  /** A message that names a line of the source. */
  | { readonly kind: "message"; readonly line: number }
  | { readonly kind: "host"; readonly rank: number; readonly line: number }
  | { readonly kind: "command"; readonly rank: number; readonly command: number };

export interface Linked {
  readonly sources: readonly number[];
  /** Of the host program that a rank runs. */
  readonly hostLines: (rank: number) => readonly number[];
  readonly hasCommand: (rank: number, command: number) => boolean;
}

export interface LinkTables {
  readonly lowered: LoweredPart | null;
  readonly verdict: VerdictPart | null;
}

const nothing: Linked = { sources: [], hostLines: () => [], hasCommand: () => false };

export function linkedTo(pointed: Pointed | null, tables: LinkTables): Linked {
  if (pointed === null) return nothing;
  switch (pointed.kind) {
    case "source":
    case "message":
      return fromSource(pointed.line, tables);
    case "host":
      return fromHost(pointed.rank, pointed.line, tables);
    case "command": {
      const { rank, command } = pointed;
      const line = lineOf(tables, rank, command);
      const linked = line === 0 ? nothing : fromHost(rank, line, tables);
      return { ...linked, hasCommand: (other, index) => other === rank && index === command };
    }
  }
}

function fromSource(line: number, tables: LinkTables): Linked {
  const lines = memo((rank) =>
    (hostOf(tables, rank)?.lines ?? []).flatMap(({ sources }, i) => (sources.includes(line) ? [i + 1] : [])),
  );
  return {
    sources: [line],
    hostLines: lines,
    hasCommand: (rank, command) => lines(rank).includes(lineOf(tables, rank, command)),
  };
}

function fromHost(rank: number, line: number, tables: LinkTables): Linked {
  const host = hostOf(tables, rank);
  const runs = (other: number): boolean => host?.ranks.includes(other) === true;
  return {
    sources: host?.lines[line - 1]?.sources ?? [],
    hostLines: (other) => (runs(other) ? [line] : []),
    hasCommand: (other, command) => runs(other) && lineOf(tables, other, command) === line,
  };
}

export function hostOf({ lowered }: LinkTables, rank: number): LoweredPart["hosts"][number] | null {
  return lowered?.hosts.find(({ ranks }) => ranks.includes(rank)) ?? null;
}

/** 0 if it is unknown. */
function lineOf({ verdict }: LinkTables, rank: number, command: number): number {
  return verdict?.commands[rank]?.rows[command]?.line ?? 0;
}

function memo(compute: (rank: number) => readonly number[]): (rank: number) => readonly number[] {
  const known = new Map<number, readonly number[]>();
  return (rank) => {
    const found = known.get(rank) ?? compute(rank);
    known.set(rank, found);
    return found;
  };
}
