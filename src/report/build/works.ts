/** What the slices of a run are: one row for all commands of one statement that do the same. */
import { isGemmKernel } from "../../commands/kernel.ts";
import { touchesPeers } from "../../commands/barriers.ts";
import { commandDetails, kernelText, shortStatement } from "../../commands/command-text.ts";
import type { Command } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import type { HostProgram } from "../../host/nodes.ts";
import { print } from "../../host/print/print.ts";
import { printedLines } from "../../host/print/statement-lines.ts";
import { containerEnd } from "../../host/syntax/text/source.ts";
import { at, groupedBy, unreachable, getOrMake } from "../../support/invariant.ts";
import { operationName } from "../../trace/chrome/slices.ts";
import { commandBytes, commandPeer, flopsOf, isLocalCopy } from "../../trace/command-work.ts";
import type { HostText } from "../data/report-data.ts";
import type { ReportStatement, TimelineData, SliceWork } from "../data/timeline-data.ts";

/** The rows that slices refer to, in the order in which they were first asked for. */
export interface Works {
  /** The row of the command at `index` of `rank`'s list; `waits`: of the time in which its stream is blocked by it. */
  readonly workOf: (rank: number, index: number, waits: boolean) => number;
  readonly iterationOf: (rank: number, index: number) => number;
  readonly rows: () => Pick<TimelineData, "works" | "statements" | "iterations">;
}

/** A text of a host program by rank, and the line on which the statement at a path begins in it. */
export interface HostLines {
  readonly hostOf: (rank: number) => number;
  readonly lineOf: (rank: number, path: readonly number[]) => number | null;
}

export function createWorks(program: Program, { hostOf, lineOf }: HostLines): Works {
  const works: SliceWork[] = [];
  const statements: ReportStatement[] = [];
  const iterations = new Map<string, number>([["", 0]]);
  const known = new Map<string, number>();
  const statementsByPath = new Map<string, number>();
  /** Of kernels, by id: their operands are the same in every launch. */
  const kernelWork = new Map<number, { readonly bytes: number | null; readonly flops: number }>();

  const statementOf = (rank: number, index: number): number => {
    const { statement, path } = at(at(program.ranks, rank).origins, index);
    const host = hostOf(rank);
    const key = `${host} ${path.join(".")}`;
    const found = statementsByPath.get(key);
    if (found !== undefined) return found;
    statementsByPath.set(key, statements.length);
    const line = lineOf(rank, path);
    return statements.push({ text: shortStatement(statement), region: path[0] ?? 0, host, line }) - 1;
  };

  const amountOf = (rank: number, index: number, command: Command): Pick<SliceWork, "bytes" | "flops"> => {
    if (command.kind !== "launch") return { bytes: commandBytes(program, rank, index), flops: 0 };
    return getOrMake(kernelWork, command.kernel, () => ({
      bytes: commandBytes(program, rank, index),
      flops: flopsOf(at(program.kernels, command.kernel)),
    }));
  };

  return {
    workOf: (rank, index, waits) => {
      const list = at(program.ranks, rank);
      const command = at(list.commands, index);
      const statement = statementOf(rank, index);
      const { kind, label } = waits ? waitingFor(command) : runs(program, rank, command);
      const amount = waits ? { bytes: null, flops: 0 } : amountOf(rank, index, command);
      const what = command.kind === "launch" ? command.kernel : kind === "order" || kind === "mark" ? index : "";
      const key = `${kind} ${label} ${statement} ${amount.bytes} ${what}`;
      const found = known.get(key);
      if (found !== undefined) return found;
      known.set(key, works.length);
      const details =
        command.kind === "launch" ? kernelText(at(program.kernels, command.kernel)) : detailsOf(list, index);
      return works.push({ kind, label, details, statement, ...amount }) - 1;
    },
    iterationOf: (rank, index) => {
      const text = at(at(program.ranks, rank).origins, index).iteration.join(", ");
      return getOrMake(iterations, text, () => iterations.size);
    },
    rows: () => ({ works, statements, iterations: [...iterations.keys()] }),
  };
}

function detailsOf(list: Program["ranks"][number], index: number): string {
  return `${at(list.commands, index).kind} ${commandDetails(list, index)}`;
}

function waitingFor(command: Command): Pick<SliceWork, "kind" | "label"> {
  if (command.kind === "transfer") return { kind: "wait", label: "wait for peers" };
  return { kind: "wait", label: command.kind === "waitSignal" ? "wait for a signal" : "wait for an event" };
}

/** What a slice of a command is called. */
export function labelOf(program: Program, rank: number, command: Command): string {
  return runs(program, rank, command).label;
}

function runs(program: Program, rank: number, command: Command): Pick<SliceWork, "kind" | "label"> {
  switch (command.kind) {
    case "launch": {
      const kernel = at(program.kernels, command.kernel);
      const [label = kernel.kind] = kernelText(kernel).split(":");
      if (touchesPeers(program, rank, command)) return { kind: "transfer", label };
      return { kind: isGemmKernel(kernel) ? "gemm" : "kernel", label };
    }
    case "copy": {
      const peer = commandPeer(program, rank, command);
      if (peer === null) return { kind: "localCopy", label: "copy" };
      return { kind: "copy", label: `${peer.direction} rank ${peer.rank}` };
    }
    case "transfer": {
      const kind = isLocalCopy(program, rank, command) ? "localCopy" : "transfer";
      return { kind, label: operationName(command.operation) };
    }
    case "recordEvent":
    case "waitEvent":
      return { kind: "order", label: `${command.kind === "recordEvent" ? "record" : "wait for"} e${command.event}` };
    case "signal":
    case "waitSignal":
      return { kind: "order", label: `${command.kind === "signal" ? "signal" : "wait for"} slot ${command.slot}` };
    case "alloc":
    case "free":
      return { kind: "mark", label: `${command.kind} ${at(program.buffers, command.buffer).name}` };
    default:
      return unreachable(command);
  }
}

// The host programs as the report shows them: without what follows the container, and each text once.

export interface HostTexts {
  readonly texts: readonly HostText[];
  readonly lines: HostLines;
}

/** A file of host programs, and where their statements begin in it. */
export interface DumpText {
  readonly text: string;
  readonly lineOf: HostLines["lineOf"];
}

/** A dump is shown as it is, since findings name its lines. */
export function hostTexts(hosts: readonly HostProgram[], dump: DumpText | null = null): HostTexts {
  if (dump !== null) {
    const texts = [{ ranks: [...hosts.keys()], lines: dump.text.trimEnd().split("\n") }];
    return { texts, lines: { hostOf: () => 0, lineOf: dump.lineOf } };
  }
  const known = new Map<HostProgram, string>();
  const ranksOf = groupedBy(hosts.keys(), (rank) => {
    const host = at(hosts, rank);
    return getOrMake(known, host, () => containerText(host));
  });
  const texts = [...ranksOf].map(([text, ranks]) => ({ ranks, lines: text.split("\n") }));
  return {
    texts,
    lines: {
      hostOf: (rank) => texts.findIndex(({ ranks }) => ranks.includes(rank)),
      lineOf: printedLines(hosts),
    },
  };
}

/** The first line of a dump is empty; it stays, because lines are numbered from it. */
function containerText(host: HostProgram): string {
  const lines = print(host).split("\n");
  const end = lines.indexOf(containerEnd);
  return lines.slice(0, end < 0 ? lines.length : end + 1).join("\n");
}
