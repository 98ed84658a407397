/**
 * Domains of tensors beyond the printed axes. A dump describes them under "TransformPrinter :", after the container,
 * and they are parsed before it.
 */
import type { IterDomain, IterDomainId, TensorDomain, Transform } from "../../../ir/domain.ts";
import type { Scalar } from "../../../ir/scalar/scalar.ts";
import type { DumpScanner } from "../text/scanner.ts";
import { failAt } from "../text/source.ts";

export interface DomainNote {
  readonly root: readonly IterDomainId[] | null;
  readonly logical: readonly IterDomain[];
  readonly allocation: readonly IterDomain[] | null;
  readonly transforms: readonly Transform[];
}

/** By tensor number. */
export type DomainNotes = ReadonlyMap<number, DomainNote>;

/** Advice for a tensor of which the printed axes say too little. */
export const domainsHelp =
  'write its domains under "TransformPrinter :" (docs/nvfuser.md shows one), as Braid prints them in style 2025-10';

/** The domain of a tensor with the axes `loop` in its text. */
export function notedDomain(
  { logical, allocation, transforms }: DomainNote,
  loop: readonly IterDomain[],
): TensorDomain {
  const own = new Map(loop.map((axis) => [axis.id, axis]));
  // An axis that is both logical and loop is one object, as in tensors that were never printed.
  const shared = logical.map((axis) => own.get(axis.id) ?? axis);
  const plain = shared.length === loop.length && shared.every((axis, i) => axis === loop[i]);
  return {
    logical: plain ? loop : shared,
    transforms,
    loop,
    allocation: allocation?.map((axis) => own.get(axis.id) ?? axis) ?? null,
  };
}

/** Rejects extents that round up: they belong to split axes, and a container does not print the axis that was split. */
export function requireWhole(scanner: DumpScanner, start: number, number: number, loop: readonly IterDomain[]): void {
  const split = loop.find(({ extent }) => rounds(extent));
  if (split === undefined) return;
  failAt(scanner.source, start, {
    code: "dump-incomplete",
    message: `T${number} has split axes, and the dump does not print what was split`,
    found: `an extent that rounds up, on axis number ${split.id}`,
    expected: `the logical domain of T${number} under "TransformPrinter :"`,
    help: domainsHelp,
  });
}

/** Whether an extent rounds up. */
export function rounds(extent: Scalar): boolean {
  return extent.kind === "binary" && (extent.op === "ceilDiv" || rounds(extent.lhs) || rounds(extent.rhs));
}
