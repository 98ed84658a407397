/**
 * The tables of host units. Tensor numbers are indices into a unit's table. A lowered program numbers the tensors of
 * all its units consecutively, so one table per unit would take quadratic space. Units that do not contradict one
 * another share a table.
 */
import type { Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { makeId } from "../../support/ids.ts";
import type { HostUnit, OpaqueBody, UnitId } from "../nodes.ts";
import { failAt, type Source } from "../syntax/text/source.ts";
import { iterDomainCountOf, scalarCountOf, type TensorTable, tensorsByNumber } from "../syntax/values/tensor-table.ts";

export interface ParsedUnit {
  readonly id: UnitId;
  readonly tensors: TensorTable;
  readonly inputs: HostUnit["fusion"]["inputs"];
  readonly outputs: HostUnit["fusion"]["outputs"];
  readonly ops: readonly Op[];
  readonly opaque: OpaqueBody | null;
  /** Where its body begins. */
  readonly position: number;
}

/** The largest number of unused entries, in all tables together. */
const mostUnused = 1_000_000;

/** The units by number. A number that the dump does not show gets an empty unit, which nothing posts. */
export function finishUnits(source: Source, units: readonly ParsedUnit[]): readonly HostUnit[] {
  const shared = new Map<number, { readonly tensor: Tensor; readonly text: string }>();
  const sharing = new Set<ParsedUnit>();
  for (const unit of units) {
    const { byNumber } = unit.tensors;
    const fits = [...byNumber].every(([number, { text }]) => (shared.get(number)?.text ?? text) === text);
    if (!fits) continue;
    for (const [number, met] of byNumber) shared.set(number, met);
    sharing.add(unit);
  }
  const common = tensorsByNumber(shared);
  const finished = new Map<number, HostUnit>();
  let unused = 0;
  let count = 0;
  for (const unit of units) {
    const { byNumber } = unit.tensors;
    const tensors = sharing.has(unit) ? common : tensorsByNumber(byNumber);
    if (tensors !== common) unused += tensors.length - byNumber.size;
    if (unused > mostUnused) failUnused(source, unit);
    finished.set(unit.id, finishUnit(unit, tensors));
    count = Math.max(count, unit.id + 1);
  }
  return Array.from({ length: count }, (_, i) => finished.get(i) ?? unusedUnit(i));
}

function finishUnit(
  { id, inputs, outputs, ops, opaque, tensors: own }: ParsedUnit,
  tensors: readonly Tensor[],
): HostUnit {
  const iterDomainCount = iterDomainCountOf(own);
  const scalarCount = scalarCountOf(own.symbols);
  const fusion: HostUnit["fusion"] = { kind: "Fusion", tensors, ops, inputs, outputs, iterDomainCount, scalarCount };
  return opaque === null ? { id, fusion } : { id, fusion, opaque };
}

function unusedUnit(number: number): HostUnit {
  const nothing = { tensors: [], ops: [], inputs: [], outputs: [], iterDomainCount: 0, scalarCount: 0 };
  return { id: makeId<UnitId>(number), fusion: { kind: "Fusion", ...nothing } };
}

function failUnused(source: Source, { id, position }: ParsedUnit): never {
  failAt(source, position, {
    code: "dump-unsupported",
    message: `the tensors of HostUnit${id} and of earlier units have numbers that are too large`,
    found: `more than ${mostUnused} numbers that no tensor has`,
    expected: "tensors with consecutive numbers",
    help: "number the tensors of each host unit from 0",
  });
}
