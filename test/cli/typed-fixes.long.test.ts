/**
 * Fixes of the command line, typed: the flags that a fix names are added, taken away or replaced, and the diagnostic is
 * gone.
 */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { cli } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const root = path.resolve(import.meta.dirname, "../..");
const mlp = path.join(root, "examples/mlp.ts");
const dump = path.join(root, "test/fixtures/dumps/e2-allgather.hir");

const folder = ownFolder();

/** Command lines that are refused with a fix that names a flag. */
const refused: readonly (readonly [what: string, asked: readonly string[]])[] = [
  ["a flag that does not exist", ["run", mlp, "--device", "4"]],
  ["a prediction without a profile", ["explain", mlp, "--devices", "2"]],
  ["a profile of GPUs for the CPU", ["explain", mlp, "--profile", "4xH200", "--on", "cpu"]],
  ["times of one thread", ["run", mlp, "--print", "explain", "--interleaving", "seed:1"]],
  ["a report without an explanation", ["run", mlp, "--report", "page.html"]],
  ["a check of a dump", ["run", dump, "--check", "--sizes", "i0=8,i2=8"]],
  ["a protocol of another back end", ["lower", mlp, "--schedule", "protocol=put", "--backend", "nccl"]],
  ["a form of another back end", ["lower", mlp, "--schedule", "p2p=linear", "--backend", "cuda"]],
  ["a rank that the run has not", ["lower", mlp, "--rank", "9", "--devices", "4"]],
  ["fewer devices than the mesh", ["run", path.join(root, "examples/nvfuser/allgather-matmul.ts"), "--devices", "0"]],
  ["hosts that devices do not fill", ["run", mlp, "--devices", "4", "--devices-per-host", "3"]],
  ["a size of no extent", ["run", mlp, "--sizes", "i0=8"]],
  ["a value of another kind", ["run", mlp, "--set", "M=many"]],
  ["a dump without sizes", ["verify", dump]],
  ["a flag that the command needs", ["compile", mlp, "--devices", "2"]],
];

interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly fix: string;
}

async function refusalOf(asked: readonly string[]): Promise<Refusal | null> {
  const { status, err } = await cli(...asked);
  if (status === 0 || !err.startsWith("error[")) return null;
  const [, code = "", message = ""] = /^error\[([^\]]+)\]: (.*)$/mu.exec(err) ?? [];
  const [, fix = ""] = /^ {2}fix: (.*)$/mu.exec(err) ?? [];
  return { code, message, fix };
}

/** The fix typed: one command line for each flag that it names. Throws for a flag that no reading types. */
function typed(asked: readonly string[], fix: string): readonly (readonly string[])[] {
  const meant = /did you mean (?<name>--[\w-]+)\?/u.exec(fix)?.groups?.["name"];
  if (meant !== undefined) return [asked.map((word) => (isNear(word, meant) ? meant : word))];
  const readings: readonly (readonly [RegExp, (flag: string, value: string | undefined) => readonly string[]])[] = [
    [/\b(?:remove|leave) (--[\w-]+)/gu, (flag) => without(asked, flag)],
    [/\b(?:add|or|pass|like|use|with) (--[\w-]+)(?: ([\w./=,]+))?/gu, (flag, value) => withFlag(asked, flag, value)],
    [/\((--[\w-]+)(?: (\w+))?\)/gu, (flag, value) => withFlag(asked, flag, value)],
  ];
  // Other commands, whose flags are checked below.
  const own = fix.replaceAll(/\bbraid [a-z]+(?: FILE)?(?: --?[\w-]+ [\w./]+)*/gu, "");
  const read = readings.flatMap(([pattern, type]) =>
    Array.from(own.matchAll(pattern), ([, flag = "", value]) => ({ flag, asked: type(flag, value) })),
  );
  const named = Array.from(own.matchAll(/--[\w-]+/gu), ([flag]) => flag);
  expect(read.map(({ flag }) => flag).sort()).toEqual(named.sort());
  return read.map((each) => each.asked);
}

function isNear(word: string, meant: string): boolean {
  return word.startsWith("--") && word !== meant && meant.startsWith(word.slice(0, 5));
}

function without(asked: readonly string[], flag: string): readonly string[] {
  const place = asked.indexOf(flag);
  const hasValue = !(asked[place + 1] ?? "--").startsWith("--");
  return asked.toSpliced(place, hasValue ? 2 : 1);
}

/** Words that stand for a value of the user's are files of the folder; a word of the sentence is no value. */
function withFlag(asked: readonly string[], flag: string, value: string | undefined): readonly string[] {
  const isWord = value !== undefined && /^(?:if|or|out|and|to|FILE)$/u.test(value);
  const given = isWord || value === undefined ? valueOf(flag) : [value.replace(/[,.]$/u, "")];
  const place = asked.indexOf(flag);
  if (place < 0) return [...asked, flag, ...given];
  return asked.toSpliced(place + 1, given.length, ...given);
}

/** For flags whose value the fix leaves to the user. */
function valueOf(flag: string): readonly string[] {
  const file = (name: string): readonly string[] => [path.join(folder.path, name)];
  switch (flag) {
    case "--out":
      return file("outputs");
    case "--trace":
      return file("trace.json");
    case "--reference":
      return [path.join(root, "examples/allgather.ts")];
    default:
      return [];
  }
}

describe("a fix of the command line", () => {
  it.each(refused)("of %s, typed, mends it", async (_, words) => {
    const asked = words.map((word) => (word === "page.html" ? path.join(folder.path, word) : word));
    const refusal = await refusalOf(asked);
    if (refusal === null) throw new Error("not refused");
    const lines = typed(asked, refusal.fix);
    expect(lines.length, refusal.fix).toBeGreaterThan(0);
    for (const line of lines) {
      const after = await refusalOf(line);
      const { code, message } = after ?? { code: null, message: null };
      expect({ code, message }, `${refusal.fix}: ${line.join(" ")}: ${after?.fix ?? ""}`).not.toEqual({
        code: refusal.code,
        message: refusal.message,
      });
    }
  });
});
