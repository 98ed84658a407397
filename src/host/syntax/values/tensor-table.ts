/**
 * The tensors of one container or kernel, in the order of the text. A dump prints a tensor the same way wherever it is
 * used, so the tensor is parsed once and then found by its text.
 */
import type { DeviceMesh } from "../../../ir/device-mesh.ts";
import { type IterDomain, plainDomain, type Tensor, type TensorId } from "../../../ir/domain.ts";
import type { Scalar } from "../../../ir/scalar/scalar.ts";
import { makeId } from "../../../support/invariant.ts";
import type { SplitReading } from "./split-axes.ts";
import type { DomainNotes } from "./domain-notes.ts";
import { failAt, type DumpSource } from "../text/source.ts";

export interface TensorTable {
  readonly byText: Map<string, Tensor>;
  readonly byNumber: Map<number, Met>;
  /** Every axis with the number of its tensor. */
  readonly axes: Map<number, { readonly axis: IterDomain; readonly tensor: number }>;
  /** The names of symbolic extents. */
  readonly symbols: Set<string>;
  /** By text, because most tensors share a few meshes. */
  readonly meshes: Map<string, DeviceMesh>;
  readonly notes: DomainNotes;
  /** For tensors that have the memory of another the number of that one. */
  readonly aliases: ReadonlyMap<number, number>;
  /** Null where no axis is split that the dump does not explain. */
  readonly splits: SplitReading | null;
}

interface Met {
  readonly tensor: Tensor;
  readonly text: string;
}

/** Numbers are indices into tables, so one large number would make a large table. */
export const largestNumber = 65_535;

export function createTensorTable(
  notes: DomainNotes,
  meshes: TensorTable["meshes"] = new Map(),
  aliases: TensorTable["aliases"] = new Map(),
  splits: SplitReading | null = null,
): TensorTable {
  return {
    byText: new Map(),
    byNumber: new Map(),
    axes: new Map(),
    symbols: new Set(),
    meshes,
    notes,
    aliases,
    splits,
  };
}

/**
 * Adds a tensor that was read at `position`. Throws `dump-contradiction` if another tensor has its number or one of its
 * axes.
 */
export function addPrintedTensor(
  table: TensorTable,
  source: DumpSource,
  position: number,
  text: string,
  tensor: Tensor,
): Tensor {
  const other = table.byNumber.get(tensor.id);
  if (other !== undefined) {
    failAt(source, position, "dump-contradiction", `T${tensor.id} is printed in two ways`, {
      found: text,
      expected: other.text,
      help: "give every tensor a unique number; a dump prints a tensor in the same way everywhere",
    });
  }
  for (const axis of tensor.domain.logical === tensor.domain.loop
    ? tensor.domain.logical
    : new Set([...tensor.domain.logical, ...tensor.domain.loop])) {
    const owner = table.axes.get(axis.id);
    if (owner !== undefined) {
      failAt(source, position, {
        code: "dump-contradiction",
        message: `axis number ${axis.id} is used in T${owner.tensor} and in T${tensor.id}`,
        found: text,
        expected: "a unique number for every axis",
        help: "give the axes of each tensor new numbers, as nvFuser does",
      });
    }
    table.axes.set(axis.id, { axis, tensor: tensor.id });
    collectSymbols(axis.extent, table.symbols);
  }
  table.byNumber.set(tensor.id, { tensor, text });
  table.byText.set(text, tensor);
  return tensor;
}

function collectSymbols(scalar: Scalar, symbols: Set<string>): void {
  if (scalar.kind === "symbol") symbols.add(scalar.name);
  if (scalar.kind !== "binary") return;
  collectSymbols(scalar.lhs, symbols);
  collectSymbols(scalar.rhs, symbols);
}

/** The tensors by number. A number that the dump does not show gets a scalar tensor, which nothing uses. */
export function tensorsByNumber(met: ReadonlyMap<number, { readonly tensor: Tensor }>): readonly Tensor[] {
  let count = 0;
  for (const number of met.keys()) count = Math.max(count, number + 1);
  return Array.from({ length: count }, (_, i) => met.get(i)?.tensor ?? unused(i));
}

function unused(number: number): Tensor {
  return {
    id: makeId<TensorId>(number),
    dtype: "float",
    memory: "local",
    domain: plainDomain([]),
    mesh: null,
  };
}

/** The next free number of an axis. */
export function iterDomainCountOf(table: TensorTable): number {
  let last = -1;
  for (const number of table.axes.keys()) last = Math.max(last, number);
  return last + 1;
}

/** The next free number of a scalar: one more than the largest `i<n>` of `names`. */
export function scalarCountOf(names: Iterable<string>): number {
  let last = -1;
  for (const name of names) {
    const number = /^i(\d+)$/u.exec(name)?.[1];
    if (number !== undefined && number.length < 16) last = Math.max(last, Number(number));
  }
  return last + 1;
}
