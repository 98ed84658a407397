/** Kernels of a Program as launches: generated kernels, cuBLASLt for matmuls that it supports, and cuDNN for attention. */
import { isAttention } from "../../../../commands/attention.ts";
import type { Launch } from "../../../../commands/command.ts";
import type { Memory } from "../../../../kernels/nests/nest.ts";
import type { Address } from "../../../../kernels/phase.ts";
import { at } from "../../../../support/invariant.ts";
import { type KernelStep, type KernelSteps, kernelSteps } from "../../kernels/plan/kernel-steps.ts";
import type { Parameter } from "../../kernels/kernel-source.ts";
import { gemmKernel } from "../../kernels/gemm-kernel.ts";
import { gemmLayout } from "../../matmul/gemm-layout.ts";
import { workspaceBytes } from "../../matmul/recipes.ts";
import { alignmentOf } from "../../memory/device-memory.ts";
import { type Action, type ActionContext, addressIn } from "./action-context.ts";
import { attentionActions } from "./attention-actions.ts";

export function kernelActions(command: Launch, context: ActionContext): readonly Action[] {
  const { stream } = command;
  const kernel = at(context.program.kernels, command.kernel);
  if (isAttention(kernel)) return attentionActions(kernel, command, context);
  const [inputs, outputs] = [command.inputs, command.outputs].map((refs) => refs.map(addressIn(context)));
  const operand = (memory: Memory): number | null =>
    memory.kind === "scratch" ? null : at((memory.kind === "input" ? inputs : outputs) ?? [], memory.position);
  const { steps, scratchBytes } = stepsOf(command, operand, context);
  const scratch = context.scratchOf(stream, scratchBytes);
  const place = (memory: Memory): number =>
    operand(memory) ?? scratch + (memory.kind === "scratch" ? memory.offset : 0);
  const valueOf = (parameter: Parameter): number =>
    parameter.kind === "origin" ? at(command.origins ?? [], parameter.position) : place(parameter);
  return steps.map((step) => stepAction(step, valueOf, command, context));
}

/** Launches of one kernel at addresses of equal alignment share their sources. */
function stepsOf(
  { kernel, inputs, outputs }: Launch,
  operand: (memory: Memory) => number | null,
  context: ActionContext,
): KernelSteps {
  const { program, steps } = context;
  const alignments = [inputs, outputs].map((refs) => refs.map((ref) => alignmentOf(addressIn(context)(ref))));
  const key = JSON.stringify([kernel, alignments]);
  const known = steps.get(key);
  if (known !== undefined) return known;
  const made = kernelSteps(at(program.kernels, kernel), (memory) =>
    alignmentOf(operand(memory) ?? scratchPlaceAlignment),
  );
  steps.set(key, made);
  return made;
}

/** The alignment of places in scratch that the planner gives out, in bytes. */
const scratchPlaceAlignment = 64;

function stepAction(
  step: KernelStep,
  valueOf: (parameter: Parameter) => number,
  { stream, smMargin: margin = 0 }: Launch,
  context: ActionContext,
): Action {
  const { modules, gemms } = context.session;
  const on = context.streamOf(stream);
  if (step.kind === "kernel") {
    return modules.prepareLaunch(step.source, step.source.parameters.map(valueOf), on, context.blocks);
  }
  const { contraction, a, b, bias, c } = step;
  const addressOf = ({ memory, offset }: Address): number => valueOf(memory) + offset;
  const addresses = {
    a: addressOf(a),
    b: addressOf(b),
    bias: bias === null ? 0 : addressOf(bias),
    c: addressOf(c),
  };
  const layout = gemmLayout(contraction);
  if (layout !== null) {
    const workspace = context.workspaceOf(stream, workspaceBytes);
    const gemm = gemms().prepare(layout, addresses, { stream: on, workspace, margin });
    if (gemm !== null) return gemm;
  }
  const operands = [a, b, ...(bias === null ? [] : [bias]), c];
  const source = gemmKernel(
    contraction,
    operands.map(({ memory }) => memory),
  );
  return modules.prepareLaunch(source, operands.map(addressOf), on, context.blocks);
}
