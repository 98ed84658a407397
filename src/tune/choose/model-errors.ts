/**
 * What simulated times are wrong by against others of the same program, by what was measured on GPUs (docs/simulation.md): a candidate counts so much more, and has to be so much faster
 * than the serial form. It depends on the commands alone, on no shape and no machine.
 */
import type { Kernel } from "../../commands/kernel.ts";
import type { Program } from "../../commands/program.ts";
import { touchesPeers } from "../../commands/barriers.ts";
import { peerOf } from "../../trace/command-work.ts";
import { at } from "../../support/invariant.ts";
import { peerTraffic } from "./peer-traffic.ts";
import type { Combination } from "./search.ts";

/** Chunks that are cut in two: what many small products beside copies lose to each other is not in the model. In four it is twice as much. */
const cutting = 0.03;

/** As many kernels in peers' memory per rank as lose nothing to each other, and what products lose beside twice as many. */
const fewKernels = 4;
const manyKernels = 0.06;

/** Copies that hand on what a sum of other copies made wait for it longer: the sum finds no room before the products beside it end. */
const relaying = 0.05;

/** What a choice other than the usual one has to gain: equal times are not equal to so little. */
const oddity = 0.015;

/**
 * On 4 x H200 what was slower than the serial form had been simulated, with these corrections, as less than 3 % faster where it copies over links, as at most 5 % where kernels work in
 * peers' memory.
 */
const marginOfCopies = 0.03;
const marginOfKernels = 0.05;

/** By how much its simulated time is to be multiplied. */
export function correction(program: Program, { names, schedule }: Combination): number {
  const { splitChunks = 1 } = schedule;
  const kernels = Math.max(0, ...program.ranks.map((_, rank) => kernelsInPeers(program, rank)));
  return (
    1 +
    cutting * Math.log2(splitChunks) +
    manyKernels * Math.max(0, Math.log2(kernels / fewKernels)) +
    (relaysSums(program) ? relaying : 0) +
    oddity * names.length
  );
}

/** By what part a program has to be faster than the serial form: never to be slower counts for more than the last of what may be gained. */
export function marginToSerial(program: Program): number {
  const { kernels, copies } = peerTraffic(program);
  return kernels && !copies ? marginOfKernels : marginOfCopies;
}

const sums: ReadonlySet<Kernel["kind"]> = new Set(["reduction", "combine"]);

function kernelsInPeers(program: Program, rank: number): number {
  return at(program.ranks, rank).commands.filter((command) => touchesPeers(program, rank, command)).length;
}

/** Whether a copy over a link has its bytes from a sum. */
function relaysSums(program: Program): boolean {
  const made = new Set(
    program.ranks.flatMap(({ commands }) =>
      commands.flatMap((command) =>
        command.kind === "launch" && sums.has(at(program.kernels, command.kernel).kind)
          ? command.outputs.map(({ buffer }) => buffer)
          : [],
      ),
    ),
  );
  return program.ranks.some(({ rank, commands }) =>
    commands.some(
      (command) =>
        command.kind === "copy" && peerOf(program, rank, command) !== null && made.has(command.source.buffer),
    ),
  );
}
