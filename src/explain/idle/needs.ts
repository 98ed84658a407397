/**
 * When a command could have run at the earliest: when the data that it reads was written, and when the bytes that it
 * writes were no longer in use. What it waited for beyond that is an order of its stream. And all commands whose data
 * it needs, directly or through others.
 */
import type { BufferId } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { accesses, type Region, regionBytes } from "../../commands/region.ts";
import { at, groupedBy, countWhile } from "../../support/invariant.ts";
import { type Extent, sharedBytes } from "../../verify/check/shared-bytes.ts";
import { type CommandTiming, workByEnd } from "./timing.ts";

/** The command that ended last among some that another needs, and its end in milliseconds; -1 and 0 without one. */
export interface Needed {
  readonly command: number;
  readonly time: number;
}

export interface Needs {
  /** The last write of what it reads; of a transfer, of what any participant reads. */
  readonly data: Needed;
  /** The last use of the bytes that it writes, in this buffer or in one that had its place before. */
  readonly buffer: Needed;
}

interface Access {
  readonly number: number;
  readonly region: Region;
  readonly extent: Extent;
  readonly isWrite: boolean;
}

const none: Needed = { command: -1, time: 0 };

interface CommandNeeds {
  readonly of: (number: number) => Needs;
  /** The commands that ended after a time and whose data a command needs, with all participants of transfers. */
  readonly since: (number: number, time: number) => ReadonlySet<number>;
}

export function createNeeds(program: Program, timing: CommandTiming): CommandNeeds {
  const { dependences, start, end } = timing;
  const { rankOf, indexOf, peers } = dependences;
  const endOf = ({ number }: Access): number => at(end, number);
  /** By place, and the writes of each buffer, in order of end. */
  let inPlace: ReadonlyMap<string, readonly Access[]> = new Map();
  let writesTo: ReadonlyMap<BufferId, readonly Access[]> | null = null;
  /** By participants: those of a collective have one array. */
  const known = new Map<readonly number[] | number, Needs>();

  const index = (): void => {
    if (writesTo !== null) return;
    inPlace = workByEnd(timing, (other) => {
      const { reads, writes } = accesses(program, rankOf(other), indexOf(other));
      const entry = (isWrite: boolean) => (region: Region) =>
        [placeOf(program, region), { number: other, region, extent: extentOf(program, region), isWrite }] as const;
      return [...reads.map(entry(false)), ...writes.map(entry(true))];
    });
    writesTo = groupedBy([...inPlace.values()].flat(), ({ isWrite, region }) => (isWrite ? region.buffer : null));
  };
  const withPeers = (number: number): readonly number[] => (peers(number).length === 0 ? [number] : peers(number));

  /** The last of some accesses that ended by a time, shares bytes with a region, and is of none of these commands. */
  const lastOf = (
    found: readonly Access[] | undefined,
    region: Region,
    before: number,
    own: ReadonlySet<number>,
  ): Needed => {
    if (found === undefined) return none;
    const extent = extentOf(program, region);
    for (let i = countWhile(found, (each) => endOf(each) <= before) - 1; i >= 0; i--) {
      const { number, extent: bytes } = at(found, i);
      if (!own.has(number) && sharedBytes(extent, bytes) > 0) return { command: number, time: at(end, number) };
    }
    return none;
  };

  /** The commands that wrote a region before a time, and after another. */
  const writersOf = (region: Region, since: number, before: number): readonly number[] => {
    const extent = extentOf(program, region);
    const writes = writesTo?.get(region.buffer) ?? [];
    const found: number[] = [];
    for (let i = countWhile(writes, (each) => endOf(each) <= before) - 1; i >= 0; i--) {
      const { number, extent: bytes } = at(writes, i);
      if (at(end, number) <= since) break;
      const shared = sharedBytes(extent, bytes);
      if (shared > 0) found.push(number);
      if (shared === regionBytes(extent)) break;
    }
    return found;
  };

  const since = (number: number, time: number): ReadonlySet<number> => {
    index();
    const found = new Set<number>();
    const open = [number];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      for (const each of withPeers(next)) {
        for (const read of accesses(program, rankOf(each), indexOf(each)).reads) {
          for (const writer of writersOf(read, time, at(start, each) + 1e-9)) {
            if (found.has(writer)) continue;
            for (const participant of withPeers(writer)) found.add(participant);
            open.push(writer);
          }
        }
      }
    }
    return found;
  };

  const needsOf = (number: number): Needs => {
    const participants = withPeers(number);
    const key = participants.length === 1 ? number : participants;
    const found = known.get(key);
    if (found !== undefined) return found;
    index();
    // Ends and starts of one moment may differ by rounding.
    const before = at(start, number) + 1e-9;
    let [data, buffer] = [none, none];
    // Commands may take no time, and then end as they start.
    const own = new Set(participants);
    for (const each of participants) {
      const { reads, writes } = accesses(program, rankOf(each), indexOf(each));
      for (const read of reads) data = later(data, lastOf(writesTo?.get(read.buffer), read, before, own));
      for (const region of writes) {
        buffer = later(buffer, lastOf(inPlace.get(placeOf(program, region)), region, before, own));
      }
    }
    const needs = { data, buffer };
    known.set(key, needs);
    return needs;
  };
  return { of: needsOf, since };
}

function later(a: Needed, b: Needed): Needed {
  return b.time > a.time ? b : a;
}

/** Only temporaries share bytes, those of an arena. */
function placeOf({ buffers }: Program, { buffer }: Region): string {
  const { rank, arena, role } = at(buffers, buffer);
  return role === "temporary" ? `${rank} ${arena}` : String(buffer);
}

function extentOf({ buffers }: Program, { buffer, offset, dims, bytes }: Region): Extent {
  return { start: at(buffers, buffer).offset + offset, dims, bytes };
}
