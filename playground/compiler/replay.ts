/**
 * Replays a counterexample: the order in which streams take their steps until the finding shows, and the values that
 * the outputs get in that order, compared with those of the reference.
 */
import { accesses } from "../../src/commands/accesses.ts";
import { commandDetails } from "../../src/commands/command-text.ts";
import type { Program } from "../../src/commands/program.ts";
import type { Region } from "../../src/commands/region.ts";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import type { Compute } from "../../src/machine/execution.ts";
import { parseInterleaving } from "../../src/machine/interleaving.ts";
import { createMachine } from "../../src/machine/machine.ts";
import { at } from "../../src/support/invariant.ts";
import type { Finding } from "../../src/verify/finding.ts";
import type { Analysed } from "./analyse.ts";
import type { ReplayRequest } from "./messages.ts";
import type { Replay, ReplayStep } from "./parts.ts";

/** Throws the diagnostics of the executor. */
export function replayOf({ compilation }: Analysed, { finding }: ReplayRequest): Replay {
  const { reported, report } = compilation;
  const found = report.findings[finding];
  const interleaving = found?.interleaving ?? null;
  if (found === undefined || interleaving === null)
    return { steps: [], stopped: null, differences: [], withoutValues: null };
  return { ...stepsOf(reported, found, interleaving), differences: [], withoutValues: null };
}

/** Nothing is computed: which command may run next does not depend on values. */
const noCompute: Compute<null> = { launch: () => {}, copy: () => {}, combine: () => {}, save: () => null };

function stepsOf(program: Program, finding: Finding, text: string): Pick<Replay, "steps" | "stopped"> {
  const steps: ReplayStep[] = [];
  const note = (rank: number, command: number, phase: ReplayStep["phase"]): void => {
    const list = at(program.ranks, rank);
    const { kind, stream } = at(list.commands, command);
    const { reads, writes } = accesses(program, rank, command);
    steps.push({
      rank,
      stream,
      command,
      phase,
      text: `${kind} ${commandDetails(list, command)}`,
      reads: reads.map(regionText),
      writes: writes.map(regionText),
      isNamed: finding.commands.some((each) => each.rank === rank && each.command === command),
    });
  };
  const machine = createMachine(program, noCompute, {
    interleaving: parseInterleaving(text),
    observer: {
      start: (rank, command) => {
        note(rank, command, "begins");
      },
      end: (rank, command) => {
        note(rank, command, "ends");
      },
    },
    caller: ({ rank, caller }) => {
      const named = finding.commands.some((each) => each.rank === rank && each.command === null);
      const action = {
        reads: "the caller reads the outputs",
        writes: "the caller writes the inputs",
        overwrites: "the caller writes the next inputs",
      };
      steps.push({
        rank,
        stream: 0,
        command: null,
        phase: "acts",
        text: action[caller],
        reads: [],
        writes: [],
        isNamed: named,
      });
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

function regionText({ buffer }: Region): string {
  return `b${buffer}`;
}
