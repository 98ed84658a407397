/**
 * Large launches in parts: the worker that comes to one offers its parts if another worker has nothing to do, and both run what is left
 * until none is. The owner then waits for the parts that others are still in; they wait for nothing.
 */
import type { Launch } from "../../../commands/command.ts";
import type { Kernel } from "../../../commands/kernel.ts";
import type { Program } from "../../../commands/program.ts";
import type { KernelLibrary, PreparedKernel } from "../../../kernels/kernel-library.ts";
import { at, invariant } from "../../../support/invariant.ts";
import type { AddressSpace } from "../address-space.ts";
import { allPartsDone, hasParts, offerParts, partIsDone, takePart, type TakenPart, takePartOf } from "./part-board.ts";
import { partitionKernels } from "./partition.ts";
import { callWorkers, hasIdleWorker, isOver, type Scheduler } from "./scheduler.ts";

export interface PartRunner {
  /** Runs a launch in parts; false if it is to run whole. */
  readonly launch: (rank: number, launch: Launch, command: number) => boolean;
  /** Runs a part that another worker offers; false if there is none. */
  readonly help: () => boolean;
  readonly canHelp: () => boolean;
}

interface PartRunnerOptions {
  readonly program: Program;
  readonly space: AddressSpace;
  readonly library: KernelLibrary;
  readonly board: Int32Array;
  readonly scheduler: Scheduler;
  readonly worker: number;
  readonly workers: number;
}

export function createPartRunner(options: PartRunnerOptions): PartRunner {
  const { program, space, library, board, scheduler, worker, workers } = options;
  const partition = partitionKernels(program, workers);
  const prepared = new Map<Kernel, PreparedKernel>();
  for (const parts of partition) {
    for (const { kernel } of parts ?? []) if (!prepared.has(kernel)) prepared.set(kernel, library.prepare(kernel));
  }
  const run = (taken: TakenPart, { kernel: id, inputs, outputs }: Launch): void => {
    const { kernel, inputOffsets, outputOffsets } = at(partition[id] ?? [], taken.part);
    const compiled = prepared.get(kernel);
    invariant(compiled !== undefined, "all parts are prepared", { kernel: id });
    const address = (ref: Launch["inputs"][number], offset: number): number =>
      at(space.buffers, ref.buffer) + ref.offset + offset;
    compiled(
      inputs.map((ref, i) => address(ref, at(inputOffsets, i))),
      outputs.map((ref, i) => address(ref, at(outputOffsets, i))),
    );
    partIsDone(board, taken);
  };
  return {
    launch: (rank, launch, command) => {
      const parts = partition[launch.kernel] ?? null;
      if (parts === null || !hasIdleWorker(scheduler)) return false;
      offerParts(board, worker, { rank, command }, parts.length);
      callWorkers(scheduler);
      for (let taken = takePartOf(board, worker); taken !== null; taken = takePartOf(board, worker)) run(taken, launch);
      while (!allPartsDone(board, worker, parts.length) && !isOver(scheduler));
      return true;
    },
    help: () => {
      const taken = takePart(board);
      if (taken === null) return false;
      const command = at(at(program.ranks, taken.rank).commands, taken.command);
      invariant(command.kind === "launch", "only launches are offered in parts", taken);
      run(taken, command);
      return true;
    },
    canHelp: () => hasParts(board),
  };
}
