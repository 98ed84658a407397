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
import { jsonText } from "../support/json-text.ts";

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
  return fail({
    code: "interleaving-invalid",
    message: "the interleaving is not understood",
    place: { kind: "option", text: "interleaving" },
    found,
    expected,
    help: "write it like seed:7, hold:1:12, or a file with lines like 0:2",
  });
}
