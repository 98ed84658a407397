/** A trace's processes, one per rank, and tracks, one per stream: their numbers, names and order. */
import type { StreamInfo } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { microsecondsText } from "../align-traces.ts";
import type { Metadata } from "./chrome-events.ts";
import type { TraceOrigin } from "../event.ts";
import type { Slice } from "./slices.ts";

/** Viewers treat process 0 as idle. */
export function processOf(rank: number): number {
  return rank + 1;
}

const roles: readonly StreamInfo["role"][] = ["caller", "worker", "communicator", "copy"];

/** Streams in the order of their tracks. */
function inTrackOrder(streams: readonly StreamInfo[]): readonly StreamInfo[] {
  return streams.toSorted((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role) || a.id - b.id);
}

/**
 * By rank and stream: the number of the track. It differs from all others and from all processes, because viewers mark
 * a thread with its process's number.
 */
export function trackNumbers({ ranks }: Program): readonly (readonly number[])[] {
  let next = processOf(ranks.length);
  return ranks.map(({ streams }) => {
    const numbers: number[] = [];
    for (const { id } of inTrackOrder(streams)) numbers[id] = next++;
    return numbers;
  });
}

/** Names and order of the processes and tracks that have slices, and the precision of each rank's clock. */
export function* metadata(
  { ranks }: Program,
  slices: readonly Slice[],
  tracks: readonly (readonly number[])[],
  origins: readonly TraceOrigin[],
): Generator<Metadata> {
  const used = ranks.map(() => new Set<number>());
  for (const { rank, stream } of slices) at(used, rank).add(stream);
  for (const { rank, streams } of ranks) {
    const shown = inTrackOrder(streams).filter(({ id }) => at(used, rank).has(id));
    if (shown.length === 0) continue;
    const pid = processOf(rank);
    yield { ph: "M", name: "process_name", pid, args: { name: `rank ${rank}` } };
    yield { ph: "M", name: "process_sort_index", pid, args: { sort_index: rank } };
    for (const { error } of origins.filter((origin) => origin.rank === rank)) {
      yield { ph: "M", name: "process_labels", pid, args: { labels: `clock within ${microsecondsText(error)}` } };
    }
    for (const [position, { id, name }] of shown.entries()) {
      const tid = at(at(tracks, rank), id);
      yield { ph: "M", name: "thread_name", pid, tid, args: { name } };
      yield { ph: "M", name: "thread_sort_index", pid, tid, args: { sort_index: position } };
    }
  }
}
