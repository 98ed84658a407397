/** Kernels of a Program as launches: generated kernels, and matrix products through cuBLASLt where it has a form for them. */
import type { CommandStreamId, KernelId } from "../../../commands/command.ts";
import type { Memory } from "../../../kernels/nest.ts";
import type { Address } from "../../../kernels/phase.ts";
import { at } from "../../../support/invariant.ts";
import { type KernelStep, type KernelSteps, kernelSteps } from "../kernels/kernel-steps.ts";
import { productKernel } from "../kernels/product-kernel.ts";
import { productLayout } from "../matmul/product-layout.ts";
import { workspaceBytes } from "../matmul/recipes.ts";
import { alignmentOf } from "../memory/alignment.ts";
import type { Action, ActionContext } from "./action-context.ts";

/** `inputs` and `outputs`: addresses of the kernel's operands. */
export function kernelActions(
  id: KernelId,
  inputs: readonly number[],
  outputs: readonly number[],
  stream: CommandStreamId,
  context: ActionContext,
): readonly Action[] {
  const operand = (memory: Memory): number | null =>
    memory.kind === "scratch" ? null : at(memory.kind === "input" ? inputs : outputs, memory.position);
  const { steps, scratchBytes } = stepsOf(id, [inputs, outputs], operand, context);
  const scratch = context.scratchOf(stream, scratchBytes);
  const place = (memory: Memory): number =>
    operand(memory) ?? scratch + (memory.kind === "scratch" ? memory.offset : 0);
  return steps.map((step) => stepAction(step, place, stream, context));
}

/** Launches of one kernel at addresses of equal alignment share their sources. */
function stepsOf(
  id: KernelId,
  addresses: readonly (readonly number[])[],
  operand: (memory: Memory) => number | null,
  { program, steps }: ActionContext,
): KernelSteps {
  const key = JSON.stringify([id, addresses.map((list) => list.map(alignmentOf))]);
  const known = steps.get(key);
  if (known !== undefined) return known;
  const made = kernelSteps(at(program.kernels, id), (memory) => alignmentOf(operand(memory) ?? scratchPlaceAlignment));
  steps.set(key, made);
  return made;
}

/** Of places in the scratch, as the planner gives them out. */
const scratchPlaceAlignment = 64;

function stepAction(
  step: KernelStep,
  place: (memory: Memory) => number,
  stream: CommandStreamId,
  context: ActionContext,
): Action {
  const { modules, products } = context.session;
  const on = context.streamOf(stream);
  if (step.kind === "kernel") {
    return modules.prepareLaunch(step.source, step.source.parameters.map(place), on, context.blocks);
  }
  const { contraction, a, b, bias, c } = step;
  const addressOf = ({ memory, offset }: Address): number => place(memory) + offset;
  const addresses = {
    a: addressOf(a),
    b: addressOf(b),
    bias: bias === null ? 0 : addressOf(bias),
    c: addressOf(c),
  };
  const layout = productLayout(contraction);
  if (layout !== null) {
    const workspace = context.workspaceOf(stream, workspaceBytes);
    const product = products().prepare(layout, addresses, on, workspace);
    if (product !== null) return product;
  }
  const operands = [a, b, ...(bias === null ? [] : [bias]), c];
  const source = productKernel(
    contraction,
    operands.map(({ memory }) => memory),
  );
  return modules.prepareLaunch(source, operands.map(addressOf), on, context.blocks);
}
