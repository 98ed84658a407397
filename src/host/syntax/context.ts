/** What the fields of statements are printed with, and what they are read into. */
import type { TensorId } from "../../ir/domain.ts";
import type { IrSpelling } from "../../ir/print-style.ts";
import type { HostProgram } from "../nodes.ts";
import type { Names } from "./names.ts";
import type { Scanner } from "./scanner.ts";
import type { StreamTable } from "./stream-table.ts";
import type { TensorTable } from "./tensor-table.ts";

export interface PrintContext {
  readonly program: Pick<HostProgram, "tensors" | "streams">;
  readonly spelling: IrSpelling;
  /** Whether slices print their mesh: not before 2025-05. */
  readonly sliceMeshes: boolean;
  /** Tensors bound by HirAliasSelect. */
  readonly slices: ReadonlySet<TensorId>;
}

/** A container that is being read: the scanner, and the tables that grow. It lives for one call of `parse`. */
export interface ReadContext {
  readonly scanner: Scanner;
  readonly tensors: TensorTable;
  readonly streams: StreamTable;
  readonly names: Names;
  /** The numbers of posted units, with the position of the first post. */
  readonly posted: Map<number, number>;
  /** The next free number of a communication. */
  exprCount: number;
  /** Whether a constant root is a device id, as before 2026, or a position in the team. */
  readonly rootsAreDevices: boolean;
  /** Numbers of groups that print none, found when the first such group is met. */
  groupNumbers: ReadonlyMap<number, number> | null;
}
