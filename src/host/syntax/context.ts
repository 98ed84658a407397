/** The tables of a program, complete or growing, that fields need to print and parse. */
import type { TensorId } from "../../ir/domain.ts";
import type { IrSpelling } from "../../ir/print-style.ts";
import type { HostProgram } from "../nodes.ts";
import type { Names } from "./values/names.ts";
import type { Scanner } from "./text/scanner.ts";
import type { StreamTable } from "./values/stream-table.ts";
import type { TensorTable } from "./values/tensor-table.ts";

export interface PrintContext {
  readonly program: Pick<HostProgram, "tensors" | "streams">;
  readonly spelling: IrSpelling;
  /** Tensors that print no mesh: in style 2025-04 those that HirAliasSelect binds. */
  readonly withoutMesh: ReadonlySet<TensorId>;
  /** Tensors that print their axes of devices first: in style 2025-05 those that ops read and write. */
  readonly devicesFirst: ReadonlySet<TensorId>;
}

/** A container during one call of `parse`. */
export interface ReadContext {
  readonly scanner: Scanner;
  readonly tensors: TensorTable;
  readonly streams: StreamTable;
  readonly names: Names;
  /** The numbers of the posted units, with the position of the first post. */
  readonly posted: Map<number, number>;
  /** The next free number of a communication. */
  exprCount: number;
  /** Whether a constant root is a device id, as before 2026, or a position in the team. */
  readonly rootsAreDevices: boolean;
  /** The numbers of groups that print none (coalescing-numbers.ts); null until the first such group. */
  groupNumbers: ReadonlyMap<number, number> | null;
}
