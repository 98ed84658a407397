/** A Program prepared for one rank: planned as device operations, and bound to this rank's GPU. */
import type { Program } from "../../commands/program.ts";
import type { BufferId } from "../../commands/buffer.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Prepared } from "../backend.ts";
import type { Place } from "./ops/address.ts";
import { deviceOps } from "./ops/device-ops.ts";
import { programNotes } from "./ops/list-notes.ts";
import { placesOf } from "./ops/places.ts";
import { prepareDevice, type PrepareOptions } from "./prepared-device.ts";
import type { Session } from "./session.ts";

/** Collective: all ranks call it together. */
export async function prepareProgram(session: Session, program: Program, options: PrepareOptions): Promise<Prepared> {
  const { rank, smCount } = session.gpu;
  const target = { multiprocessors: smCount };
  const prepared = await prepareDevice(
    session,
    {
      ops: deviceOps(program, rank, target),
      unjoined: () => deviceOps(program, rank, target, { joined: false }),
      notes: programNotes(program, rank),
    },
    options,
  );
  const { addressOf } = placesOf(program, rank);
  const ownPlace = (buffer: BufferId): Place => {
    const placed = at(program.buffers, buffer);
    invariant(placed.rank === rank, "callers reach the buffers of local ranks", { rank, buffer: placed.name });
    return addressOf({ buffer, offset: 0 });
  };
  return {
    ...prepared,
    write: (buffer, bytes) => prepared.write(ownPlace(buffer), bytes),
    read: (buffer) => prepared.read(ownPlace(buffer), at(program.buffers, buffer).bytes),
  };
}
