/**
 * The section of a dump that says what its index values are. Slice indices and peers print by name; a value without a
 * name gets the next free one, and equal values share it:
 *
 *   Index definitions:
 *     i82 = rank + streamIdx;
 *     i84 = i82 % 8;
 */
import type { IrSpelling } from "../../ir/print-style.ts";
import { printOperation, printScalar } from "../../ir/scalar/print.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import type { HostProgram, Statement } from "../nodes.ts";
import { definitionsTitle } from "../syntax/sections.ts";
import { walk } from "../traverse.ts";

export interface IndexDefinitions {
  /** The names of values that the program leaves without one. */
  readonly names: ReadonlyMap<Scalar, string>;
  /** The section's lines; none if no value has a name. */
  readonly lines: readonly string[];
}

export function indexDefinitionsOf({ body, scalarCount }: HostProgram, spelling: IrSpelling): IndexDefinitions {
  const names = new Map<Scalar, string>();
  const definitions = new Map<string, string>();
  const byText = new Map<string, string>();
  let count = scalarCount;
  const nameOf = (scalar: Scalar): string => {
    if (scalar.kind !== "binary") return printScalar(scalar, spelling);
    const text = printOperation(scalar, nameOf);
    const name = scalar.name ?? byText.get(text) ?? `i${count++}`;
    if (scalar.name === undefined) {
      names.set(scalar, name);
      byText.set(text, name);
    }
    definitions.set(name, text);
    return name;
  };
  for (const statement of walk(body)) indicesOf(statement).forEach(nameOf);
  const number = (name: string): number => Number(name.replace(/^\D+/u, ""));
  const sorted = [...definitions].sort(([a], [b]) => number(a) - number(b));
  const lines = sorted.map(([name, text]) => `  ${name} = ${text};`);
  return { names, lines: lines.length === 0 ? [] : [definitionsTitle, ...lines] };
}

/** The values of a statement that print by name. */
function indicesOf(statement: Statement): readonly Scalar[] {
  switch (statement.kind) {
    case "HirAliasSelect":
    case "Select":
      return [statement.index];
    case "P2PCommunication":
      return [statement.peer];
    case "Communication":
      return statement.root === null ? [] : [statement.root];
    case "ShareMemHandles":
      return statement.communications.map(({ peer }) => peer);
    default:
      return [];
  }
}
