/** A linked Program as text, one command per line in aligned columns, for people and for fixtures of tests. */
import { at } from "../support/invariant.ts";
import type { Arena, PlacedBuffer } from "./buffer.ts";
import { originText } from "./command.ts";
import { commandDetails, kernelText } from "./command-text.ts";
import type { Program, RankProgram, Slot } from "./program.ts";

export interface PrintProgramOptions {
  /** Which ranks; all if not given. */
  readonly ranks?: readonly number[];
  /** Whether each command shows the statement that it came from. */
  readonly origins?: boolean;
}

const arenas: readonly Arena[] = ["input", "output", "temporary", "symmetric"];

/**
 * A Program as text: kernels and slots, then each rank's arenas, streams, buffers and commands in list order. `b` is a
 * buffer, `k` a kernel, `t` a transfer, `e` an event of the rank. A command's stream follows its position.
 */
export function printProgram(program: Program, options: PrintProgramOptions = {}): string {
  const ranks = options.ranks ?? program.ranks.map(({ rank }) => rank);
  const sections = [
    section("kernels", table(program.kernels.map((kernel, id) => [`k${id}`, kernelText(kernel)]))),
    section("slots", table(program.slots.map(slotRow))),
    ...ranks.map((rank) => printRank(program, at(program.ranks, rank), options.origins ?? false)),
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;
}

function section(title: string, rows: readonly string[]): readonly string[] {
  return rows.length === 0 ? [] : [title, ...rows.map((row) => `  ${row}`)];
}

function slotRow({ id, signaller, waiter }: Slot): readonly string[] {
  return [`slot ${id}`, `rank ${signaller} signals rank ${waiter}`];
}

function printRank(program: Program, rank: RankProgram, origins: boolean): readonly string[] {
  const used = arenas.filter((arena) => rank.arenaBytes[arena] > 0);
  const sizes = used.map((arena) => `${arena} ${rank.arenaBytes[arena]} bytes`);
  const streams = rank.streams.map(({ id, name }) => `${id} ${name}`);
  const buffers = program.buffers.filter((buffer) => buffer.rank === rank.rank).map(bufferRow);
  const commands = rank.commands.map(({ kind, stream }, index) => [
    String(index),
    `s${stream}`,
    kind,
    commandDetails(rank, index),
    ...(origins ? [originText(at(rank.origins, index))] : []),
  ]);
  return section(`rank ${rank.rank}`, [
    ...section("memory", sizes),
    ...section("streams", streams),
    ...section("buffers", table(buffers)),
    ...section("commands", table(commands)),
  ]);
}

function bufferRow({ id, name, role, arena, offset, bytes, dtype, shape }: PlacedBuffer): readonly string[] {
  return [`b${id}`, name, role, `${dtype} [${shape.join(", ")}]`, `${bytes} bytes`, `at ${arena}+${offset}`];
}

/** Rows whose cells are padded to the widest of their column, without blanks at the end of a line. */
function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(at(widths, column)))
      .join("  ")
      .trimEnd(),
  );
}
