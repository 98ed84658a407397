/** Compares the proof by class with that of every rank. */
import type { CommandList, Program } from "@braid-compiler/braid";
import { proveByClasses } from "../../../src/verify/classes/prove-classes.ts";
import { createRandom } from "../../../src/support/random.ts";
import { verify } from "../../../src/verify/verify.ts";
import { mutateAlike } from "./mutate-alike.ts";

export type ProofCounts = { [K in ProofOutcome]: number };

/** `classes`: right, and proven by class. `ranks`: right, and the proof by class says nothing. */
export type ProofOutcome = "classes" | "ranks" | "wrong";

/** Throws if the proof by class holds of a Program that is wrong, has notes, or is of another size. */
export function compareProofs(program: Program): ProofOutcome {
  const { ok, findings, size } = verify(program, { full: true, counterexamples: false });
  const proofs = [true, false].map((notes) => {
    const proof = proveByClasses(program, notes);
    if (proof === null) return null;
    const found = findings.filter(({ severity }) => notes || severity !== "note");
    if (found.length > 0)
      throw new Error(`proven by class in spite of ${found.map(({ message }) => message).join(", ")}`);
    const { streams, regions } = proof;
    if (streams !== size.streams || regions !== size.regions) {
      throw new Error(`${streams} streams and ${regions} regions by class, of ${JSON.stringify(size)}`);
    }
    return proof;
  });
  if (!ok) return "wrong";
  return proofs[1] === null ? "ranks" : "classes";
}

/** Changes each program `rounds` times on all ranks, and as often on one. Throws where the proofs differ. */
export function compareMutants(
  programs: readonly { readonly name: string; readonly lists: readonly CommandList[] }[],
  rounds: number,
  seed = 7,
): ProofCounts {
  const random = createRandom(seed);
  const counts: ProofCounts = { classes: 0, ranks: 0, wrong: 0 };
  for (const { name, lists } of programs) {
    for (let i = 0; i < 2 * rounds; i++) {
      const mutant = mutateAlike(lists, random, i % 2 === 0 ? null : random.integer(lists.length));
      if (mutant === null) continue;
      try {
        counts[compareProofs(mutant)]++;
      } catch (error) {
        throw new Error(`${name}, seed ${seed}, change ${i}`, { cause: error });
      }
    }
  }
  return counts;
}
