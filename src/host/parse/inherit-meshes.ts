/**
 * Dumps of 2025-04 print no mesh on slices. A slice is a view, so it lies where the tensor that it views lies; without a mesh it would
 * lie on device 0 alone.
 */
import type { Tensor } from "../../ir/domain.ts";
import { at } from "../../support/invariant.ts";
import type { HirAliasSelect, Statement } from "../nodes.ts";

/** Gives slices the meshes of what they view, if no slice has a mesh of its own. */
export function inheritMeshes(tensors: readonly Tensor[], statements: Iterable<Statement>): readonly Tensor[] {
  const slices = [...statements].filter(
    (statement): statement is HirAliasSelect => statement.kind === "HirAliasSelect",
  );
  if (slices.some(({ output }) => at(tensors, output).mesh !== null)) return tensors;
  const complete: Tensor[] = [...tensors];
  for (const { input, output } of slices)
    complete[output] = { ...at(complete, output), mesh: at(complete, input).mesh };
  return complete;
}
