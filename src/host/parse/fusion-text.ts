/**
 * nvFuser's Fusion IR, as a Fusion prints itself: what a host unit has after its title, and no host program around it.
 *
 *   Inputs:
 *     T0_g_float[iS0{i0}]
 *   Outputs:
 *     T1_g_float[iS1{i0}]
 *
 *   %kernel {
 *   T1_g_float[iS1{i0}]
 *      = relu(T0_g_float[iS0{i0}]);
 *   } // %kernel
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { outputsOf, renamedOp } from "../../ir/ops/op.ts";
import { makeId, at } from "../../support/invariant.ts";
import type { OpContext } from "../syntax/ops/op-syntax.ts";
import { createDumpScanner, expect, expectAcrossLines, skipSpace, take } from "../syntax/text/scanner.ts";
import { type DumpSource, failAt } from "../syntax/text/source.ts";
import { noDefinitions } from "../syntax/values/names.ts";
import { createTensorTable, iterDomainCountOf, scalarCountOf, tensorsByNumber } from "../syntax/values/tensor-table.ts";
import { checkOp } from "../validate/op.ts";
import { parseListed, parseOps, unitNotes } from "./units.ts";

/** A Fusion, and where in the text the tensors after its inputs are made. */
export interface ParsedFusion {
  readonly fusion: FusionData;
  readonly positions: readonly number[];
}

const title = /^[^\S\n]*Inputs:/mu;

/** Throws `dump-syntax`, `dump-unsupported`, `dump-contradiction`, with the line of the text. */
export function parseFusion(source: DumpSource): ParsedFusion {
  const scanner = createDumpScanner(source);
  // Other output may stand before it.
  scanner.position = Math.max(0, source.text.search(title));
  const tensors = createTensorTable(unitNotes(scanner));
  const names = { definitions: noDefinitions, symbols: tensors.symbols, loops: [] };
  const context: OpContext = { scanner, tensors, names };
  skipSpace(scanner);
  expect(scanner, "Inputs:");
  const inputs = parseListed(scanner, tensors);
  skipSpace(scanner);
  expect(scanner, "Outputs:");
  const outputs = parseListed(scanner, tensors);
  expectAcrossLines(scanner, "%kernel");
  take(scanner, "_math");
  skipSpace(scanner);
  expect(scanner, "{");
  const starts: number[] = [];
  const ops = parseOps(context, starts);
  const again = source.text.slice(scanner.position).search(title);
  if (again >= 0) failAgain(source, scanner.position + again);
  const printed = tensorsByNumber(tensors.byNumber);
  /** The numbers of the tensors, in the order in which they are made. */
  const numbers = new Map(inputs.map(({ id }, i) => [id, makeId<TensorId>(i)]));
  const positions: number[] = [];
  ops.forEach((op, i) => {
    const start = at(starts, i);
    for (const id of op.inputs) if (!numbers.has(id)) failUnmade(source, start, id);
    const [fault] = checkOp(op, printed);
    if (fault !== undefined) failAt(source, start, { code: "dump-contradiction", ...fault });
    for (const id of outputsOf(op)) {
      if (numbers.has(id)) failTwice(source, start, id);
      numbers.set(id, makeId<TensorId>(numbers.size));
      positions.push(start);
    }
  });
  for (const { id } of outputs) if (!numbers.has(id)) failUnmade(source, scanner.position, id);
  const numberOf = (id: TensorId): TensorId => numbers.get(id) ?? id;
  const fusion: FusionData = {
    kind: "Fusion",
    tensors: [...numbers].map(([id, number]): Tensor => ({ ...at(printed, id), id: number })),
    ops: ops.map((op) => renamedOp(op, numberOf)),
    inputs: inputs.map(({ id }) => numberOf(id)),
    outputs: outputs.map(({ id }) => numberOf(id)),
    iterDomainCount: iterDomainCountOf(tensors),
    scalarCount: scalarCountOf(tensors.symbols),
  };
  return { fusion, positions };
}

function failAgain(source: DumpSource, position: number): never {
  failAt(source, position, "dump-unsupported", "the text has several Fusions", {
    expected: "one",
    help: "save each as a file of its own",
  });
}

function failUnmade(source: DumpSource, position: number, id: TensorId): never {
  failAt(source, position, "dump-contradiction", `T${id} is read, and nothing makes it`, {
    found: `T${id}`,
    expected: "an input, or the output of an op before",
    help: "pass the whole Fusion, as nvFuser printed it",
  });
}

function failTwice(source: DumpSource, position: number, id: TensorId): never {
  failAt(source, position, "dump-contradiction", `T${id} is made twice`, {
    found: `T${id}`,
    expected: "one op for each tensor",
    help: "number the tensors as nvFuser does",
  });
}
