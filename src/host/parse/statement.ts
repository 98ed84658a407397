/** One statement: `<tensor> = ...`, or a statement of the Host IR that is found by its first word. */
import type { Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import type { ReadContext } from "../syntax/context.ts";
import { failAt } from "../syntax/text/source.ts";
import { failExpected, quoted, readWord, type Scanner } from "../syntax/text/scanner.ts";
import { definitionReaders, type Header, wordReaders } from "../syntax/statements/statements.ts";
import { atTensor, parseTensor } from "../syntax/values/tensor.ts";
import { failUnknownOp, parseComputed } from "../syntax/ops/ops.ts";

/** A statement without the statements in it. */
export function parseStatement(context: ReadContext): Op | Header {
  const { scanner, tensors } = context;
  if (atTensor(scanner)) return parseDefined(context, parseTensor(scanner, tensors));
  const start = scanner.position;
  const word = readWord(scanner);
  const read = wordReaders.get(word);
  if (read !== undefined) return read(context);
  const reason = foreign.get(word);
  if (reason === undefined) failExpected(scanner, "a statement of the Host IR", start);
  return failUnsupported(scanner, start, word, reason);
}

function failUnsupported(scanner: Scanner, start: number, word: string, reason: string): never {
  return failAt(scanner.source, start, {
    code: "dump-unsupported",
    message: `${word} ${reason}`,
    found: quoted(word),
    expected: "statements of nvFuser's MultiDeviceExecutor path",
    help: "dump the program of a MultiDeviceExecutor (NVFUSER_DUMP=host_ir)",
  });
}

/** Statements that nvFuser prints and Braid does not support, most of them from the FusionExecutorCache path. */
const foreign: ReadonlyMap<string, string> = new Map([
  ["LaunchKernel", "runs a kernel that the dump does not print"],
  ["CollectivePermute", "is of nvFuser's FusionExecutorCache path"],
  ["ShardByStream", "is of nvFuser's FusionExecutorCache path"],
  ["SymmetricContiguousView", "is of nvFuser's symmetric-memory collectives, which hide the accesses of peers"],
  ["Dispatch", "moves tokens by counts that are known only at run time"],
  ["Combine", "moves tokens by counts that are known only at run time"],
  ["MoeDispatch", "moves tokens by counts that are known only at run time"],
  ["MoeCombine", "moves tokens by counts that are known only at run time"],
]);

/** `<T> = ...`, on the same line for allocations, on the next for views and computations. */
function parseDefined(context: ReadContext, output: Tensor): Op | Header {
  return parseComputed<Op | Header>(context, output, (name, start) => {
    const read = definitionReaders.get(name);
    if (read !== undefined) return read(context, output.id);
    const { scanner } = context;
    const reason = foreign.get(name);
    return reason === undefined ? failUnknownOp(scanner, start, name) : failUnsupported(scanner, start, name, reason);
  });
}
