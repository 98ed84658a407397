/** A statement of an op that has no kernel of its own: a unit of one step. */
import type { Operand, UnitKernel } from "../../commands/kernel.ts";
import type {
  CatOp,
  FullOp,
  GatherOp,
  IndexSelectOp,
  PadOp,
  RandomBitsOp,
  ScatterAddOp,
  TernaryOp,
} from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { launch, ordinaryOutput } from "../launch.ts";
import type { Recorder } from "../recorder.ts";
import { viewOf } from "../tensors.ts";
import { requireStepFits } from "./step-sizes.ts";

type StepOp = CatOp | FullOp | PadOp | IndexSelectOp | GatherOp | ScatterAddOp | RandomBitsOp;

export function recordStep(op: StepOp, recorder: Recorder): void {
  launch(recorder, {
    statement: op,
    inputs: op.inputs.map((id) => viewOf(recorder, id)),
    outputs: [ordinaryOutput(recorder, op)],
    inPlace: false,
    fixed: true,
    make: (inputs, outputs) => {
      const kernel = stepKernel(op, inputs, outputs);
      const shapes = inputs.map(({ shape }) => shape);
      for (const step of kernel.steps) requireStepFits(recorder, step, shapes, at(outputs, 0).shape);
      return kernel;
    },
  });
}

export function stepKernel(
  op: StepOp | TernaryOp,
  inputs: readonly Operand[],
  outputs: readonly Operand[],
): UnitKernel {
  const output = inputs.length;
  return {
    kind: "unit",
    inputs,
    outputs,
    values: [...inputs, ...outputs].map(({ dtype, shape }) => ({ dtype, shape })),
    steps: [{ ...op, inputs: inputs.map((_, i) => i), output }],
    results: [output],
  };
}
