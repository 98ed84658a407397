/** A Program as device operations of one rank, and what a Group makes of them. */
import type { Program } from "../../commands/program.ts";
import type { BufferId } from "../../commands/buffer.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Prepared } from "../backend.ts";
import type { TensorPlace } from "./ops/address.ts";
import { deviceOps, type DeviceTarget } from "./ops/device-ops.ts";
import { programNotes } from "./ops/list-notes.ts";
import { placesOf } from "./ops/places.ts";
import type { PreparedDevice } from "./prepared-device.ts";
import type { DeviceList } from "./run/prepared-list.ts";

export function programList(program: Program, rank: number, target: DeviceTarget): DeviceList {
  return {
    ops: deviceOps(program, rank, target),
    unjoined: () => deviceOps(program, rank, target, { joined: false }),
    notes: programNotes(program, rank),
  };
}

/** Reaches the buffers of the Program by their ids. */
export function byBuffer(prepared: PreparedDevice, program: Program, rank: number): Prepared {
  const { addressOf } = placesOf(program, rank);
  const ownPlace = (buffer: BufferId): TensorPlace => {
    const placed = at(program.buffers, buffer);
    invariant(placed.rank === rank, "callers reach the buffers of local ranks", { rank, buffer: placed.name });
    return addressOf({ buffer, offset: 0 });
  };
  return {
    ...prepared,
    write: (buffer, bytes) => prepared.write(ownPlace(buffer), bytes),
    read: (buffer) => prepared.read(ownPlace(buffer), at(program.buffers, buffer).bytes),
    view: () => null,
  };
}
