/**
 * The machine runs a Program on one thread, deterministically. An interleaving selects the stream that takes the next
 * step, and `step` executes it. The machine has no clock, no I/O and no memory; the back end's Compute has them.
 */
import type { Program } from "../commands/program.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import { at } from "../support/invariant.ts";
import { createRandom, type Random } from "../support/random.ts";
import {
  beginRun,
  type Compute,
  createReadyQueues,
  createState,
  type Eager,
  type Execution,
  type Observer,
  type ReadyQueues,
  resetState,
} from "./execution.ts";
import { type CallerStep, type Chooser, createChooser, type Interleaving } from "./interleaving.ts";
import { stuck } from "./obstacle.ts";
import { step } from "./step.ts";
import { createMachineTables, type QueueMode } from "./tables.ts";

export interface MachineOptions {
  /** Round-robin by default. */
  readonly interleaving?: Interleaving;
  /** One queue per stream by default. */
  readonly queues?: QueueMode;
  /**
   * synchronous: no participant of a transfer completes before all have arrived. eager: participants complete as early
   * as their own results allow (with a seed, each by a random bit). Default: eager with a seed, a hold, or a list that
   * says so; otherwise synchronous.
   */
  readonly transfers?: "synchronous" | "eager";
  readonly observer?: Observer;
  /** Called for a caller's step in a list. The caller's memory belongs to the back end. */
  readonly caller?: (step: CallerStep) => void;
}

export interface Machine {
  /**
   * One run of the Program. Throws `stuck`, `slot-overrun`, `interleaving-invalid`, and errors of Compute and the
   * observer. After an error, the next run starts from zeroed slots. Random numbers continue from run to run.
   */
  run(): void;
}

/** Throws `interleaving-invalid` if the interleaving names a rank, stream or command that the Program does not have. */
export function createMachine<Saved>(
  program: Program,
  compute: Compute<Saved>,
  { interleaving = { kind: "turns" }, queues = "streams", transfers, observer, caller }: MachineOptions = {},
): Machine {
  const tables = createMachineTables(program, queues);
  const random = interleaving.kind === "seed" ? createRandom(interleaving.seed) : null;
  const eager = hasEagerTransfers({ interleaving, transfers }) ? createEager<Saved>(random) : null;
  const state = createState(tables);
  let ready = createReadyQueues(tables.queues.length);
  const execution: Execution<Saved> = {
    tables,
    state,
    compute,
    observer: observer ?? null,
    sharing: null,
    eager,
    wake: (queue) => ready.add(queue),
  };
  const chooser = createChooser(execution, interleaving, random, caller ?? (() => {}));
  return {
    run: () => {
      ready = createReadyQueues(tables.queues.length);
      beginRun(tables, state);
      try {
        runToEnd(execution, chooser, ready);
      } catch (error) {
        resetState(state);
        clearEager(eager);
        throw error;
      }
    },
  };
}

/** Whether runs with these options save inputs of transfers (Compute's `save`). */
export function hasEagerTransfers({
  interleaving,
  transfers,
}: {
  interleaving?: Interleaving | undefined;
  transfers?: MachineOptions["transfers"] | undefined;
}): boolean {
  const isEager =
    interleaving?.kind === "seed" ||
    interleaving?.kind === "hold" ||
    (interleaving?.kind === "list" && interleaving.eager === true);
  const byDefault = isEager ? "eager" : "synchronous";
  return (transfers ?? byDefault) === "eager";
}

function runToEnd<Saved>(execution: Execution<Saved>, chooser: Chooser, ready: ReadyQueues): void {
  const { tables, state } = execution;
  chooser.begin();
  for (let queue = chooser.next(ready); queue !== null; queue = chooser.next(ready)) {
    if (step(execution, queue) !== "progress") ready.remove(queue);
  }
  const unfinished = tables.queues.some(
    ({ commands }, queue) => at(state, tables.layout.cursors + queue) < commands.length,
  );
  if (unfinished) throw new DiagnosticError([stuck(execution)]);
}

function createEager<Saved>(random: Random | null): Eager<Saved> {
  return {
    coin: random === null ? () => true : () => random.integer(2) === 1,
    released: new Set(),
    inputs: new Map(),
    sends: new Map(),
  };
}

function clearEager<Saved>(eager: Eager<Saved> | null): void {
  eager?.released.clear();
  eager?.inputs.clear();
  eager?.sends.clear();
}
