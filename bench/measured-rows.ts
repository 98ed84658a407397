/** Reads the rows of Braid's implementations from a CSV of `braid bench`, so that they can be planned again. */
import { readFileSync } from "node:fs";
import { type DType, dtypes } from "../src/numerics/dtype.ts";
import { isOneOf, keysOf } from "../src/support/invariant.ts";
import { blockCuts, blockPasses, type BlockProblem } from "./compare/block/block-problem.ts";
import { modelNames } from "./compare/block/models.ts";
import { type Implementation, parseImplementations } from "./compare/implementation.ts";
import { primitives, type Problem } from "./compare/primitives.ts";

export interface MeasuredRow<P = Problem> {
  readonly problem: P;
  readonly implementation: Extract<Implementation, { readonly kind: "braid" }>;
  /** The implementation as text for `--impl`. */
  readonly text: string;
  /** The median time. */
  readonly milliseconds: number;
  /** The reason for its schedule, if it was chosen. */
  readonly note: string;
}

/** In the order of the file, without PyTorch's rows, published rows, failed rows and communication alone. */
export function measuredRows(file: string): readonly MeasuredRow[] {
  return ownRows(file).filter(({ implementation }) => implementation.name !== "communication-only");
}

/** The same with communication alone. */
export function ownRows(file: string): readonly MeasuredRow[] {
  return rowsOfProblems(file, problemOf);
}

/** As `measuredRows`, of transformer blocks. */
export function measuredBlocks(file: string): readonly MeasuredRow<BlockProblem>[] {
  return rowsOfProblems(file, blockOf).filter(({ implementation }) => implementation.name !== "communication-only");
}

type Row = ReadonlyMap<string, string>;

function rowsOfProblems<P>(file: string, problemOfRow: (row: Row) => P | null): readonly MeasuredRow<P>[] {
  return rowsOf(readFileSync(file, "utf8")).flatMap((row) => {
    const problem = isOwn(row) ? problemOfRow(row) : null;
    const milliseconds = Number(row.get("median_time (ms)"));
    if (problem === null || !(milliseconds > 0) || goneRewrites.test(row.get("option") ?? "")) return [];
    const name = row.get("implementation")?.split(" ", 1).join("") ?? "";
    const options = (row.get("option") ?? "").split(", ").filter((part) => part !== "");
    const text = [name, ...options].join(";");
    const [implementation] = parseImplementations(text, file);
    if (implementation?.kind !== "braid") return [];
    return [{ problem, implementation, text, milliseconds, note: row.get("note") ?? "" }];
  });
}

/** Rewrites of committed rows that Braid no longer has. */
const goneRewrites = /\b(?:mergeGemms|mergeProducts|earlySums|kernelCopies)=/;

export function sizeText({ m, n, k }: Problem): string {
  return `m ${m} n ${n} k ${k}`;
}

/** Whether the row is a measurement of Braid. */
function isOwn(row: Row): boolean {
  return (
    row.get("source") === "measured" &&
    /^(?:braid|serial|compute-only|communication-only)\b/.test(row.get("implementation") ?? "")
  );
}

/** Null for a row of a block. */
function problemOf(row: Row): Problem | null {
  const [primitive, dtype] = [row.get("primitive") ?? "", row.get("dtype") ?? ""];
  if (!isOneOf(primitives, primitive) || !isOneOf<DType>(keysOf(dtypes), dtype)) return null;
  const number = (column: string): number => Number(row.get(column));
  return { primitive, dtype, m: number("m"), n: number("n"), k: number("k"), devices: number("world_size") };
}

/** Null for a row of a primitive. */
function blockOf(row: Row): BlockProblem | null {
  const [model, cut, pass, dtype] = ["model", "cut", "pass", "dtype"].map((column) => row.get(column) ?? "");
  if (row.get("primitive") !== "block") return null;
  if (!isOneOf(modelNames, model) || !isOneOf(blockCuts, cut) || !isOneOf(blockPasses, pass)) return null;
  if (!isOneOf<DType>(keysOf(dtypes), dtype)) return null;
  return { primitive: "block", model, cut, pass, dtype, devices: Number(row.get("world_size")) };
}

function rowsOf(text: string): readonly Row[] {
  const [head = [], ...rows] = text.trim().split("\n").map(fieldsOf);
  return rows.map((fields) => new Map(head.map((name, i) => [name, fields[i] ?? ""])));
}

/** A quoted field may contain commas. */
function fieldsOf(line: string): readonly string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain = ""]) => quoted?.replaceAll('""', '"') ?? plain,
  );
}
