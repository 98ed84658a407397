/**
 * The body of a HostUnit, which is a Fusion with tensors of its own:
 *
 *   HostUnit0: Inputs={T0_g_float[iS0{i0}], } -> Outputs={T1_g_float[iS1{i0}], }Inputs:
 *     T0_g_float[iS0{i0}]
 *   Outputs:
 *     T1_g_float[iS1{i0}]
 *
 *   %kernel {
 *   T1_g_float[iS1{i0}]
 *      = relu(T0_g_float[iS0{i0}]);
 *   } // %kernel
 */
import type { Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { makeId } from "../../support/ids.ts";
import type { UnitId } from "../nodes.ts";
import type { ReadContext } from "../syntax/context.ts";
import { noDefinitions } from "../syntax/definitions.ts";
import { failAt } from "../syntax/parse-error.ts";
import type { OpContext } from "../syntax/ops/op-syntax.ts";
import { failUnknownOp, parseComputed } from "../syntax/ops/ops.ts";
import { atTensor, failNumber, parseTensor, parseTensorList } from "../syntax/tensor.ts";
import type { ParsedUnit } from "./unit-tables.ts";
import { parseTransforms, transformsTitle } from "./transforms.ts";
import { expect, expectAcrossLines, expectNumber, type Scanner, skipSpace, take } from "../syntax/scanner.ts";
import { createTensorTable, largestNumber, type TensorTable } from "../syntax/tensor-table.ts";

const end = "} // %kernel";

/** Reads one unit into `units`; the scanner is at its `HostUnit`. */
export function parseUnit({ scanner, tensors: { meshes } }: ReadContext, units: Map<number, ParsedUnit>): void {
  const start = scanner.position;
  take(scanner, "HostUnit");
  const number = expectNumber(scanner, "the number of a host unit");
  if (number > largestNumber) failNumber(scanner, start, `HostUnit${number}`);
  if (units.has(number)) {
    failAt(scanner.source, start, {
      code: "dump-contradiction",
      message: `HostUnit${number} has two bodies`,
      expected: "one body per host unit",
      help: "number the host units, or remove the second body",
    });
  }
  const tensors = createTensorTable(unitNotes(scanner), meshes);
  const context: OpContext = {
    scanner,
    tensors,
    names: { definitions: noDefinitions, symbols: tensors.symbols, loops: [] },
  };
  expect(scanner, ":");
  expect(scanner, "Inputs={");
  const inputs = parseTensorList(scanner, tensors, "}");
  expect(scanner, "->");
  expect(scanner, "Outputs={");
  const outputs = parseTensorList(scanner, tensors, "}");
  expect(scanner, "Inputs:");
  skipListed(scanner, tensors);
  expectAcrossLines(scanner, "Outputs:");
  skipListed(scanner, tensors);
  expectAcrossLines(scanner, "%kernel");
  expect(scanner, "{");
  const ops = parseOps(context);
  units.set(number, { id: makeId<UnitId>(number), tensors, inputs, outputs, ops, position: start });
}

/** The transforms stand at the end of the kernel, and are read first. */
function unitNotes(scanner: Scanner): ReturnType<typeof parseTransforms> {
  const { text, position } = scanner;
  const close = text.indexOf(end, position);
  const title = text.slice(position, close < 0 ? text.length : close).indexOf(`\n${transformsTitle}`);
  if (title < 0) return new Map();
  return parseTransforms({ ...scanner, position: position + title + transformsTitle.length + 1 });
}

/** The inputs or outputs once more, one per line. */
function skipListed(scanner: Scanner, tensors: TensorTable): void {
  for (;;) {
    skipSpace(scanner);
    if (!atTensor(scanner)) return;
    parseTensor(scanner, tensors);
  }
}

function parseOps(context: OpContext): readonly Op[] {
  const { scanner, tensors } = context;
  const ops: Op[] = [];
  for (;;) {
    skipSpace(scanner);
    if (take(scanner, end)) return ops;
    if (take(scanner, transformsTitle)) {
      parseTransforms(scanner);
      expectAcrossLines(scanner, end);
      return ops;
    }
    ops.push(parseUnitOp(context, parseTensor(scanner, tensors)));
  }
}

function parseUnitOp(context: OpContext, output: Tensor): Op {
  return parseComputed(context, output, (name, start) => failUnknownOp(context.scanner, start, name));
}
