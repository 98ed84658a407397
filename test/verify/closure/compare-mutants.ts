/**
 * The verifier beside the closure on random mutants of small linked Programs, a third of them changed twice, and on
 * half as many Programs made up at random. A quarter of the Programs that are changed has buffers that share bytes.
 */
import { HostProgramBuilder, link, type Program, record } from "@braid-compiler/braid";
import { at } from "../../../src/support/invariant.ts";
import { createRandom, type Random } from "../../../src/support/random.ts";
import { randomProgram } from "../judge/random-program.ts";
import { compareVerdict } from "../mutants/compare.ts";
import { changes, mutateProgram } from "../mutants/mutate-program.ts";
import { smallPrograms } from "../mutants/programs.ts";
import { rewritten } from "../mutants/rewritten.ts";
import { tenancies } from "../mutants/tenancies.ts";
import { type ClosureVerdict, decideByClosure } from "./closure.ts";

/** The closure's time grows with the square of the commands. */
const mostCommands = 70;

export interface Tally {
  /** How many mutants have each kind of verdict. */
  readonly counts: ReadonlyMap<keyof ClosureVerdict, number>;
  readonly disagreements: readonly string[];
}

export async function compareWithClosure(count: number, seed: number): Promise<Tally> {
  const random = createRandom(seed);
  const programs = await startingPrograms(random);
  const counts = new Map<keyof ClosureVerdict, number>();
  const disagreements: string[] = [];
  /** `isExact`: which signal a wait takes is known where the slots are overrun, as in lists that were recorded. */
  const compare = (name: string, program: Program, isExact: boolean): void => {
    const verdict = decideByClosure(program);
    const isKnown = isExact || !(verdict.overrun || verdict.deadlock);
    const codes = isKnown ? codesOf(verdict) : { "program-malformed": false };
    const { disagreement } = compareVerdict(program, verdict, codes, isKnown && !verdict.unknownEvent);
    if (disagreement !== null) disagreements.push(`${name}: ${disagreement}`);
    for (const [kind, isFound] of kindsOf(verdict)) if (isFound) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  };
  for (let n = 0; n < count;) {
    const { name, program } =
      n % 4 === 0
        ? { name: "tenancies", program: tenancies(random, 2 + random.integer(3)) }
        : at(programs, random.integer(programs.length));
    const once = mutateProgram(program, at(changes, random.integer(changes.length)), random);
    if (once === null) continue;
    const twice = n % 3 === 0 ? mutateProgram(once.program, at(changes, random.integer(changes.length)), random) : null;
    n++;
    compare(`${name}; ${once.what}, ${twice?.what ?? ""}`, (twice ?? once).program, true);
    // No lowering makes peers' copies and collectives of one buffer.
    if (n % 2 === 0) compare(`random program ${n}`, randomProgram(random, 4 + random.integer(12)), false);
  }
  return { counts, disagreements };
}

/** A GEMM in three chunks, two of which add to the output. */
function accumulated(): Program {
  const h = new HostProgramBuilder();
  const [a, b] = [h.input([3, 2, 3]), h.input([3, 3, 4])];
  const c = h.tensor([2, 4, { reduced: 9 }]);
  h.output(c);
  h.allocate(c);
  for (let s = 0; s < 3; s++) h.matmul(h.select(a, 0, s), h.select(b, 0, s), { out: c, accumulate: s > 0 });
  return link([record(h.build(), { rank: 0 })]);
}

/** Small programs as they are linked, and under a random schedule. */
async function startingPrograms(
  random: Random,
): Promise<readonly { readonly name: string; readonly program: Program }[]> {
  const small = (await Promise.all([smallPrograms(2, 2), smallPrograms(2, 3), smallPrograms(3, 2)])).flat();
  const made = { name: "accumulated", program: accumulated() };
  return small
    .flatMap(({ name, lists }) => {
      const program = link(lists);
      return [
        { name, program },
        { name: `${name}, rewritten`, program: rewritten(program, random) },
      ];
    })
    .filter(({ program }) => program.ranks.reduce((sum, { commands }) => sum + commands.length, 0) <= mostCommands)
    .concat(made);
}

/** The codes that the verifier must report, or not. Those that a mistake before them hides are left out. */
function codesOf(verdict: ClosureVerdict): Readonly<Record<string, boolean>> {
  const { deadlock, unbalanced, unknownEvent, lateEvent, races, overrun, lifetime, uninitialised } = verdict;
  const isOrdered = !deadlock && !unbalanced && !unknownEvent;
  const hasContents = isOrdered && races.length === 0 && !overrun && !lifetime;
  return {
    "program-malformed": false,
    ...(unbalanced || unknownEvent ? {} : { deadlock, "event-not-recorded": lateEvent }),
    ...(unknownEvent ? {} : { "signal-unbalanced": unbalanced }),
    ...(hasContents ? { "unwritten-read": uninitialised } : {}),
  };
}

function kindsOf({ races, ...verdict }: ClosureVerdict): readonly (readonly [keyof ClosureVerdict, boolean])[] {
  return [
    ["ok", verdict.ok],
    ["deadlock", verdict.deadlock],
    ["needsConcurrency", verdict.needsConcurrency],
    ["overrun", verdict.overrun],
    ["races", races.length > 0],
    ["uninitialised", verdict.uninitialised],
    ["lifetime", verdict.lifetime],
    ["unbalanced", verdict.unbalanced],
    ["unknownEvent", verdict.unknownEvent],
    ["lateEvent", verdict.lateEvent],
    ["operands", verdict.operands],
  ];
}
