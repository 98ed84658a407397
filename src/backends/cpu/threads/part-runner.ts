/**
 * Runs large work in parts. A worker with large work offers its parts if another worker is idle, and both take parts
 * until none is left. The owner then waits for parts that others still run; those never wait for anything.
 */
import type { Kernel } from "../../../commands/kernel.ts";
import type { Launch } from "../../../commands/command.ts";
import type { KernelLibrary, PreparedKernel } from "../../../kernels/kernel-library.ts";
import type { KernelPart } from "../../../kernels/nests/split-kernel.ts";
import { performMoves } from "../../../machine/transfers/arrival.ts";
import type { Compute } from "../../../machine/execution.ts";
import type { Sharing } from "../../../machine/execution.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { unreachable } from "../../../support/unreachable.ts";
import type { AddressSpace } from "../address-space.ts";
import type { CommandNumbers } from "./command-numbers.ts";
import { allPartsDone, hasParts, offerParts, partIsDone, takePart, type TakenPart, takePartOf } from "./part-board.ts";
import { callWorkers, hasIdleWorker, isOver, type Scheduler } from "./scheduler.ts";
import type { SharedWorks } from "./shared-works.ts";

export interface PartRunner extends Sharing {
  /** Runs a part that another worker offers; returns false if there is none. */
  readonly help: () => boolean;
  readonly canHelp: () => boolean;
}

interface PartRunnerOptions<Saved> {
  readonly shared: SharedWorks;
  readonly numbers: CommandNumbers;
  readonly space: AddressSpace;
  readonly library: KernelLibrary;
  readonly compute: Compute<Saved>;
  readonly board: Int32Array;
  readonly scheduler: Scheduler;
  readonly worker: number;
  /**
   * The number of the command that this worker is running: set before it runs a part for another worker, read when it
   * offers.
   */
  readonly current: { command: number };
}

export function createPartRunner<Saved>(options: PartRunnerOptions<Saved>): PartRunner {
  const { shared, numbers, space, library, compute, board, scheduler, worker, current } = options;
  const prepared = new Map<Kernel, PreparedKernel>();
  for (const work of shared.works.values()) {
    if (work.kind !== "launch") continue;
    for (const { kernel } of work.parts) if (!prepared.has(kernel)) prepared.set(kernel, library.prepare(kernel));
  }
  const launch = ({ inputs, outputs }: Launch, { kernel, inputOffsets, outputOffsets }: KernelPart): void => {
    const compiled = prepared.get(kernel);
    invariant(compiled !== undefined, "all parts are prepared", { kernel: kernel.kind });
    const address = (ref: Launch["inputs"][number], offset: number): number =>
      at(space.buffers, ref.buffer) + ref.offset + offset;
    compiled(
      inputs.map((ref, i) => address(ref, at(inputOffsets, i))),
      outputs.map((ref, i) => address(ref, at(outputOffsets, i))),
    );
  };
  const run = (taken: TakenPart): void => {
    const work = shared.works.get(taken.work);
    invariant(work !== undefined, "offered work has parts", taken);
    switch (work.kind) {
      case "launch":
        launch(work.launch, at(work.parts, taken.part));
        break;
      case "chains":
        for (const chain of at(work.parts, taken.part)) performMoves({ compute }, chain, () => null);
        break;
      default:
        unreachable(work);
    }
    partIsDone(board, taken);
  };
  const share = (number: number): boolean => {
    const work = shared.works.get(number);
    if (work === undefined || !hasIdleWorker(scheduler)) return false;
    const { length } = work.parts;
    offerParts(board, worker, { work: number, command: current.command }, length);
    callWorkers(scheduler, length - 1);
    for (let taken = takePartOf(board, worker); taken !== null; taken = takePartOf(board, worker)) run(taken);
    while (!allPartsDone(board, worker, length) && !isOver(scheduler));
    return true;
  };
  return {
    command: (rank, command) => share(numbers.numberOf(rank, command)),
    phase: ({ number }) => share(shared.ofPhase(number)),
    help: () => {
      const taken = takePart(board);
      if (taken === null) return false;
      current.command = taken.command;
      run(taken);
      return true;
    },
    canHelp: () => hasParts(board),
  };
}
