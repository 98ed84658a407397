/** Kernels of a Program: generated kernels, cuBLASLt for matmuls that it supports, and cuDNN for attention. */
import { isAttention } from "../../../commands/attention.ts";
import type { Launch } from "../../../commands/command.ts";
import type { Memory } from "../../../kernels/nests/nest.ts";
import type { Address as KernelAddress } from "../../../kernels/phase.ts";
import { at } from "../../../support/invariant.ts";
import { gemmKernel } from "../kernels/gemm-kernel.ts";
import type { Parameter } from "../kernels/kernel-source.ts";
import { type KernelStep, kernelSteps } from "../kernels/plan/kernel-steps.ts";
import { gemmLayout, workspaceBytes } from "../matmul/gemm-layout.ts";
import { type Address, alignmentOf, type Place, plus, tensorAlignment } from "./address.ts";
import { attentionOps } from "./attention-ops.ts";
import type { DeviceOp } from "./device-op.ts";
import { operandsOf } from "./operands.ts";
import { launchOf, type Planning } from "./planning.ts";

/** `index` is the command's position in the list. */
export function kernelOps(command: Launch, index: number, planning: Planning): readonly DeviceOp[] {
  const { program, tables, places } = planning;
  const kernel = at(program.kernels, command.kernel);
  if (isAttention(kernel)) return attentionOps(kernel, command, index, planning);
  const operand = operandsOf(command, planning, 0);
  // Launches of one kernel at addresses of equal alignment share their sources.
  const alignments = [command.inputs, command.outputs].map((refs) =>
    refs.map((ref) => alignmentOf(places.addressOf(ref))),
  );
  const { steps, scratchBytes } = tables.stepsOf(JSON.stringify([command.kernel, alignments]), () =>
    kernelSteps(kernel, (memory) => (memory.kind === "scratch" ? tensorAlignment : alignmentOf(operand(memory)))),
  );
  tables.needScratch(command.stream, scratchBytes);
  return steps.map((step) => stepOp(step, operand, command, index, planning));
}

function stepOp(
  step: KernelStep,
  operand: (memory: Memory) => Place,
  { stream, origins = [], smMargin: margin = 0 }: Launch,
  command: number,
  planning: Planning,
): DeviceOp {
  const { tables } = planning;
  const base = { stream, command };
  if (step.kind === "kernel") {
    const valueOf = (parameter: Parameter): Address | number =>
      parameter.kind === "origin" ? at(origins, parameter.position) : operand(parameter);
    return launchOf(planning, base, step.source, step.source.parameters.map(valueOf));
  }
  const { contraction, a, b, bias, addend, c } = step;
  const addressOf = ({ memory, offset }: KernelAddress): Place => plus(operand(memory), offset);
  const operands = [a, b, bias, addend, c].filter((operand) => operand !== null);
  const source = () =>
    gemmKernel(
      contraction,
      operands.map(({ memory }) => memory),
      addend !== null,
    );
  const layout = gemmLayout(contraction);
  if (layout === null) return launchOf(planning, base, source(), operands.map(addressOf));
  const gemm = tables.gemmOf(step, margin, () => {
    const fallback = source();
    const { grid, block } = fallback;
    return { layout, margin, fallback: { kernel: tables.kernelOf(fallback), grid, block } };
  });
  tables.needWorkspace(stream, workspaceBytes);
  return {
    kind: "gemm",
    ...base,
    gemm,
    a: addressOf(a),
    b: addressOf(b),
    bias: bias && addressOf(bias),
    ...(addend === null ? {} : { addend: addressOf(addend) }),
    c: addressOf(c),
  };
}
