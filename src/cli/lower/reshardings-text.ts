/** The table of `braid lower --print reshardings`. */
import Table from "cli-table3";
import type { Options } from "../../compile/options.ts";
import { reshardings } from "../../compile/reshardings.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { type Resharding, reshardingCells, reshardingColumns } from "../../passes/moves/list-reshardings.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import type { BuiltProgram } from "../program/built-program.ts";
import { plainBorders, trimmedLines } from "../terminal/table-style.ts";

export function reshardingsText(
  file: string,
  { source }: Pick<BuiltProgram, "source">,
  options: Partial<LoweringOptions>,
  { sizes, json }: Options<"sizes" | "json">,
): string {
  if (!("data" in source)) {
    return fail("option-value", "a host program has its communications already", {
      place: { kind: "option", text: "--print reshardings" },
      found: file,
      expected: "a program file that builds a Fusion",
      help: "remove --print reshardings",
    });
  }
  const found = reshardings(source, { ...options, sizes });
  if (json) return `${JSON.stringify({ file, reshardings: found }, undefined, 2)}\n`;
  return `${reshardingLines(found).join("\n")}\n`;
}

/** What moves between devices, and why, in at most `most` rows; empty if nothing moves, and for host programs. */
export function communicationLines(
  found: readonly Resharding[] | null,
  most: number,
  besideDump = false,
): readonly string[] {
  if (found === null || found.length === 0) return [];
  const more = found.length - most;
  return [
    ...reshardingLines(found.slice(0, most), besideDump),
    ...(more > 0 ? [`and ${more} more: braid lower --print reshardings`, ...hintLines(found.slice(most))] : []),
  ];
}

/** What `braid lower` says beside its output: the hints, and for a person the table too. */
export function communicationNotes(found: readonly Resharding[], isWatched: boolean): readonly string[] {
  return isWatched ? communicationLines(found, mostRows, true) : hintLines(found);
}

/** Programs with more have a line that says how many more. */
const mostRows = 5;

/** The table with its hints, or one line if nothing moves. */
function reshardingLines(found: readonly Resharding[], besideDump = false): readonly string[] {
  if (found.length === 0) return ["nothing moves between devices"];
  const table = new Table({ ...plainBorders, head: [...reshardingColumns] });
  for (const each of found) table.push([...reshardingCells(each, besideDump)]);
  return [...trimmedLines(table.toString()), ...hintLines(found)];
}

function hintLines(found: readonly Resharding[]): readonly string[] {
  return found.flatMap(({ hint }) => (hint === undefined ? [] : [`hint: ${hint}`]));
}
