/** Kernels of a Program: generated kernels, cuBLASLt for matmuls that it supports, and cuDNN for attention. */
import { type AttentionKernel, hasKeyLengths, isAttention } from "../../../commands/attention.ts";
import type { Launch } from "../../../commands/command.ts";
import type { NestMemory } from "../../../kernels/nests/nest.ts";
import type { PhaseAddress as KernelAddress } from "../../../kernels/phase.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { attentionGraph, attentionType } from "../attention/attention-graph.ts";
import { scratchBytesOf } from "../attention/graph.ts";
import { attentionLayout, laidOperands } from "../attention/layout.ts";
import { decodeKernels } from "../kernels/decode-kernel.ts";
import { gemmKernel } from "../kernels/gemm-kernel.ts";
import { groupedDescriptorBytes, groupedKernels } from "../kernels/grouped-kernel.ts";
import type { Parameter } from "../kernels/kernel-source.ts";
import { type KernelStep, kernelSteps, workAlignment } from "../kernels/plan/kernel-steps.ts";
import { gemmLayout, workspaceBytes } from "../matmul/gemm-layout.ts";
import { type Address, alignmentOf, type AddressPlace, plus, tensorAlignment } from "./address.ts";
import { copyLaunch, type PlacedBox } from "./copy-ops.ts";
import type { DeviceOp, LaunchOp } from "./device-op.ts";
import { launchOf, type Planning } from "./planning.ts";

/** `index` is the command's position in the list. */
export function kernelOps(command: Launch, index: number, planning: Planning): readonly DeviceOp[] {
  const { program, tables, planned } = planning;
  const kernel = at(program.kernels, command.kernel);
  if (isAttention(kernel)) return attentionOps(kernel, command, index, planning);
  const operand = launchOperands(command, planning, 0);
  const { steps, scratchBytes } = planned.stepsOf(sourceKey(command, planning), () =>
    kernelSteps(kernel, (memory) => (memory.kind === "scratch" ? tensorAlignment : alignmentOf(operand(memory)))),
  );
  tables.needScratch(command.stream, scratchBytes);
  return steps.flatMap((step) => stepOps(step, operand, command, index, planning, scratchBytes));
}

/** Launches of one kernel at addresses of equal alignment share their sources. */
export function sourceKey({ kernel, inputs, outputs }: Launch, { places }: Planning): string {
  const alignments = [inputs, outputs].map((refs) => refs.map((ref) => alignmentOf(places.addressOf(ref))));
  return JSON.stringify([kernel, alignments]);
}

/** The operand of a grouped matmul with the ends of its groups, which its kernel reads one by one, wherever they begin. */
const endsOfGroups = 2;

function stepOps(
  step: KernelStep,
  operand: (memory: NestMemory) => AddressPlace,
  { stream, origins = [], smMargin: margin = 0 }: Launch,
  command: number,
  planning: Planning,
  scratchBytes: number,
): readonly DeviceOp[] {
  const { tables, target } = planning;
  const base = { stream, command };
  if (step.kind === "kernel") {
    const valueOf = (parameter: Parameter): Address | number =>
      parameter.kind === "origin" ? at(origins, parameter.position) : operand(parameter);
    return [launchOf(planning, base, step.source, step.source.parameters.map(valueOf))];
  }
  const { contraction, a, b, bias, addend, scales = [], c } = step;
  const addressOf = ({ memory, offset }: KernelAddress): AddressPlace => plus(operand(memory), offset);
  const operands = [a, b, bias, addend, ...scales, c].filter((operand) => operand !== null);
  const source = () =>
    gemmKernel(
      contraction,
      operands.map(({ memory }) => memory),
      addend !== null,
    );
  const layout = gemmLayout(contraction);
  const addresses = operands.map(addressOf);
  if (layout === null) {
    const free = { ...target, multiprocessors: target.multiprocessors - margin };
    const isAligned = addresses.every((address, i) => i === endsOfGroups || alignmentOf(address) === tensorAlignment);
    const memories = operands.map(({ memory }) => memory);
    const grouped = isAligned ? groupedKernels(contraction, memories, free) : null;
    if (grouped === null) return [launchOf(planning, base, source(), addresses)];
    const offset = Math.ceil(scratchBytes / workAlignment) * workAlignment;
    tables.needScratch(stream, offset + groupedDescriptorBytes(target));
    return [
      launchOf(planning, base, grouped.check, [at(addresses, endsOfGroups)]),
      launchOf(planning, base, grouped.multiply, [...addresses, { space: "scratch", stream, offset }]),
    ];
  }
  const gemm = tables.gemmOf(step, margin, () => {
    const fallback = source();
    const { grid, block } = fallback;
    return { layout, margin, fallback: { kernel: tables.kernelOf(fallback), grid, block } };
  });
  tables.needWorkspace(stream, workspaceBytes);
  return [
    {
      kind: "gemm",
      ...base,
      gemm,
      a: addressOf(a),
      b: addressOf(b),
      bias: bias && addressOf(bias),
      ...(addend === null ? {} : { addend: addressOf(addend) }),
      ...(scales.length === 0 ? {} : { scales: scales.map(addressOf) }),
      c: addressOf(c),
    },
  ];
}

// Kernels of attention as one graph of cuDNN, or as a kernel of few queries, between copies of the operands that it
// cannot take where they lie.

/** `index` is the command's position in the list. Throws `kernel-opaque` for an attention that no kernel takes. */
function attentionOps(
  kernel: AttentionKernel,
  { inputs, outputs, stream }: Launch,
  index: number,
  planning: Planning,
): readonly DeviceOp[] {
  const { places, tables } = planning;
  const base = { stream, command: index };
  const operands = laidOperands(kernel);
  const own = [...inputs, ...outputs].map(places.addressOf);
  const alignments = own.map(alignmentOf);
  const type = attentionType(kernel);
  const layout = attentionLayout(kernel, alignments);
  const inScratch = (offset: number): AddressPlace => ({ space: "scratch", stream, offset });
  const placed = [...layout.inputs, ...layout.outputs];
  const addresses = placed.map(({ copy }, i) => (copy === null ? at(own, i) : inScratch(copy.offset)));
  /** The copies of the inputs to the scratch, or of the outputs from there. */
  const copies = (isInput: boolean): readonly LaunchOp[] =>
    placed.flatMap(({ copy }, i) => {
      if (copy === null || i < kernel.inputs.length !== isInput) return [];
      const memory: PlacedBox = [at(operands, i), at(own, i)];
      const scratch: PlacedBox = [{ ...at(operands, i), strides: copy.strides }, at(addresses, i)];
      return [isInput ? copyLaunch(base, memory, scratch, planning) : copyLaunch(base, scratch, memory, planning)];
    });
  const scratch = inScratch(layout.copyBytes);
  if (hasKeyLengths(kernel)) {
    const { parts, sum, partBytes } = decodeKernels(kernel, layout, type, planning.target);
    tables.needScratch(stream, layout.copyBytes + partBytes);
    const sums = sum === null ? [] : [launchOf(planning, base, sum, [...addresses.slice(-2), scratch])];
    return [...copies(true), launchOf(planning, base, parts, [...addresses, scratch]), ...sums, ...copies(false)];
  }
  const attention = tables.attentionOf(JSON.stringify([kernel, alignments]), () => {
    const graph = attentionGraph(kernel, type, layout);
    return { kernel, graph, scratchBytes: scratchBytesOf(graph) };
  });
  tables.needScratch(stream, layout.copyBytes + at(tables.attentions, attention).scratchBytes);
  return [...copies(true), { kind: "attention", ...base, attention, operands: addresses, scratch }, ...copies(false)];
}

// The addresses of a launch's operands.

/** Scratch begins at `scratch`; there is none if it is omitted. */
export function launchOperands(
  { inputs, outputs, stream }: Launch,
  { places }: Planning,
  scratch = -1,
): (memory: NestMemory) => AddressPlace {
  const [read, written] = [inputs.map(places.addressOf), outputs.map(places.addressOf)];
  return (memory) => {
    if (memory.kind !== "scratch") return at(memory.kind === "input" ? read : written, memory.position);
    invariant(scratch >= 0, "a kernel that is one loop over elements has no scratch", { memory });
    return { space: "scratch", stream, offset: scratch + memory.offset };
  };
}
