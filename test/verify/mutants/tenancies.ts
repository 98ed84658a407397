/**
 * Small Programs of one rank in which temporaries take turns at the same bytes, on several streams: copies in and out
 * between an alloc and a free. Each step waits for the one before it if that is on another stream and the two touch
 * the same bytes; what else is ordered is drawn.
 */
import { link, type Program } from "@braid-compiler/braid";
import type { View } from "../../../src/commands/view.ts";
import { at } from "../../../src/support/invariant.ts";
import type { Random } from "../../../src/support/random.ts";
import { buildLists, type ListBuilder } from "../../machine/list-builder.ts";

const [workers, placeCount, elements] = [2, 2, 4];

/** `turns`: how many times a temporary has bytes. */
export function tenancies(random: Random, turns: number): Program {
  const placeOf: number[] = [];
  const program = link(buildLists(1, (list) => void placeOf.push(...writeTurns(list, random, turns))));
  const { arenaBytes } = at(program.ranks, 0);
  const bytes = 4 * elements;
  const temporaries = program.buffers.filter(({ role }) => role === "temporary");
  return {
    ...program,
    buffers: program.buffers.map((buffer) =>
      buffer.role === "temporary" ? { ...buffer, offset: bytes * at(placeOf, temporaries.indexOf(buffer)) } : buffer,
    ),
    ranks: program.ranks.map((rank) => ({
      ...rank,
      arenaBytes: { ...arenaBytes, temporary: bytes * placeCount },
    })),
  };
}

/** Returns the place of each temporary. */
function writeTurns(list: ListBuilder, random: Random, turns: number): readonly number[] {
  const [x, y] = [list.input([elements]), list.output([turns, elements])];
  const row = (turn: number): View => ({ ...y, offset: 4 * elements * turn, shape: [elements], strides: [1] });
  const streams = [0, ...Array.from({ length: workers }, (_, worker) => list.stream(`worker ${worker}`))];
  for (const stream of streams.slice(1)) list.synchronize(stream, 0);
  const temporaries: { readonly view: View; readonly place: number }[] = [];
  /** By place: the stream of the last command there. */
  const last = Array.from({ length: placeCount }, () => 0);
  for (let turn = 0; turn < turns; turn++) {
    const again = temporaries[random.integer(2 * temporaries.length)];
    const tenant = again ?? { view: list.temporary([elements]), place: random.integer(placeCount) };
    if (again === undefined) temporaries.push(tenant);
    const { view, place } = tenant;
    let stream = at(streams, random.integer(streams.length));
    const step = (write: () => void): void => {
      if (last[place] !== stream) list.synchronize(stream, at(last, place));
      write();
      last[place] = stream;
      if (random.integer(4) === 0) stream = at(streams, random.integer(streams.length));
    };
    step(() => list.alloc(stream, view));
    step(() => list.copy(stream, x, view));
    step(() => list.copy(stream, view, row(turn)));
    step(() => list.free(stream, view));
  }
  for (const stream of streams.slice(1)) list.synchronize(0, stream);
  return temporaries.map(({ place }) => place);
}
