/** The tables of a program, complete or growing, that fields need to print and parse. */
import type { TensorId } from "../../ir/domain.ts";
import { type DumpStyle, type IrSpelling, irSpellings, printScalarName, type Scalar } from "../../ir/scalar/scalar.ts";
import type { HostProgram } from "../nodes.ts";
import type { DumpScanner } from "./text/scanner.ts";
import type { Names, StreamTable } from "./values/names.ts";
import type { TensorTable } from "./values/tensor-table.ts";

export interface PrintContext {
  readonly program: Pick<HostProgram, "tensors" | "streams">;
  readonly style: DumpStyle;
  readonly spelling: IrSpelling;
  /** Tensors that print no mesh: in style 2025-04 those that HirAliasSelect binds. */
  readonly withoutMesh: ReadonlySet<TensorId>;
  /** Tensors that print their axes of devices first: in style 2025-05 those that ops read and write. */
  readonly devicesFirst: ReadonlySet<TensorId>;
  /** The text of a slice index, peer or root: its name, if definitions follow or it came with one. */
  readonly indexText: (value: Scalar) => string;
}

/** Prints every tensor with its mesh and in its own order, and index values by the names that they have. */
export function plainContext(program: PrintContext["program"], style: DumpStyle): PrintContext {
  const spelling = irSpellings[style];
  return {
    program,
    style,
    spelling,
    withoutMesh: new Set(),
    devicesFirst: new Set(),
    indexText: (value) => printScalarName(value, spelling),
  };
}

/** A container during one call of `parse`. */
export interface ReadContext {
  readonly scanner: DumpScanner;
  readonly tensors: TensorTable;
  readonly streams: StreamTable;
  readonly names: Names;
  /** The numbers of the posted units, with the position of the first post. */
  readonly posted: Map<number, number>;
  /** The next free number of a communication. */
  exprCount: number;
  /** Whether a constant root is a device id, as before 2026, or a position in the team. */
  readonly rootsAreDevices: boolean;
  /** The numbers of groups that print none (statements/statement-fields.ts); null until the first such group. */
  groupNumbers: ReadonlyMap<number, number> | null;
}
