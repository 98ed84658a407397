/** Ops that read or add at indices. */
import type { GatherOp, IndexSelectOp, Op, ScatterAddOp } from "../../../ir/ops/op.ts";
import { expect, expectField, expectNumber } from "../text/scanner.ts";
import { readTensorOperand, opened, type OpContext, type OpSyntax, printOperand } from "./op-syntax.ts";

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

/** `scatter_add( T0, dim = 0, T1, T2 )`: the tensor, the indices and the source. */
export const scatterAddSyntax: OpSyntax<ScatterAddOp> = {
  print: (op, context) => {
    const [tensor, index, source] = [0, 1, 2].map((i) => printOperand(op, i, context));
    return `scatter_add( ${tensor}, dim = ${op.axis}, ${index}, ${source} )`;
  },
  readers: {
    scatter_add: (context, output): Op => {
      const inputs = [opened(context).id];
      const axis = dimension(context);
      for (let i = 0; i < 2; i++) {
        expect(context.scanner, ",");
        inputs.push(readTensorOperand(context).id);
      }
      expect(context.scanner, ")");
      return { kind: "ScatterAdd", axis, inputs, output: output.id };
    },
  },
};

/** `, dim = 0` */
function dimension({ scanner }: OpContext): number {
  expect(scanner, ",");
  expectField(scanner, "dim");
  return expectNumber(scanner, "the number of an axis");
}
