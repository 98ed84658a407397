/** All ops that are read, one row each. docs/import.md has a table of them. */
import { collectiveRows } from "./collectives.ts";
import { contractionRows } from "./contractions.ts";
import { controlRows } from "./control.ts";
import { convolutionRows } from "./convolution.ts";
import { elementwiseRows } from "./elementwise.ts";
import { indexingRows } from "./indexing.ts";
import { manualRows } from "./manual.ts";
import type { ReadRow } from "./reading.ts";
import { reductionRows } from "./reductions.ts";
import { shapeRows } from "./shape.ts";
import { shardyRows } from "./shardy.ts";
import { sliceRows } from "./slices.ts";
import { sortingRows } from "./sorting.ts";

/** @public The table of docs/import.md is made of it. */
export const opGroups: Readonly<Record<string, Readonly<Record<string, ReadRow>>>> = {
  Elementwise: elementwiseRows,
  Shapes: shapeRows,
  Contractions: { ...contractionRows, ...convolutionRows },
  Reductions: reductionRows,
  Indexing: { ...indexingRows, ...sliceRows, ...sortingRows },
  Control: controlRows,
  Shardings: { ...shardyRows, ...manualRows },
  "Collectives of manual computations": collectiveRows,
};

export const stablehloRows: ReadonlyMap<string, ReadRow> = new Map(
  Object.values(opGroups).flatMap((rows) => Object.entries(rows)),
);
