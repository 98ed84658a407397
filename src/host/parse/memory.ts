/** Statements that give tensors memory, take it away, or bind them to a part of another's. */
import { allocationSize } from "../../ir/allocation-size.ts";
import type { Tensor } from "../../ir/domain.ts";
import type { Statement } from "../nodes.ts";
import type { ContainerParser } from "../syntax/container-parser.ts";
import { parseNamed } from "../syntax/names.ts";
import { axisPosition } from "./ops/op-axes.ts";
import { parseAxis } from "../syntax/axis.ts";
import { failAt } from "../syntax/parse-error.ts";
import { parseScalar } from "../syntax/scalar.ts";
import { parseTensor } from "../syntax/tensor.ts";
import {
  expect,
  expectAcrossLines,
  expectField,
  failExpected,
  quoted,
  readWord,
  type Scanner,
  skipBlanks,
  skipSpace,
  take,
} from "../syntax/scanner.ts";

/** From 2026 there is a form without buffer and size, which are the tensor's. */
export function parseAllocate({ scanner, tensors }: ContainerParser, output: Tensor): Statement {
  expect(scanner, "(");
  const start = scanner.position;
  const whole = take(scanner, "buffer=");
  if (whole) {
    const buffer = parseTensor(scanner, tensors);
    if (buffer !== output) {
      failAt(scanner.source, start, {
        code: "dump-contradiction",
        message: `the memory of T${output.id} is allocated for T${buffer.id}`,
        found: `buffer=T${buffer.id}`,
        expected: `buffer=T${output.id}`,
        help: "name the tensor before the = once more",
      });
    }
    expect(scanner, ",");
  }
  expectField(scanner, "mem_type");
  const memoryStart = scanner.position;
  const memory = readWord(scanner);
  if (memory !== "global" && memory !== "symmetric") failExpected(scanner, "global or symmetric", memoryStart);
  expect(scanner, ",");
  let size = null;
  if (whole) {
    expectField(scanner, "size");
    size = parseScalar(scanner);
    expect(scanner, ",");
  }
  expectField(scanner, "zero_init");
  const zeroInit = parseFlag(scanner);
  if (whole) {
    expect(scanner, ",");
    expectField(scanner, "resets_to_zero");
    const resetStart = scanner.position;
    if (parseFlag(scanner)) {
      failAt(scanner.source, resetStart, {
        code: "dump-unsupported",
        message: "memory is to be zeroed again after its use",
        expected: "resets_to_zero=false",
        help: "Braid zeroes memory where it is allocated (zero_init=true)",
      });
    }
  }
  expect(scanner, ")");
  return { kind: "Allocate", tensor: output.id, memory, size: size ?? allocationSize(output), zeroInit };
}

function parseFlag(scanner: Scanner): boolean {
  if (take(scanner, "true")) return true;
  if (!take(scanner, "false")) failExpected(scanner, "true or false");
  return false;
}

/** The axis is one of the logical domain, which counts reduced axes. */
export function parseAliasSelect({ scanner, tensors, names }: ContainerParser, output: Tensor): Statement {
  expect(scanner, "(");
  const input = parseTensor(scanner, tensors);
  expect(scanner, ",");
  expectField(scanner, "axis");
  const start = scanner.position;
  const axis = axisPosition(scanner, start, input, parseAxis(scanner).id, input.domain.logical);
  expect(scanner, ",");
  expectField(scanner, "index");
  const index = parseNamed(scanner, names, "a slice index");
  expect(scanner, ")");
  return { kind: "HirAliasSelect", input: input.id, output: output.id, axis, index };
}

/** `Deallocate {`, the tensor and `}`, on three lines. */
export function parseDeallocate({ scanner, tensors }: ContainerParser): Statement {
  skipBlanks(scanner);
  if (!take(scanner, "{")) failExpected(scanner, quoted("{"));
  skipSpace(scanner);
  const tensor = parseTensor(scanner, tensors).id;
  expectAcrossLines(scanner, "}");
  return { kind: "Deallocate", tensor };
}
