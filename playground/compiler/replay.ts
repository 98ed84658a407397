/**
 * Replays a counterexample: the order in which streams take their steps until the finding shows, who wrote what each
 * step reads, and the outputs that this order gives, compared with the oracle's.
 */
import { commandDetails } from "../../src/commands/command-text.ts";
import { isWork } from "../../src/commands/command.ts";
import type { Program } from "../../src/commands/program.ts";
import { accesses, type Region } from "../../src/commands/region.ts";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import type { Compute } from "../../src/machine/execution.ts";
import { type CallerAction, parseInterleaving } from "../../src/machine/interleaving.ts";
import { createMachine } from "../../src/machine/machine.ts";
import { at } from "../../src/support/invariant.ts";
import { rangeText, sliceText } from "../../src/verify/explain/slice-text.ts";
import type { CommandPlace, Finding } from "../../src/verify/finding.ts";
import type { Analysed } from "./analyse.ts";
import type { ReplayRequest } from "./messages.ts";
import type { Replay, ReplayRead, ReplayStep } from "./parts.ts";
import { valuesOf } from "./replay-values.ts";

/** More steps say no more than these. */
const mostSteps = 5000;

/** Null if one run cannot show the finding. */
export async function replayOf(
  analysed: Analysed,
  { finding, seed }: Pick<ReplayRequest, "finding" | "seed">,
): Promise<Replay | null> {
  const { reported, report } = analysed.compilation;
  const found = finding === null ? null : (report.findings[finding] ?? null);
  const order = finding === null ? `seed:${seed}` : (found?.interleaving ?? null);
  if (order === null) return null;
  return { finding, ...stepsOf(reported, found, order), ...(await valuesOf(analysed, order, seed)) };
}

/** Nothing is computed: which command may run next does not depend on values. */
const noCompute: Compute<null> = { launch: () => {}, copy: () => {}, combine: () => {}, save: () => null };

const callerTexts: { readonly [A in CallerAction]: string } = {
  reads: "the caller reads the outputs",
  writes: "the caller writes the inputs",
  overwrites: "the caller writes the inputs of the next run",
};

function stepsOf(program: Program, finding: Finding | null, order: string): Pick<Replay, "steps" | "stopped"> {
  const steps: ReplayStep[] = [];
  const written = new Map<number, { readonly step: number; readonly region: Region }[]>();
  const readOf = (region: Region): ReplayRead => ({
    slice: textOf(program, region),
    isInput: at(program.buffers, region.buffer).role === "input",
    writtenBy: (written.get(region.buffer) ?? []).flatMap((each) =>
      mayOverlap(each.region, region) ? [each.step] : [],
    ),
  });
  const missingEdge = finding?.missingEdge ?? null;
  const hasEnded = (place: CommandPlace): boolean =>
    steps.some(({ rank, command, phase }) => rank === place.rank && command === place.command && phase !== "begins");
  const note = (rank: number, command: number, phase: "begins" | "ends"): void => {
    if (steps.length >= mostSteps) return;
    const list = at(program.ranks, rank);
    const { kind, stream } = at(list.commands, command);
    const { reads, writes } = accesses(program, rank, command);
    const isHere = (place: CommandPlace): boolean => place.rank === rank && place.command === command;
    // alloc and free leave bytes undefined.
    if (phase === "ends" && isWork(kind)) {
      for (const region of writes) {
        written.set(region.buffer, [...(written.get(region.buffer) ?? []), { step: steps.length, region }]);
      }
    }
    steps.push({
      rank,
      stream,
      streamName: at(list.streams, stream).name,
      command,
      phase,
      text: `${kind} ${commandDetails(list, command)}`,
      reads: phase === "begins" ? reads.map(readOf) : [],
      writes: writes.map((region) => textOf(program, region)),
      isNamed: finding === null ? phase === "begins" && isWork(kind) : finding.commands.some(isHere),
      isWrong: phase === "begins" && missingEdge !== null && isHere(missingEdge.to) && !hasEnded(missingEdge.from),
    });
  };
  const machine = createMachine(program, noCompute, {
    interleaving: parseInterleaving(order),
    observer: {
      start: (rank, command) => {
        note(rank, command, "begins");
      },
      end: (rank, command) => {
        note(rank, command, "ends");
      },
    },
    caller: ({ rank, caller }) => {
      const isNamed = finding?.commands.some((each) => each.rank === rank && each.command === null) ?? false;
      const place = { rank, stream: 0, streamName: "caller", command: null, phase: "acts" } as const;
      steps.push({ ...place, text: callerTexts[caller], reads: [], writes: [], isNamed, isWrong: isNamed });
    },
  });
  try {
    machine.run();
    return { steps, stopped: null };
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return { steps, stopped: error.diagnostics[0]?.message ?? error.message };
  }
}

function textOf(program: Program, region: Region): string {
  const { rank } = at(program.buffers, region.buffer);
  if (region.bytes === 0) return `nothing of rank ${rank}`;
  const text = region.dims.length === 0 ? rangeOf(program, region) : sliceText(program, region, region);
  return `${text} of rank ${rank}`;
}

function rangeOf(program: Program, { buffer, offset, bytes }: Region): string {
  return rangeText(program, buffer, offset, offset + bytes);
}

/** By the stretch from first to last byte. */
function mayOverlap(a: Region, b: Region): boolean {
  return a.offset < b.offset + spanOf(b) && b.offset < a.offset + spanOf(a);
}

function spanOf({ dims, bytes }: Region): number {
  return dims.reduce((span, { count, stride }) => span + (count - 1) * stride, bytes);
}
