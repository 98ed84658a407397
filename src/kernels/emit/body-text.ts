/** The JavaScript text of what a nest computes and stores inside all its loops. */
import { emitJs } from "../../numerics/scalar/emit-js.ts";
import { operand } from "../../numerics/scalar/expression.ts";
import { at } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import { type Atom, lastNeeded } from "../nests/affine.ts";
import type { Access, Instruction, Nest } from "../nests/nest.ts";
import { elementText, loadText, storeText } from "./element-text.ts";
import type { Cursor } from "./emit-loops.ts";
import { affineText, atomName, product } from "./index-text.ts";

/** Computes every instruction into a separate constant, and the indices that follow from it. */
export function bodyText(nest: Nest, cursor: Cursor, keepsLast = nest.reduction !== null): readonly string[] {
  const last = nest.body.length - 1;
  return [
    ...atomsText(nest.atoms, -1),
    ...nest.body.flatMap((instruction, i) =>
      // storeBody stores the last instruction directly, without a constant.
      i === last && !keepsLast
        ? []
        : [`const ${nameOf(i)} = ${valueText(nest, instruction, cursor)};`, ...atomsText(nest.atoms, i)],
    ),
  ];
}

function valueText(nest: Nest, instruction: Instruction, cursor: Cursor): string {
  switch (instruction.kind) {
    case "load":
      return loadText(instruction.access.dtype, indexText(nest, instruction.access, cursor));
    case "index":
      return `BigInt(${affineText(instruction.index, nest.atoms)} + origins[${instruction.origin}])`;
    case "apply":
      return emitJs(instruction.expression, instruction.operands.map(nameOf));
    default:
      return unreachable(instruction);
  }
}

export function storeBody(nest: Nest, cursor: Cursor): string {
  const { dtype } = nest.target;
  const index = indexText(nest, nest.target, cursor);
  const last = at(nest.body, nest.body.length - 1);
  switch (last.kind) {
    case "load":
      // A plain copy moves the stored bits unchanged.
      return `${elementText(dtype, index)} = ${elementText(dtype, indexText(nest, last.access, cursor))};`;
    case "index":
      return storeText(dtype, index, operand("i64", 0), [valueText(nest, last, cursor)]);
    case "apply":
      return storeText(dtype, index, last.expression, last.operands.map(nameOf));
    default:
      return unreachable(last);
  }
}

/** The atoms that are known after instruction `after`; -1 for those that need none. */
function atomsText(atoms: readonly Atom[], after: number): readonly string[] {
  return atoms.flatMap((atom, i) => {
    if (atom.kind === "loop" || lastNeeded(atoms, i) !== after) return [];
    if (atom.kind === "loaded") return [`const ${atomName(i, atoms)} = ${nameOf(atom.instruction)};`];
    const dividend = affineText(atom.dividend, atoms);
    const text =
      atom.kind === "remainder" ? `(${dividend}) % ${atom.divisor}` : `Math.floor((${dividend}) / ${atom.divisor})`;
    return [`const ${atomName(i, atoms)} = ${text};`];
  });
}

/** The element index of an access inside all loops. */
export function indexText(nest: Nest, access: Access, cursor: Cursor): string {
  const divided = access.offset.terms.filter(({ atom }) => at(nest.atoms, atom).kind !== "loop");
  const terms = divided.map(({ atom, coefficient }) => product(atomName(atom, nest.atoms), coefficient));
  return [cursor.get(access)?.text, ...terms].join(" + ");
}

function nameOf(instruction: number): string {
  return `v${instruction}`;
}

export function lastName(nest: Nest): string {
  return nameOf(nest.body.length - 1);
}
