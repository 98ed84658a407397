/** How long a region's transfers and its kernels occupy a rank: which of the two bounds its loop. */
import { isWork } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { isLocalCopy } from "../../trace/command-work.ts";
import type { RegionOf } from "../regions.ts";
import { isKernel, linksOf } from "./links.ts";
import type { CommandTiming } from "./timing.ts";

/** Milliseconds. */
export interface RegionLoad {
  /** Of the busiest direction of the rank's link, or of its busiest communicator. */
  readonly link: number;
  readonly kernels: number;
}

/** By region. */
export function regionLoads(
  program: Program,
  { dependences, start, end }: CommandTiming,
  regionOf: RegionOf,
  own: number,
): ReadonlyMap<number, RegionLoad> {
  const loads = new Map<number, { readonly queues: Map<string, number>; kernels: number }>();
  for (const { rank, commands } of program.ranks) {
    for (const [index, command] of commands.entries()) {
      if (!isWork(command.kind)) continue;
      const links = linksOf(program, rank, index).filter((link) => link === `out ${own}` || link === `in ${own}`);
      if (rank !== own && links.length === 0) continue;
      const { id } = regionOf(rank, index);
      const load = loads.get(id) ?? { queues: new Map<string, number>(), kernels: 0 };
      loads.set(id, load);
      const number = at(dependences.first, rank) + index;
      const time = at(end, number) - at(start, number);
      if (rank === own && isKernel(program, rank, command)) load.kernels += time;
      const isTransfer = command.kind === "transfer" && !isLocalCopy(program, rank, command);
      const queues = isTransfer ? [`stream ${command.stream}`] : links;
      for (const queue of queues) load.queues.set(queue, (load.queues.get(queue) ?? 0) + time);
    }
  }
  return new Map(
    [...loads].map(([id, { queues, kernels }]) => [id, { link: Math.max(0, ...queues.values()), kernels }]),
  );
}
