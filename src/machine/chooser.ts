/**
 * Choosers: each kind of interleaving has one, which selects the ready queue that takes the next step. All are
 * deterministic.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { at } from "../support/invariant.ts";
import { createRandom, type Random } from "../support/random.ts";
import { unreachable } from "../support/unreachable.ts";
import { type Execution, hasArrived } from "./execution.ts";
import { obstacleOf, obstacleText } from "./obstacle.ts";
import type { ReadyQueues } from "./ready-queues.ts";
import type { CallerStep, Interleaving, InterleavingStep } from "./interleaving.ts";
import { commandAt, participantNumber } from "./tables.ts";

export interface Chooser {
  /** A run begins. */
  begin(): void;
  /** The queue to step, which may turn out to be blocked; null if none is ready. */
  next(ready: ReadyQueues): number | null;
}

/** Throws `interleaving-invalid` if the interleaving names a rank, stream or command that the Program does not have. */
export function createChooser<Saved>(
  execution: Execution<Saved>,
  interleaving: Interleaving,
  random: Random | null,
  caller: (step: CallerStep) => void,
): Chooser {
  switch (interleaving.kind) {
    case "turns":
      return inTurns();
    case "seed":
      return atRandom(random ?? createRandom(interleaving.seed));
    case "hold":
      return holding(execution, interleaving.rank, interleaving.command);
    case "list":
      return listed(execution, interleaving.steps, caller);
    default:
      return unreachable(interleaving);
  }
}

/** Round-robin over the queues, each until it blocks. */
function inTurns(): Chooser {
  let current = 0;
  return {
    begin: () => {
      current = 0;
    },
    next: (ready) => {
      if (ready.isEmpty()) return null;
      current = ready.from(current);
      return current;
    },
  };
}

function atRandom(random: Random): Chooser {
  return { begin: () => {}, next: (ready) => (ready.isEmpty() ? null : ready.random(random)) };
}

/** Round-robin, but one command completes only when nothing else can proceed. A held transfer still arrives. */
function holding<Saved>(execution: Execution<Saved>, rank: number, command: number): Chooser {
  const { tables, state } = execution;
  const held = heldPlace(execution, rank, command);
  const turns = inTurns();
  let released = false;
  const waits = (): boolean => {
    if (released || at(state, tables.layout.cursors + held.queue) !== held.position) return false;
    if (commandAt(tables, rank, command).kind !== "transfer") return true;
    return hasArrived(execution, participantNumber(tables, rank, command));
  };
  return {
    begin: () => {
      turns.begin();
      released = false;
    },
    next: (ready) => {
      if (waits()) {
        ready.remove(held.queue);
        if (ready.isEmpty()) {
          released = true;
          ready.add(held.queue);
          return held.queue;
        }
      }
      return turns.next(ready);
    },
  };
}

interface HeldPlace {
  readonly queue: number;
  /** Its position in the queue. */
  readonly position: number;
}

function heldPlace<Saved>({ tables }: Execution<Saved>, rank: number, command: number): HeldPlace {
  const ranks = tables.program.ranks;
  const list = ranks[rank] ?? unknown(`rank ${rank}`, `ranks 0 to ${ranks.length - 1}`);
  const { stream } =
    list.commands[command] ??
    unknown(`command ${command} of rank ${rank}`, `commands 0 to ${list.commands.length - 1} of rank ${rank}`);
  const queue = at(at(tables.queueOf, rank), stream);
  return { queue, position: at(tables.queues, queue).commands.indexOf(command) };
}

/** The steps of a list, each of which must be possible; then round-robin. */
function listed<Saved>(
  execution: Execution<Saved>,
  steps: readonly InterleavingStep[],
  caller: (step: CallerStep) => void,
): Chooser {
  const { tables, state } = execution;
  const queues = steps.map((step) => {
    const { rank } = step;
    const streams = tables.queueOf[rank] ?? unknown(`rank ${rank}`, `ranks 0 to ${tables.queueOf.length - 1}`);
    if ("caller" in step) return null;
    const { stream } = step;
    return (
      streams[stream] ??
      unknown(`stream ${stream} of rank ${rank}`, `streams 0 to ${streams.length - 1} of rank ${rank}`)
    );
  });
  const turns = inTurns();
  let position = 0;
  return {
    begin: () => {
      turns.begin();
      position = 0;
    },
    next: (ready) => {
      for (let step = steps[position]; step !== undefined && "caller" in step; step = steps[position]) {
        position++;
        caller(step);
      }
      const step = steps[position];
      const queue = queues[position] ?? null;
      if (step === undefined || "caller" in step || queue === null) return turns.next(ready);
      const { rank, stream } = step;
      position++;
      const obstacle = obstacleOf(execution, queue);
      if (obstacle !== null) impossible(position, rank, stream, obstacleText(tables, obstacle));
      if (at(state, tables.layout.cursors + queue) === at(tables.queues, queue).commands.length) {
        impossible(position, rank, stream, "has no commands left");
      }
      ready.add(queue);
      return queue;
    },
  };
}

function impossible(step: number, rank: number, stream: number, why: string): never {
  fail({
    code: "interleaving-invalid",
    message: `step ${step} of the interleaving cannot run`,
    place: { kind: "option", text: `interleaving, step ${step}: ${rank}:${stream}` },
    found: `rank ${rank}, stream ${stream} ${why}`,
    expected: "a stream whose next command can run",
    help: "move the step after the steps that it waits for, or remove it",
  });
}

function unknown(found: string, expected: string): never {
  return fail({
    code: "interleaving-invalid",
    message: "the interleaving names a rank, stream or command that the program does not have",
    place: { kind: "option", text: "interleaving" },
    found,
    expected,
    help: "name a rank, stream and command of the linked program",
  });
}
