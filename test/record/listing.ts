/** A command list in one line per command, with tensors by name: what the tests of the recorder compare. */
import type { BufferId, BufferRef } from "../../src/commands/buffer.ts";
import type { Collective, PointToPointGroup } from "../../src/commands/command.ts";
import type { CommandList, UnlinkedCommand } from "../../src/commands/command-list.ts";
import { operandText } from "../../src/commands/command-text.ts";
import type { Kernel, Operand } from "../../src/commands/kernel.ts";
import type { View } from "../../src/commands/view.ts";
import { dispatch, type RuleTable } from "../../src/support/invariant.ts";

export interface ListingOptions {
  /** Only commands of these kinds. */
  readonly kinds?: readonly UnlinkedCommand["kind"][];
}

/** `worker 1: copy T0+16 float [4] -> T1+16 float [4]`. A second buffer of a tensor is `T1'`. */
export function listing(list: CommandList, { kinds }: ListingOptions = {}): string {
  const names = bufferNames(list);
  const lines = list.commands
    .filter(({ kind }) => kinds === undefined || kinds.includes(kind))
    .map((command) => {
      const text = dispatch<UnlinkedCommand, string, [CommandList, Names]>(rules, command, list, names);
      return `${list.streams[command.stream]?.name ?? "?"}: ${text}`;
    });
  return `\n${lines.join("\n")}\n`;
}

/** Commands that move data: launches, copies and transfers. */
export const dataKinds = ["launch", "copy", "transfer", "copyPeer", "copyRank", "combineRanks"] as const;

type Names = readonly string[];

const rules: RuleTable<UnlinkedCommand, string, [CommandList, Names]> = {
  launch: ({ kernel, inputs, outputs }, { kernels }, names) => launchText(kernels[kernel], inputs, outputs, names),
  copy: ({ source, destination }, _, names) => `copy ${viewText(source, names)} -> ${viewText(destination, names)}`,
  transfer: ({ operation }, _, names) => operationText(operation, names),
  recordEvent: ({ event }) => `record e${event}`,
  waitEvent: ({ event }) => `wait e${event}`,
  signalPeer: ({ pair, slot }) => `signal ${slot} of pair ${pair}`,
  waitPeer: ({ pair, slot }) => `wait for ${slot} of pair ${pair}`,
  copyPeer: ({ pair }, { pairs }, names) => {
    const half = pairs[pair];
    if (half === undefined) throw new Error(`no pair ${pair}`);
    const way = half.role === "send" ? "to" : "from";
    return `${half.protocol} ${half.role} #${half.sequence} ${viewText(half.view, names)} ${way} ${half.peer}`;
  },
  signalRank: (command, list) => `signal ${command.slot} to ${rankText(command, list)}`,
  waitRank: (command, list) => `wait for ${command.slot} of ${rankText(command, list)}`,
  copyRank: (command, list) => `copy from ${rankText(command, list)}`,
  combineRanks: ({ collective }, { peerCollectives }, names) => {
    const operation = peerCollectives[collective]?.operation;
    return operation === undefined ? "?" : `combine ${operationText(operation, names)}`;
  },
  alloc: ({ buffer }, _, names) => `alloc ${names[buffer] ?? "?"}`,
  free: ({ buffer }, _, names) => `free ${names[buffer] ?? "?"}`,
};

function rankText(
  { collective, position }: { readonly collective: number; readonly position: number },
  { peerCollectives }: CommandList,
): string {
  const { communicator, operation } = peerCollectives[collective] ?? {};
  return `${operation?.team[position] ?? "?"} on ${communicator ?? "?"}`;
}

function bufferNames({ buffers }: CommandList): Names {
  const seen = new Map<string, number>();
  return buffers.map(({ name, role }) => {
    const own = role === "input" && buffers.some((other) => other.name === name && other.role === "output");
    const base = own ? `${name} in` : name;
    const count = seen.get(base) ?? 0;
    seen.set(base, count + 1);
    return base + "'".repeat(count);
  });
}

function place(buffer: BufferId, offset: number, names: Names): string {
  return `${names[buffer] ?? "?"}${offset === 0 ? "" : `+${offset}`}`;
}

function viewText(view: View, names: Names): string {
  return `${place(view.buffer, view.offset, names)} ${operandText(view)}`;
}

function launchText(
  kernel: Kernel | undefined,
  inputs: readonly BufferRef[],
  outputs: readonly BufferRef[],
  names: Names,
): string {
  if (kernel === undefined) throw new Error("a launch without a kernel");
  const side = (refs: readonly BufferRef[], operands: readonly Operand[]): string =>
    refs
      .map(({ buffer, offset }, i) => {
        const operand = operands[i];
        if (operand === undefined) throw new Error("more operands than the kernel has");
        return `${place(buffer, offset, names)} ${operandText(operand)}`;
      })
      .join(", ");
  return `${kernelName(kernel)}(${side(inputs, kernel.inputs)}) -> ${side(outputs, kernel.outputs)}`;
}

function kernelName(kernel: Kernel): string {
  switch (kernel.kind) {
    case "unary":
    case "binary":
      return kernel.op;
    case "reduction":
      return `${kernel.op}[${kernel.axes.join(", ")}]`;
    case "unit":
      return `unit ${kernel.steps.map(({ kind }) => kind).join("+")} `;
    case "opaque":
      return `opaque ${kernel.op} `;
    case "cast":
    case "matmul":
    case "linear":
    case "combine":
    case "fill":
    case "iota":
    case "sdpa":
    case "sdpaBackward":
      return kernel.kind;
  }
}

function operationText(operation: Collective | PointToPointGroup, names: Names): string {
  if (operation.kind === "group") {
    return operation.ops
      .map(({ type, peer, view }) => `${type} ${viewText(view, names)} ${type === "send" ? "to" : "from"} ${peer}`)
      .join("; ");
  }
  const { type, reduceOp, root, input, output } = operation;
  const head = [type, reduceOp, root === null ? null : `root ${root}`].filter((part) => part !== null).join(" ");
  const side = (view: View | null): string => (view === null ? "nothing" : viewText(view, names));
  return `${head} ${side(input)} -> ${side(output)}`;
}
