/**
 * Draws programs that lowering made, and counts those that the verifier says are wrong: each would be a false alarm, or
 * a bug of the lowering.
 */
import fc from "fast-check";
import { link, verify } from "@braid-compiler/braid";
import { recordSetting, settings } from "./random-setting.ts";

export interface FalseAlarmTally {
  /** Fusions that lowering took, and those that it refused. */
  readonly programs: number;
  readonly refused: number;
  /** Programs with commands on several streams of a rank, and with communication between ranks. */
  readonly withStreams: number;
  readonly withCommunication: number;
  readonly commands: number;
}

/** Throws with the smallest setting whose Program has a finding. */
export function checkPrograms(count: number, seed?: number): FalseAlarmTally {
  const tally = { programs: 0, refused: 0, withStreams: 0, withCommunication: 0, commands: 0 };
  const property = fc.property(settings, (setting) => {
    const lists = recordSetting(setting);
    if (lists === null) tally.refused++;
    fc.pre(lists !== null);
    const { ok, findings, size } = verify(link(lists));
    if (!ok) throw new Error(JSON.stringify(findings.map(({ code, message, found }) => ({ code, message, found }))));
    tally.programs++;
    tally.commands += size.commands;
    if (lists.some(({ commands }) => new Set(commands.map(({ stream }) => stream)).size > 1)) tally.withStreams++;
    if (
      lists.some(({ commands }) =>
        commands.some(({ kind }) => kind === "transfer" || kind === "copyPeer" || kind === "copyRank"),
      )
    ) {
      tally.withCommunication++;
    }
  });
  fc.assert(property, { numRuns: count, maxSkipsPerRun: 20, ...(seed === undefined ? {} : { seed }) });
  return tally;
}
