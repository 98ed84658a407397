/** Attention as one launch. */
import type { Operand, SdpaBackwardKernel, SdpaKernel } from "../../commands/kernel.ts";
import { isEmpty } from "../../commands/view.ts";
import { scaleOf } from "../../ir/ops/kinds/attention/attention.ts";
import { outputsOf, type SdpaBackwardOp, type SdpaOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { actualOutput } from "../actual.ts";
import { launch } from "../launch.ts";
import type { Recorder } from "../recorder.ts";
import { outputView, viewOf } from "../tensors.ts";

export function recordAttention(statement: SdpaOp | SdpaBackwardOp, recorder: Recorder): void {
  const inputs = statement.inputs.map((id) => viewOf(recorder, id));
  const outputs = outputsOf(statement).map((id, i) => outputView(recorder, id, actualOutput(recorder, statement, i)));
  if (outputs.every(isEmpty)) return;
  const kind = statement.kind === "Sdpa" ? "sdpa" : "sdpaBackward";
  const { causal } = statement;
  const { shape } = at(inputs, statement.kind === "Sdpa" ? 0 : 1);
  const scale = scaleOf(statement, at(shape, shape.length - 1));
  launch(recorder, {
    statement,
    inputs,
    outputs,
    inPlace: false,
    fixed: true,
    make: (read: readonly Operand[], written: readonly Operand[]): SdpaKernel | SdpaBackwardKernel => ({
      kind,
      causal,
      scale,
      inputs: read,
      outputs: written,
    }),
  });
}
