/** What readers of ops share: where they read, and the operands. */
import type { Tensor } from "../../../ir/domain.ts";
import type { Op } from "../../../ir/ops/op.ts";
import type { Names } from "../../syntax/names.ts";
import { failAt } from "../../syntax/parse-error.ts";
import { atTensor, parseTensor } from "../../syntax/tensor.ts";
import { expect, failExpected, type Scanner, skipSpace } from "../../syntax/scanner.ts";
import type { TensorTable } from "../../syntax/tensor-table.ts";

export interface OpContext {
  readonly scanner: Scanner;
  readonly tensors: TensorTable;
  readonly names: Names;
}

/** Reads what follows an op's name, which began at `start`. */
export type OpReader = (context: OpContext, output: Tensor, start: number) => Op;

/** A tensor; in front of it white space and ends of lines. */
export function operand({ scanner, tensors }: OpContext): Tensor {
  skipSpace(scanner);
  if (!atTensor(scanner)) failOperand(scanner);
  return parseTensor(scanner, tensors);
}

function failOperand(scanner: Scanner): never {
  const { text, position, source } = scanner;
  if (!/^(?:[a-z]+\(|[bdfi]?\d|-\d|true|false)/u.test(text.slice(position, position + 40))) {
    failExpected(scanner, "a tensor, such as T0_g_float[iS0{i0}]");
  }
  failAt(source, position, {
    code: "dump-unsupported",
    message: "an operand of an op is a scalar",
    expected: "tensors alone",
    help: "make the scalar a tensor; Braid's ops take no scalar operands",
  });
}

/** `name( <operand>`; the fields that follow are the caller's. */
export function opened(context: OpContext): Tensor {
  expect(context.scanner, "(");
  return operand(context);
}
