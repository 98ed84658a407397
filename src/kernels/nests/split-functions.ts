/** Makes instructions of what the expressions of a nest use several times (numerics/scalar/split-shared.ts). */
import { isWhole, splitShared } from "../../numerics/scalar/split-shared.ts";
import { at } from "../../support/invariant.ts";
import type { Instruction, Nest } from "./nest.ts";

export function splitFunctions(nest: Nest): Nest {
  if (nest.body.every((step) => step.kind !== "apply" || isWhole(step.expression))) return nest;
  const body: Instruction[] = [];
  const positions: number[] = [];
  const moved = (instruction: number): number => at(positions, instruction);
  for (const step of nest.body) {
    positions.push(
      step.kind === "apply"
        ? splitShared(step.expression, step.operands.map(moved), (expression, ...operands) => {
            return body.push({ kind: "apply", expression, operands }) - 1;
          })
        : body.push(step) - 1,
    );
  }
  const atoms = nest.atoms.map((atom) =>
    atom.kind === "loaded" ? { ...atom, instruction: moved(atom.instruction) } : atom,
  );
  return { ...nest, atoms, body };
}
