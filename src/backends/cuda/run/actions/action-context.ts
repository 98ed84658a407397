/** The inputs from which actions of commands are made, and the forms of their work. */
import type { CommandStreamId, EventId } from "../../../../commands/command.ts";
import type { BufferRef } from "../../../../commands/buffer.ts";
import type { Program } from "../../../../commands/program.ts";
import type { KernelSteps } from "../../kernels/plan/kernel-steps.ts";
import type { Arenas } from "../../memory/arenas.ts";
import type { HostBlocks } from "../../memory/host-blocks.ts";
import type { Communicator } from "../../nccl/communicators.ts";
import type { Resources } from "../../resources.ts";
import type { Session } from "../../session.ts";
import type { BarrierOperations } from "./barrier-operations.ts";
import type { StreamOperation } from "./memory-operations.ts";
import type { Progress } from "../stuck/progress.ts";

/** A driver or library call with its arguments bound. */
export type Action = () => void;

/**
 * The work that a command puts on its stream. call: an action. memory: memory operations, which can join their
 * neighbours' into one call. linkKernel: a kernel that can absorb the signals and waits around it.
 */
export type Work =
  | { readonly kind: "call"; readonly action: Action }
  | { readonly kind: "memory"; readonly operations: readonly StreamOperation[] }
  | ({ readonly kind: "linkKernel"; readonly operations: BarrierOperations } & LinkLaunch);

export interface LinkLaunch {
  /** Thread blocks of the kernel. */
  readonly blocks: number;
  /** Launches the kernel with these operations inside. */
  readonly launch: (operations: BarrierOperations) => Action;
}

export interface ActionContext {
  readonly session: Session;
  readonly program: Program;
  readonly rank: number;
  readonly arenas: Arenas;
  /** Argument blocks that live as long as the prepared Program. */
  readonly blocks: HostBlocks;
  /** Released with the prepared Program. */
  readonly resources: Resources;
  readonly progress: Progress;
  readonly streamOf: (stream: CommandStreamId) => number;
  readonly eventOf: (event: EventId) => number;
  /**
   * The stream's own scratch and workspace, of at least `bytes` bytes; the same address for every call that asks for no
   * more.
   */
  readonly scratchOf: (stream: CommandStreamId, bytes: number) => number;
  readonly workspaceOf: (stream: CommandStreamId, bytes: number) => number;
  /** The two words of a link kernel's gate, which are 0 between runs. */
  readonly gateOf: (command: number) => number;
  /** Steps of launches that were prepared before. */
  readonly steps: Map<string, KernelSteps>;
  readonly communicators: ReadonlyMap<string, Communicator>;
  /** Called when NCCL continues a call in the background. The next action must wait for it. */
  readonly inProgress: (communicator: Communicator) => void;
}

type Raw = Session["gpu"]["raw"];

/** `make` binds the call's arguments once; the action throws `gpu-call-failed`. */
export function checked({ session }: ActionContext, name: string, make: (raw: Raw) => () => number): Action {
  const { gpu } = session;
  const call = make(gpu.raw);
  return () => {
    const status = call();
    if (status !== 0) gpu.check(status, name);
  };
}

export function addressIn({ arenas }: ActionContext): (ref: BufferRef) => number {
  return ({ buffer, offset }) => arenas.bufferAddress(buffer) + offset;
}
