/**
 * Interleavings: the order in which the machine lets ready streams take their steps. Their text form on the command
 * line:
 *
 *   seed:7          any ready stream, by random numbers from seed 7
 *   hold:1:12       rank 1's command 12 completes only when nothing else can move
 *   0:2             one step of rank 0's stream 2, one line per step (or JSON: [[0, 2], [1, 0]]); # begins a comment.
 *   1:0             After the last line the default order continues. A transfer takes two steps: arrival and completion.
 *   eager           A line of its own: transfers are eager. Without it, a list has synchronous ones.
 *   reads:0         The caller of rank 0 reads its outputs here and not at the end of the run.
 *   writes:0        It writes its inputs here; until then they hold other bytes.
 *   overwrites:0    It writes the inputs of the next run here: other bytes.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { at, unreachable } from "../support/invariant.ts";
import { jsonText } from "../support/json-document.ts";
import { createRandom, type Random } from "../support/random.ts";
import { type Execution, hasArrived, type ReadyQueues } from "./execution.ts";
import { obstacleOf, obstacleText } from "./obstacle.ts";
import { commandAt, participantNumber } from "./tables.ts";

export interface StreamStep {
  readonly rank: number;
  readonly stream: number;
}

const callerActions = ["reads", "writes", "overwrites"] as const;
/**
 * What a rank's caller does in the middle of a run, without waiting for it: read its outputs, write its inputs, or
 * write the next run's.
 */
export type CallerAction = (typeof callerActions)[number];

export interface CallerStep {
  readonly rank: number;
  readonly caller: CallerAction;
}

export type InterleavingStep = StreamStep | CallerStep;

export type Interleaving =
  /** Streams in turn, each until it blocks. */
  | { readonly kind: "turns" }
  | { readonly kind: "seed"; readonly seed: number }
  | { readonly kind: "hold"; readonly rank: number; readonly command: number }
  | { readonly kind: "list"; readonly steps: readonly InterleavingStep[]; readonly eager?: boolean };

/**
 * The interleaving that a text describes: `seed:S`, `hold:RANK:COMMAND` or a list of steps. Throws
 * `interleaving-invalid`.
 */
export function parseInterleaving(text: string): Interleaving {
  const trimmed = text.trim();
  const seed = /^seed:(.*)$/u.exec(trimmed);
  if (seed !== null) return { kind: "seed", seed: seedNumber(seed[1] ?? "", trimmed) };
  const hold = /^hold:(.*)$/u.exec(trimmed);
  if (hold !== null) {
    const [rank, command] = pair(hold[1] ?? "") ?? malformed(trimmed, "hold:RANK:COMMAND, two whole numbers");
    return { kind: "hold", rank, command };
  }
  if (trimmed.startsWith("[")) return { kind: "list", steps: jsonSteps(trimmed) };
  const steps = trimmed.split(/\r?\n/u).flatMap((line, i): InterleavingStep[] => {
    const content = line.replace(/#.*$/u, "").trim();
    if (content === "" || content === eagerLine) return [];
    const caller = callerStep(content);
    if (caller !== null) return [caller];
    const [rank, stream] = pair(content) ?? malformed(`${content} (line ${i + 1})`, listExpectation);
    return [{ rank, stream }];
  });
  if (steps.length === 0) return malformed("no steps", listExpectation);
  return hasEagerLine(trimmed) ? { kind: "list", steps, eager: true } : { kind: "list", steps };
}

function callerStep(line: string): CallerStep | null {
  const [, word, digits = ""] = /^(\w+):(\d+)$/u.exec(line) ?? [];
  const caller = callerActions.find((action) => action === word);
  const rank = wholeNumber(digits);
  return caller === undefined || rank === null ? null : { rank, caller };
}

const eagerLine = "eager";

function hasEagerLine(text: string): boolean {
  return text.split(/\r?\n/u).some((line) => line.replace(/#.*$/u, "").trim() === eagerLine);
}

const listExpectation = "seed:S, hold:RANK:COMMAND, or one step RANK:STREAM per line";

const largestSeed = 2 ** 32 - 1;

function seedNumber(digits: string, text: string): number {
  const seed = wholeNumber(digits);
  return seed === null || seed > largestSeed ? malformed(text, `seed:S with S from 0 to ${largestSeed}`) : seed;
}

function pair(text: string): readonly [number, number] | null {
  const [first = "", second = "", ...rest] = text.split(":");
  const a = wholeNumber(first);
  const b = wholeNumber(second);
  return a === null || b === null || rest.length > 0 ? null : [a, b];
}

function wholeNumber(text: string): number | null {
  const value = Number(text);
  return /^\s*\d+\s*$/u.test(text) && Number.isSafeInteger(value) ? value : null;
}

function jsonSteps(text: string): readonly InterleavingStep[] {
  const expected = "a list of [RANK, STREAM] pairs";
  const list = parsed(text);
  if (!Array.isArray(list) || list.length === 0) return malformed("no list of steps", expected);
  return list.map((entry: unknown): InterleavingStep => {
    const numbers: readonly unknown[] = Array.isArray(entry) ? entry : [];
    const [rank, stream, ...rest] = numbers;
    const good = isIndex(rank) && isIndex(stream) && rest.length === 0;
    return good ? { rank, stream } : malformed(jsonText(entry), expected);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return malformed(error instanceof Error ? error.message : String(error), "valid JSON");
  }
}

function isIndex(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function malformed(found: string, expected: string): never {
  return fail("interleaving-invalid", "the interleaving is not understood", {
    place: { kind: "option", text: "interleaving" },
    found,
    expected,
    help: "write it like seed:7, hold:1:12, or a file with lines like 0:2",
  });
}

// Choosers: each kind of interleaving has one, which selects the ready queue that takes the next step. All are
// deterministic.

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
  fail("interleaving-invalid", `step ${step} of the interleaving cannot run`, {
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
