/** Ops without operands, which print their extents: `full({i0, 8}, double(0.5))`, `iota(i0, 0, 1, int64_t)`. */
import { type Tensor, withoutReductions, type TensorId } from "../../../ir/domain.ts";
import type {
  FullOp,
  IotaOp,
  Op,
  RandomBitsOp,
  RandomForm,
  ArgsortOp,
  GatherOp,
  IndexSelectOp,
  ScanOp,
  ScatterAddOp,
} from "../../../ir/ops/op.ts";
import { printScalar, type Scalar } from "../../../ir/scalar/scalar.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import type { PrintContext } from "../context.ts";
import {
  expect,
  expectAcrossLines,
  expectField,
  expectNumber,
  failExpected,
  readWord,
  skipBlanks,
  skipSpace,
  take,
} from "../text/scanner.ts";
import { parseNamed } from "../values/names.ts";
import { atTensor } from "../values/tensor.ts";
import {
  type OpContext,
  opened,
  readTensorOperand,
  type OpReader,
  type OpSyntax,
  printNumber,
  printOperand,
  readNumber,
  ofOne,
} from "./op-syntax.ts";
import { reductionFunctions } from "../../../ir/ops/functions/reduction.ts";
import { readReduction } from "./compute.ts";

export const fullSyntax: OpSyntax<FullOp> = {
  print: (op, context) => {
    const { dtype } = at(context.program.tensors, op.output);
    const value = dtype === "bool" ? String(op.value === "1") : printNumber({ position: 0, text: op.value }, dtype);
    return `full({${extentTexts(op, context).join(", ")}}, ${value});`;
  },
  readers: { full },
};

function full(context: OpContext, output: Tensor): Op {
  const { scanner } = context;
  expect(scanner, "(");
  expect(scanner, "{");
  while (!take(scanner, "}")) {
    readScalar(context, "an extent");
    skipBlanks(scanner);
    take(scanner, ",");
    skipBlanks(scanner);
  }
  expectAcrossLines(scanner, ",");
  skipBlanks(scanner);
  const value = output.dtype === "bool" ? readBool(context) : readNumber(scanner);
  if (value === null) failExpected(scanner, "a number, such as double(0.5)");
  expect(scanner, ")");
  take(scanner, ";");
  return { kind: "Full", value, inputs: [], output: output.id };
}

function readBool({ scanner }: OpContext): string | null {
  if (take(scanner, "true")) return "1";
  return take(scanner, "false") ? "0" : readNumber(scanner);
}

export const iotaSyntax: OpSyntax<IotaOp> = {
  print: (op, context) => {
    const [start, step] = [op.start, op.step].map((scalar) => printScalar(scalar, context.spelling));
    const { dtype } = at(context.program.tensors, op.output);
    return `iota(${[...extentTexts(op, context), start, step, dtypes[dtype].names.printed].join(", ")});`;
  },
  readers: { iota },
};

/** The extent is that of the output, which has been parsed. */
function iota(context: OpContext, output: Tensor): Op {
  const { scanner } = context;
  expect(scanner, "(");
  readScalar(context, "an extent");
  expect(scanner, ",");
  const start = readScalar(context, "the start of an iota");
  expect(scanner, ",");
  const step = readScalar(context, "the step of an iota");
  if (take(scanner, ",")) {
    skipBlanks(scanner);
    if (readWord(scanner) === "") failExpected(scanner, "a dtype");
  }
  expect(scanner, ")");
  take(scanner, ";");
  return { kind: "Iota", start, step, inputs: [], output: output.id };
}

function readScalar({ scanner, names }: OpContext, what: string): Scalar {
  skipBlanks(scanner);
  return parseNamed(scanner, names, what);
}

function extentTexts({ output }: Op, { program, spelling }: PrintContext): readonly string[] {
  return withoutReductions(at(program.tensors, output).domain.logical).map(({ extent }) =>
    printScalar(extent, spelling),
  );
}

const randomNames: { readonly [K in RandomForm["kind"]]: string } = {
  bits: "randomBits",
  uniform: "randomUniform",
  below: "randomBelow",
};

/** `randomBelow( T3, T4, T6, offset = 2, limit = 3865470566 )`: the seed, and the parts of the index. */
export const randomSyntax: OpSyntax<RandomBitsOp> = {
  print: (op, context) => {
    const { form, offset } = op;
    const operands = op.inputs.map((_, i) => printOperand(op, i, context));
    const limit = form.kind === "below" ? [`limit = ${form.limit}`] : [];
    return `${randomNames[form.kind]}( ${[...operands, `offset = ${offset}`, ...limit].join(", ")} )`;
  },
  readers: {
    randomBits: random(() => ({ kind: "bits" })),
    randomUniform: random(() => ({ kind: "uniform" })),
    randomBelow: random(({ scanner }) => {
      expect(scanner, ",");
      expectField(scanner, "limit");
      return { kind: "below", limit: expectNumber(scanner, "a limit of at most 2^32") };
    }),
  },
};

function random(readForm: (context: OpContext) => RandomForm): OpReader {
  return (context, output) => {
    const { scanner } = context;
    const inputs = [opened(context).id];
    expect(scanner, ",");
    for (skipSpace(scanner); atTensor(scanner); skipSpace(scanner)) {
      inputs.push(readTensorOperand(context).id);
      expect(scanner, ",");
    }
    expectField(scanner, "offset");
    const offset = expectNumber(scanner, "the offset of random numbers");
    const form = readForm(context);
    expect(scanner, ")");
    return { kind: "RandomBits", offset, form, inputs, output: output.id };
  };
}

/* Ops that read or add at indices, and ops that make such. */

/** `index_select( T0, dim = 0, T1 )` */
export const indexSelectSyntax: OpSyntax<IndexSelectOp> = {
  print: (op, context) =>
    `index_select( ${printOperand(op, 0, context)}, dim = ${op.axis}, ${printOperand(op, 1, context)} )`,
  readers: {
    index_select: (context, output) => {
      const table = opened(context).id;
      const axis = dimension(context);
      expect(context.scanner, ",");
      const index = readTensorOperand(context).id;
      expect(context.scanner, ")");
      return { kind: "IndexSelect", axis, inputs: [table, index], output: output.id };
    },
  },
};

/** `take_along_axis( T0, T1, dim = 0 )` */
export const gatherSyntax: OpSyntax<GatherOp> = {
  print: (op, context) =>
    `take_along_axis( ${printOperand(op, 0, context)}, ${printOperand(op, 1, context)}, dim = ${op.axis} )`,
  readers: {
    take_along_axis: (context, output) => {
      const inputs = [opened(context).id];
      expect(context.scanner, ",");
      inputs.push(readTensorOperand(context).id);
      const axis = dimension(context);
      expect(context.scanner, ")");
      return { kind: "Gather", axis, inputs, output: output.id };
    },
  },
};

/**
 * `scatter_add( T0, dim = 0, T1, T2 )`: the tensor, the indices and the source; `scatter( .. )` and
 * `update( .. )` if it sets.
 */
export const scatterAddSyntax: OpSyntax<ScatterAddOp> = {
  print: (op, context) => {
    const [tensor, index, source] = [0, 1, 2].map((i) => printOperand(op, i, context));
    return `${scatterNames[op.sets ?? "not"]}( ${tensor}, dim = ${op.axis}, ${index}, ${source} )`;
  },
  readers: {
    scatter_add: (context, output) => readScatter(context, output.id),
    scatter: (context, output) => ({ ...readScatter(context, output.id), sets: "any" }),
    update: (context, output) => ({ ...readScatter(context, output.id), sets: "below" }),
  },
};

const scatterNames = { not: "scatter_add", any: "scatter", below: "update" } as const;

function readScatter(context: OpContext, output: TensorId): ScatterAddOp {
  const inputs = [opened(context).id];
  const axis = dimension(context);
  for (let i = 0; i < 2; i++) {
    expect(context.scanner, ",");
    inputs.push(readTensorOperand(context).id);
  }
  expect(context.scanner, ")");
  return { kind: "ScatterAdd", axis, inputs, output };
}

/** `scan( T0, op = add, dim = 0, reverse = false )` */
export const scanSyntax: OpSyntax<ScanOp> = {
  print: (op, context) =>
    `scan( ${printOperand(op, 0, context)}, op = ${reductionFunctions[op.op].printed}, dim = ${op.axis}, reverse = ${op.reverse} )`,
  readers: {
    scan: ofOne((context) => {
      expect(context.scanner, ",");
      const op = readReduction(context.scanner);
      const axis = dimension(context);
      const reverse = flag(context, "reverse");
      expect(context.scanner, ")");
      return { kind: "Scan", op, axis, reverse };
    }),
  },
};

/** `argsort( T0, dim = 0, descending = true )` */
export const argsortSyntax: OpSyntax<ArgsortOp> = {
  print: (op, context) => `argsort( ${printOperand(op, 0, context)}, dim = ${op.axis}, descending = ${op.descending} )`,
  readers: {
    argsort: ofOne((context) => {
      const axis = dimension(context);
      const descending = flag(context, "descending");
      expect(context.scanner, ")");
      return { kind: "Argsort", axis, descending };
    }),
  },
};

/** `, name = true` */
function flag({ scanner }: OpContext, name: string): boolean {
  expect(scanner, ",");
  expectField(scanner, name);
  if (take(scanner, "true")) return true;
  if (!take(scanner, "false")) failExpected(scanner, "true or false");
  return false;
}

/** `, dim = 0` */
function dimension({ scanner }: OpContext): number {
  expect(scanner, ",");
  expectField(scanner, "dim");
  return expectNumber(scanner, "the number of an axis");
}
