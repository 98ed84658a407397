/** Commands, views and kernels as one line each, for printed Programs, messages and findings. One row per kind. */
import { dispatch, type RuleTable, at } from "../support/invariant.ts";
import type { BufferId, BufferRef } from "./buffer.ts";
import type { Collective, Command, PointToPointGroup } from "./command.ts";
import type { Kernel, LinearKernel, MatmulKernel, Operand, SdpaBackwardKernel, SdpaKernel } from "./kernel.ts";
import type { RankProgram } from "./program.ts";
import { contiguousStrides, type View } from "./view.ts";

const table: RuleTable<Command, string, [string]> = {
  launch: ({ kernel, inputs, outputs, origins = [], smMargin = 0 }) => {
    const from = origins.length === 0 ? "" : ` from ${origins.join(", ")}`;
    const margin = smMargin === 0 ? "" : ` leaving ${smMargin} multiprocessors`;
    return `k${kernel}(${refs(inputs)}) -> ${refs(outputs)}${from}${margin}`;
  },
  copy: ({ source, destination }) => `${viewText(source)} -> ${viewText(destination)}`,
  transfer: ({ communicator, operation }, transfer) => `${transfer} on ${communicator}: ${operationText(operation)}`,
  recordEvent: ({ event }) => `e${event}`,
  waitEvent: ({ event }) => `e${event}`,
  signal: ({ slot }) => `slot ${slot}`,
  waitSignal: ({ slot }) => `slot ${slot}`,
  alloc: ({ buffer }) => bufferText(buffer),
  free: ({ buffer }) => bufferText(buffer),
};

/** The text after a command's kind: `k0(b0, b1) -> b2`. Ids count over the Program, events over the rank. */
export function commandDetails({ commands, transferOf }: RankProgram, index: number): string {
  const transfer = at(transferOf, index);
  return dispatch<Command, string, [string]>(table, at(commands, index), transfer === null ? "" : `t${transfer}`);
}

function bufferText(buffer: BufferId): string {
  return `b${buffer}`;
}

function place(buffer: BufferId, offset: number): string {
  return offset === 0 ? bufferText(buffer) : `${bufferText(buffer)}+${offset}`;
}

function refs(list: readonly BufferRef[]): string {
  return list.map(({ buffer, offset }) => place(buffer, offset)).join(", ");
}

/** `b2+64 float [4, 8]`, with strides if they are not those of a contiguous row-major tensor. */
function viewText(view: View): string {
  return `${place(view.buffer, view.offset)} ${operandText(view)}`;
}

/** `float [4, 8]`, with strides if they are not those of a contiguous row-major tensor. */
export function operandText({ dtype, shape, strides }: Operand): string {
  const usual = contiguousStrides(shape);
  const plain = shape.every((extent, axis) => extent <= 1 || strides[axis] === usual[axis]);
  return `${dtype} [${shape.join(", ")}]${plain ? "" : ` strides [${strides.join(", ")}]`}`;
}

function operationText(operation: Collective | PointToPointGroup): string {
  if (operation.kind === "group") {
    return operation.ops
      .map(({ type, peer, view }) => `${type} ${type === "send" ? "to" : "from"} ${peer} ${viewText(view)}`)
      .join("; ");
  }
  const { type, team, root, reduceOp, input, output } = operation;
  const head = [type, reduceOp, `team [${team.join(", ")}]`, root === null ? null : `root ${root}`];
  const side = (view: View | null): string => (view === null ? "nothing" : viewText(view));
  return `${head.filter((part) => part !== null).join(" ")} ${side(input)} -> ${side(output)}`;
}

/** The parameters of a kernel besides its operands. */
const kernelParameters: RuleTable<Kernel, string> = {
  unary: ({ op }) => op,
  cast: () => "",
  binary: ({ op, scalar }) => {
    if (scalar === undefined) return op;
    return scalar.position === 0 ? `${scalar.text} ${op}` : `${op} ${scalar.text}`;
  },
  reduction: ({ op, axes }) => `${op} over [${axes.join(", ")}]`,
  matmul: accumulation,
  linear: accumulation,
  combine: ({ op }) => op,
  fill: () => "",
  iota: ({ start, step }) => `${start} by ${step}`,
  sdpa: attention,
  sdpaBackward: attention,
  opaque: ({ op }) => op,
  unit: ({ steps }) => steps.map(({ kind }) => kind.toLowerCase()).join(", "),
};

function accumulation({ accumulate, addend }: MatmulKernel | LinearKernel): string {
  if (addend === true) return "adding its last input";
  return accumulate === true ? "adding" : "";
}

function attention({ causal, window, scale }: SdpaKernel | SdpaBackwardKernel): string {
  return `${causal === null ? "" : `causal ${causal} `}${window === null ? "" : `window ${window} `}scaled by ${scale}`;
}

/** `matmul: float [4, 8], float [8, 2] -> float [4, 2]`. */
export function kernelText(kernel: Kernel): string {
  const parameters = dispatch<Kernel, string, []>(kernelParameters, kernel);
  const operands = (list: readonly Operand[]): string =>
    list.length === 0 ? "nothing" : list.map(operandText).join(", ");
  const name = parameters === "" ? kernel.kind : `${kernel.kind} ${parameters}`;
  return `${name}: ${operands(kernel.inputs)} -> ${operands(kernel.outputs)}`;
}

/**
 * The form of a statement in findings: tensors by name, because the dump's line has the rest, and for an allocation
 * only the tensor.
 *
 *   T6_l_float[iS21{3}, rS24{4}] (DeviceMesh{0 1}) = matmul(T5_g_float[iS18{3}, iS20{4}] (DeviceMesh{0 1}), T1_g_float[...])
 *   T6 = matmul(T5, T1)
 */
const tensor = /\b(T\d+)_[a-z]_\w+\[[^\]]*\](?: \(DeviceMesh\{.*?\}\))?/g;
/** nvFuser puts blanks before the bracket that ends a linear. */
const call = /( = \w+\(.*\S)\s+\)$/;
const allocation = /ALLOCATE\(buffer=(T\d+),.*\)$/;

/** Returns one line, without the names of tensors, which the finding lists. Other text stays unchanged. */
export function shortStatement(statement: string): string {
  return statement
    .replace(/ {2}\/\/ .*$/, "")
    .replace(/\s*\n\s*/g, " ")
    .replace(/;$/, "")
    .replaceAll(tensor, "$1")
    .replace(call, "$1)")
    .replace(allocation, "ALLOCATE(buffer=$1)");
}
