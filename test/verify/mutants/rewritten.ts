/** A Program under rewrites of docs/schedules.md that are drawn at random. */
import type { Program } from "@braid-compiler/braid";
import { copyStream } from "../../../src/schedule/rewrites/copy-stream.ts";
import { applySchedule } from "../../../src/schedule/schedule.ts";
import type { Random } from "../../../src/support/random.ts";

export function rewritten(program: Program, random: Random): Program {
  const coin = (): boolean => random.integer(2) === 1;
  const scheduled = applySchedule(program, {
    inPlace: coin(),
    ownLast: coin(),
    batchSignals: coin(),
    ...(coin() ? { splitChunks: 2 } : {}),
    ...(coin() ? { computeStreams: 1 + random.integer(2) } : {}),
    dropSignals: coin(),
    gemmSums: coin(),
  });
  return coin() ? copyStream.run(scheduled, "dedicated") : scheduled;
}
