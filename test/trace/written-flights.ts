/** Flight records of hand-made runs. */
import { link, type Program } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import {
  flightPlans,
  type FlightRecord,
  type FlightStanding,
  type Reported,
  reportedStanding,
  takeFlightRecord,
} from "../../src/trace/flight/flight-record.ts";
import { beginFlight, createFlightWords, endFlight, postFlight } from "../../src/trace/flight/flight-words.ts";
import { buildLists } from "../machine/list-builder.ts";

/** Ranks 0, 1 and 2 reduce on a library's stream, after a copy and an event of the caller's. */
export const reducing = link(
  buildLists(3, (list) => {
    const [input, copy, output] = [list.input([4]), list.temporary([4]), list.output([4])];
    const library = list.stream("NCCL", "communicator");
    list.statement("T1 = Set(T0)").copy(0, input, copy);
    list.statement("Communication 0").synchronize(library, 0);
    list.collective(library, "Allreduce", { team: [0, 1, 2], reduceOp: "sum", input: copy, output });
    list.statement("Wait Communication 0").synchronize(0, library);
  }),
);

interface Given {
  readonly run?: number;
  readonly finished?: boolean;
  readonly posted?: number;
  readonly failed?: boolean;
  readonly reported?: readonly Reported[];
}

/** The record of a rank that has begun and ended these commands, in order. */
export function record(
  program: Program,
  rank: number,
  done: readonly (readonly ["begun" | "ended", number])[],
  { run = 1, finished = false, posted = at(program.ranks, rank).commands.length, failed = true, reported }: Given = {},
): FlightRecord {
  const { streams, commands } = at(program.ranks, rank);
  const words = createFlightWords();
  beginFlight(words, run, 0);
  postFlight(words, posted);
  if (finished) endFlight(words);
  const standings = streams.map(({ id }, stream): FlightStanding => {
    if (reported !== undefined) return reportedStanding(at(reported, stream));
    const last = (step: string): number =>
      done.findLast(([each, command]) => each === step && at(commands, command).stream === id)?.[1] ?? -1;
    const ended = last("ended");
    const begun = Math.max(last("begun"), ended);
    return { begun, ended, orLater: false, ago: begun < 0 ? null : 2.5 };
  });
  const source = { rank, world: program.ranks.length, plan: flightPlans(program)(rank), words, standings };
  return takeFlightRecord(source, { reason: "timed-out: it hangs", failed });
}

export const arrived = [
  ["ended", 0],
  ["ended", 1],
  ["ended", 2],
  ["begun", 3],
] as const;

/** Rank 0 waits for a signal that rank 1 does not give, or gives. */
export const signalling = (isGiven: boolean): Program =>
  link(
    buildLists(2, (list, rank) => {
      const pair = list.pair(
        "get",
        rank === 1 ? "send" : "recv",
        1 - rank,
        rank === 1 ? list.input([4]) : list.output([4]),
      );
      if (rank === 0) list.waitPeer(0, pair, "ready");
      else if (isGiven) list.signalPeer(0, pair, "ready");
    }),
  );
