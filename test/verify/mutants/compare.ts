/** The verifier's verdict on a mutant beside the judge's, or another one's. */
import { type CommandList, DiagnosticError, link, type Program } from "@braid-compiler/braid";
import { verify } from "../../../src/verify/verify.ts";
import { judge, type Verdict } from "../judge/judge.ts";
import { type Change, type MutatedKind, type Mutant, mutants } from "./mutate.ts";
import type { SmallProgram } from "./programs.ts";

/** malformed: link refuses the lists. right: the change does no harm. */
export type Outcome = "malformed" | "wrong" | "right";

export interface Comparison {
  readonly outcome: Outcome;
  /** The difference between the two verdicts; null if they agree. */
  readonly disagreement: string | null;
}

/** Findings of memory that some order of commands spoils. */
const raceCodes: ReadonlySet<string> = new Set([
  "data-race",
  "transfer-not-waited",
  "used-before-alloc",
  "used-after-free",
  "freed-in-use",
  "freed-twice",
  "memory-shared",
]);

export function compare(lists: readonly CommandList[]): Comparison {
  let program;
  try {
    program = link(lists);
  } catch (error) {
    if (error instanceof DiagnosticError) return { outcome: "malformed", disagreement: null };
    throw error;
  }
  return compareProgram(program);
}

export function compareProgram(program: Program): Comparison {
  return compareVerdict(program, judge(program), {});
}

/** `kinds`: more codes of findings, each with whether the verdict has it. `isSettled`: whether the commands can run. */
export function compareVerdict(
  program: Program,
  verdict: Verdict,
  kinds: Readonly<Record<string, boolean>>,
  isSettled = true,
): Comparison {
  const { ok, findings } = verify(program, { counterexamples: false });
  // Pairs of ranks that must run at once are only a warning of the verifier.
  const codes = new Set<string>(
    findings.flatMap(({ code, severity }) => (severity === "error" || code === "needs-concurrency" ? [code] : [])),
  );
  // Commands after a deadlock are never reached. After an overrun, or with signals that no wait takes, the result
  // depends on the order.
  const settled = isSettled && !verdict.deadlock && !verdict.unbalanced;
  // Lifetimes that an order breaks have the codes of those that break in every order. Bytes outside of a buffer are
  // compared with nothing.
  const tellsRaces = settled && !verdict.overrun && !verdict.lifetime && !codes.has("outside-buffer");
  const said = {
    ok: ok && !codes.has("needs-concurrency"),
    needsConcurrency: settled && codes.has("needs-concurrency"),
    overrun: settled && codes.has("slot-overrun"),
    races: tellsRaces && [...codes].some((code) => raceCodes.has(code)),
    ...Object.fromEntries(Object.keys(kinds).map((code) => [code, codes.has(code)])),
  };
  const expected = {
    ok: verdict.ok,
    needsConcurrency: settled && verdict.needsConcurrency,
    overrun: settled && verdict.overrun,
    races: tellsRaces && verdict.races.length > 0,
    ...kinds,
  };
  const agree = JSON.stringify(said) === JSON.stringify(expected);
  return {
    outcome: verdict.ok ? "right" : "wrong",
    disagreement: agree
      ? null
      : `verifier ${JSON.stringify(said)} by ${[...codes].join(", ")}; expected ${JSON.stringify(expected)}`,
  };
}

export type Counts = Map<string, { [K in Outcome]: number }>;

export interface Tally {
  /** By kind and change. */
  readonly counts: Counts;
  readonly disagreements: readonly string[];
}

/** Compares every `step`-th mutant of the programs, from `first` on. */
export function compareMutants(programs: readonly SmallProgram[], step = 1, first = 0): Tally {
  const counts: Counts = new Map();
  const disagreements: string[] = [];
  let number = 0;
  for (const { name, lists } of programs) {
    for (const mutant of mutants(lists)) {
      if (number++ % step !== first % step) continue;
      const { outcome, disagreement } = compare(mutant.lists);
      const row = counts.get(rowName(mutant)) ?? { malformed: 0, wrong: 0, right: 0 };
      row[outcome]++;
      counts.set(rowName(mutant), row);
      if (disagreement !== null) disagreements.push(`${name}; ${mutant.what}: ${disagreement}`);
    }
  }
  return { counts, disagreements };
}

function rowName({ kind, change }: Pick<Mutant, "kind" | "change">): `${MutatedKind} ${Change}` {
  return `${kind} ${change}`;
}
