/**
 * Where the time of a contender's kernels goes, and why communication is exposed: from one traced run, which no graph
 * launches on GPUs, explained as `braid explain` does.
 */
import type { Prepared } from "../../src/backends/backend.ts";
import { isAttention } from "../../src/commands/attention.ts";
import { touchesPeers } from "../../src/commands/barriers.ts";
import type { Kernel } from "../../src/commands/kernel.ts";
import type { Program } from "../../src/commands/program.ts";
import { causes } from "../../src/explain/causes.ts";
import { explainRun } from "../../src/explain/explain-run.ts";
import type { Exchange, Outcome } from "../../src/launch/exchange.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import { at } from "../../src/support/invariant.ts";
import { alignTraces } from "../../src/trace/align-traces.ts";
import { eventsOfNumbers, numbersOfEvents, type TraceEvent, type TraceOrigin } from "../../src/trace/event-table.ts";

/** Milliseconds of one rank: sums of its kernels' times, which may overlap. */
export interface KernelTimes {
  readonly gemms: number;
  readonly attention: number;
  readonly others: number;
}

export interface Traced {
  readonly kernels: KernelTimes;
  /** Milliseconds in which the rank communicates, and the part of them under its kernels; null if not known. */
  readonly communication: { readonly milliseconds: number; readonly underKernels: number } | null;
  /** Milliseconds by cause, the greatest first; null without communication, and if causes are not known. */
  readonly exposed: readonly { readonly because: string; readonly milliseconds: number }[] | null;
}

export interface TracingOptions {
  readonly program: Program;
  readonly prepared: Prepared;
  /** Seconds. */
  readonly timeout: number;
  readonly barrier: () => Promise<void>;
  /** With the serial form's Program, exposed time is what is longer than its kernels; null without a profile. */
  readonly profile: MachineProfile | null;
  readonly serial: Program | null;
}

/** Collective. */
export async function traceRun(
  { program, prepared, timeout, barrier, profile, serial }: TracingOptions,
  exchange: Exchange,
): Promise<Outcome<Traced>> {
  // The first run without a graph has cold caches and an idle driver.
  await prepared.execute({ timeout, trace: true });
  await barrier();
  const { trace, origins = [], milliseconds } = await prepared.execute({ timeout, trace: true });
  const all = await exchange({ kind: "done", value: pack(trace, origins, milliseconds) });
  if (all.kind === "failed") return all;
  const parts = all.value.map(unpack);
  const events = alignTraces(
    parts.flatMap((part) => part.events),
    parts.flatMap((part) => part.origins),
  );
  const end = events.reduce((latest, event) => Math.max(latest, event.end), 0);
  const total = Math.max(end, ...parts.map((part) => part.milliseconds));
  const run = explainRun({ program, trace: events, milliseconds: total }, profile, { serial, graph: false });
  const { communication, overlap } = run.overlap;
  return {
    kind: "done",
    value: {
      kernels: kernelTimes(program, events, run.rank),
      communication: overlap === null ? null : { milliseconds: communication, underKernels: overlap },
      exposed:
        overlap === null
          ? null
          : run.causes.map(({ cause, milliseconds: time }) => ({ because: causes[cause].label, milliseconds: time })),
    },
  };
}

function kernelTimes(program: Program, events: readonly TraceEvent[], rank: number): KernelTimes {
  const times = { gemms: 0, attention: 0, others: 0 };
  for (const event of events) {
    if (event.rank !== rank) continue;
    const command = at(at(program.ranks, rank).commands, event.command);
    if (command.kind !== "launch" || touchesPeers(program, rank, command)) continue;
    times[kindOf(at(program.kernels, command.kernel))] += event.end - event.start;
  }
  return times;
}

function kindOf(kernel: Kernel): keyof KernelTimes {
  if (kernel.kind === "matmul" || kernel.kind === "linear") return "gemms";
  return isAttention(kernel) ? "attention" : "others";
}

/** `not in a loop 0.213 ms, latency 0.040 ms`; null without causes. */
export function exposedText(traced: Traced | null): string | null {
  const exposed = traced?.exposed ?? [];
  if (exposed.length === 0) return null;
  return exposed.map(({ because, milliseconds }) => `${because} ${milliseconds.toFixed(3)} ms`).join(", ");
}

interface Part {
  readonly events: readonly TraceEvent[];
  readonly origins: readonly TraceOrigin[];
  readonly milliseconds: number;
}

const numbersPerOrigin = 3;

/** As numbers: the time, the number of origins, origins, events. */
function pack(events: readonly TraceEvent[], origins: readonly TraceOrigin[], milliseconds: number): readonly number[] {
  return [
    milliseconds,
    origins.length,
    ...origins.flatMap(({ rank, at: zero, error }) => [rank, zero, error]),
    ...numbersOfEvents(events),
  ];
}

function unpack(numbers: readonly number[]): Part {
  const number = (i: number): number => numbers[i] ?? NaN;
  const first = 2 + numbersPerOrigin * number(1);
  const origins = Array.from({ length: number(1) }, (_, i): TraceOrigin => {
    const from = 2 + numbersPerOrigin * i;
    return { rank: number(from), at: number(from + 1), error: number(from + 2) };
  });
  return { events: eventsOfNumbers(numbers.slice(first)), origins, milliseconds: number(0) };
}
