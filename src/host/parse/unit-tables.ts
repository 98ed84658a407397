/**
 * The tensors of host units. Numbers are positions in a unit's table, and the units of a lowered program are numbered through, so that
 * a table of its own for each would grow with the square of their number. Units that do not contradict one another share one.
 */
import type { Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import type { HostUnit } from "../nodes.ts";
import { failAt } from "../syntax/parse-error.ts";
import type { Source } from "../syntax/source.ts";
import { iterDomainCountOf, scalarCountOf, type TensorTable, tensorsByNumber } from "../syntax/tensor-table.ts";

export interface ParsedUnit {
  readonly id: HostUnit["id"];
  readonly tensors: TensorTable;
  readonly inputs: HostUnit["fusion"]["inputs"];
  readonly outputs: HostUnit["fusion"]["outputs"];
  readonly ops: readonly Op[];
  /** Where its body begins. */
  readonly position: number;
}

/** Entries of all tables together that no tensor takes. */
const mostUnused = 1_000_000;

export function finishUnits(source: Source, units: readonly ParsedUnit[]): ReadonlyMap<number, HostUnit> {
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
  let unused = 0;
  const own = (unit: ParsedUnit): readonly Tensor[] => {
    const tensors = tensorsByNumber(unit.tensors.byNumber);
    unused += tensors.length - unit.tensors.byNumber.size;
    if (unused > mostUnused) failUnused(source, unit);
    return tensors;
  };
  return new Map(
    units.map((unit) => {
      const { id, inputs, outputs, ops } = unit;
      const fusion: HostUnit["fusion"] = {
        kind: "Fusion",
        tensors: sharing.has(unit) ? common : own(unit),
        ops,
        inputs,
        outputs,
        iterDomainCount: iterDomainCountOf(unit.tensors),
        scalarCount: scalarCountOf(unit.tensors.symbols),
      };
      return [id, { id, fusion }];
    }),
  );
}

function failUnused(source: Source, { id, position }: ParsedUnit): never {
  failAt(source, position, {
    code: "dump-unsupported",
    message: `the tensors of HostUnit${id} and of those before it have numbers that are too large`,
    found: `more than ${mostUnused} numbers that no tensor has`,
    expected: "tensors that are numbered through",
    help: "number the tensors of each host unit from 0",
  });
}
