/** Ops that read or add at indices, and ops that make such. */
import { reductionFunctions } from "../../../ir/ops/functions/reduction.ts";
import type { TensorId } from "../../../ir/domain.ts";
import type { ArgsortOp, GatherOp, IndexSelectOp, ScanOp, ScatterAddOp } from "../../../ir/ops/op.ts";
import { expect, expectField, expectNumber, failExpected, take } from "../text/scanner.ts";
import { readReduction } from "./compute.ts";
import { ofOne, readTensorOperand, opened, type OpContext, type OpSyntax, printOperand } from "./op-syntax.ts";

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
