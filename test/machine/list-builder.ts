/** Writes command lists by hand for tests: buffers of floats, streams, kernels and both idioms of communication. */
import type { Arena, Buffer, BufferId, BufferRole } from "../../src/commands/buffer.ts";
import type {
  Collective,
  CommandStreamId,
  EventId,
  KernelId,
  Origin,
  PointToPoint,
  StreamInfo,
} from "../../src/commands/command.ts";
import type { CollectiveType } from "../../src/commands/collectives.ts";
import type { CommandList, OneSided, UnlinkedCommand } from "../../src/commands/command-list.ts";
import type { BinaryKernel, Kernel, Operand } from "../../src/commands/kernel.ts";
import { contiguousStrides, type View } from "../../src/commands/view.ts";
import type { BinaryOpType, ReductionOpType } from "../../src/ir/ops/op.ts";
import { dtypes } from "../../src/numerics/dtype.ts";
import { makeId } from "../../src/support/invariant.ts";
import { elementCount } from "../../src/numerics/tensor/host-tensor.ts";

const dtype = "float";

export interface CollectiveParts {
  readonly team: readonly number[];
  readonly root?: number;
  readonly reduceOp?: ReductionOpType;
  readonly input: View | null;
  readonly output: View | null;
}

export class ListBuilder {
  readonly rank: number;
  readonly #streams: StreamInfo[] = [];
  readonly #buffers: Buffer[] = [];
  readonly #kernels: Kernel[] = [];
  readonly #pairs: OneSided[] = [];
  readonly #commands: UnlinkedCommand[] = [];
  readonly #origins: Origin[] = [];
  #eventCount = 0;
  #statement: string | null = null;

  constructor(rank: number) {
    this.rank = rank;
    this.stream("caller", "caller");
  }

  get length(): number {
    return this.#commands.length;
  }

  stream(name: string, role: StreamInfo["role"] = "worker"): CommandStreamId {
    const id = makeId<CommandStreamId>(this.#streams.length);
    this.#streams.push({ id, role, name });
    return id;
  }

  input(shape: readonly number[], arena: Arena = "input"): View {
    return this.#buffer("input", arena, shape);
  }
  output(shape: readonly number[], arena: Arena = "output"): View {
    return this.#buffer("output", arena, shape);
  }
  temporary(shape: readonly number[], arena: Arena = "temporary"): View {
    return this.#buffer("temporary", arena, shape);
  }

  /** The commands that follow come from this statement. */
  statement(text: string): this {
    this.#statement = text;
    return this;
  }

  alloc(stream: number, { buffer }: View): void {
    this.#add({ kind: "alloc", stream: makeId(stream), buffer });
  }
  free(stream: number, { buffer }: View): void {
    this.#add({ kind: "free", stream: makeId(stream), buffer });
  }

  record(stream: number): EventId {
    const event = makeId<EventId>(this.#eventCount++);
    this.#add({ kind: "recordEvent", stream: makeId(stream), event });
    return event;
  }
  wait(stream: number, event: EventId): void {
    this.#add({ kind: "waitEvent", stream: makeId(stream), event });
  }
  /** `waiter` waits for all that `stream` holds now. */
  synchronize(waiter: number, stream: number): void {
    this.wait(waiter, this.record(stream));
  }

  copy(stream: number, source: View, destination: View): void {
    this.#add({ kind: "copy", stream: makeId(stream), source, destination });
  }

  binary(stream: number, op: BinaryOpType, a: View, b: View, out: View): void {
    const kernel: BinaryKernel = { kind: "binary", op, inputs: [a, b].map(operandOf), outputs: [operandOf(out)] };
    const known = this.#kernels.findIndex((other) => JSON.stringify(other) === JSON.stringify(kernel));
    if (known === -1) this.#kernels.push(kernel);
    this.#add({
      kind: "launch",
      stream: makeId(stream),
      kernel: makeId<KernelId>(known === -1 ? this.#kernels.length - 1 : known),
      inputs: [a, b].map(({ buffer, offset }) => ({ buffer, offset })),
      outputs: [{ buffer: out.buffer, offset: out.offset }],
    });
  }

  collective(stream: number, type: CollectiveType, { root, reduceOp, ...parts }: CollectiveParts): void {
    const operation: Collective = {
      kind: "collective",
      type,
      root: root ?? null,
      reduceOp: reduceOp ?? null,
      ...parts,
    };
    this.#add({ kind: "transfer", stream: makeId(stream), communicator: `nccl:${parts.team.join(",")}`, operation });
  }
  group(stream: number, ops: readonly PointToPoint[], communicator = "nccl:world"): void {
    this.#add({ kind: "transfer", stream: makeId(stream), communicator, operation: { kind: "group", ops } });
  }

  /** One end of a one-sided send: its number is what `signalPeer`, `waitPeer` and `copyPeer` take. */
  pair(protocol: OneSided["protocol"], role: OneSided["role"], peer: number, view: View): number {
    const sequence = this.#pairs.filter((other) => other.role === role && other.peer === peer).length;
    this.#pairs.push({ protocol, role, peer, sequence, view });
    return this.#pairs.length - 1;
  }
  signalPeer(stream: number, pair: number, slot: "ready" | "done"): void {
    this.#add({ kind: "signalPeer", stream: makeId(stream), pair, slot });
  }
  waitPeer(stream: number, pair: number, slot: "ready" | "done"): void {
    this.#add({ kind: "waitPeer", stream: makeId(stream), pair, slot });
  }
  copyPeer(stream: number, pair: number): void {
    this.#add({ kind: "copyPeer", stream: makeId(stream), pair });
  }

  build(): CommandList {
    return {
      kind: "CommandList",
      rank: this.rank,
      streams: this.#streams,
      buffers: this.#buffers,
      kernels: this.#kernels,
      pairs: this.#pairs,
      peerCollectives: [],
      eventCount: this.#eventCount,
      commands: this.#commands,
      origins: this.#origins,
    };
  }

  #buffer(role: BufferRole, arena: Arena, shape: readonly number[]): View {
    const id = makeId<BufferId>(this.#buffers.length);
    const position = role === "temporary" ? null : this.#buffers.filter((buffer) => buffer.role === role).length;
    const bytes = elementCount(shape) * dtypes[dtype].bytes;
    this.#buffers.push({ id, role, arena, bytes, dtype, shape, name: `T${id}`, position });
    return { buffer: id, offset: 0, dtype, shape, strides: contiguousStrides(shape) };
  }

  #add(command: UnlinkedCommand): void {
    this.#origins.push({
      statement: this.#statement ?? `${command.kind} of rank ${this.rank}`,
      path: [this.#commands.length],
      iteration: [],
    });
    this.#commands.push(command);
  }
}

/** The lists of ranks 0 .. world-1. */
export function buildLists(world: number, build: (list: ListBuilder, rank: number) => void): readonly CommandList[] {
  return Array.from({ length: world }, (_, rank) => {
    const list = new ListBuilder(rank);
    build(list, rank);
    return list.build();
  });
}

function operandOf({ dtype: type, shape, strides }: View): Operand {
  return { dtype: type, shape, strides };
}
