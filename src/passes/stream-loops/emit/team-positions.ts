/**
 * The team of a DID type as scalars of one rank's program: the rank's position in it, and the device at a position. On
 * the mesh 0 .. D-1 positions are device ids, and the scalars print as nvFuser's arithmetic over `rank`. On any other
 * mesh the rank's position is a constant, and a device id is a function of the position.
 */
import type { DeviceMesh } from "../../../ir/device-mesh.ts";
import type { DIDType } from "../../../ir/domain.ts";
import { binary, constant, named, type Scalar } from "../../../ir/scalar/scalar.ts";
import { at } from "../../../support/invariant.ts";

export interface TeamPositions {
  /** Device ids in mesh order (nvFuser's getSlice). */
  readonly team: readonly number[];
  readonly own: Scalar;
  /** The device at a position of 0 .. team.length-1. */
  readonly deviceAt: (position: Scalar) => Scalar;
}

/** The devices that differ from `rank`, which must be in `mesh`, only along `type`. */
export function teamPositions(mesh: DeviceMesh, type: DIDType, rank: number): TeamPositions {
  const team = mesh.slice(rank, type);
  const isRange = mesh.shape.length === 1 && team.every((device, position) => device === position);
  return {
    team,
    own: isRange ? named("rank") : constant(mesh.coordinate(rank, type)),
    deviceAt: (position) => deviceAt(team, position),
  };
}

/**
 * `position`, or `( first + ( position * step ) )`, or the sum of `( ( position == k ) * device )`, in which a
 * comparison is 0 or 1.
 */
function deviceAt(team: readonly number[], position: Scalar): Scalar {
  const first = at(team, 0);
  const step = (team[1] ?? first) - first;
  if (team.every((device, k) => device === first + k * step)) return progression(first, step, position);
  const terms = team.flatMap((device, k) =>
    device === 0 ? [] : [binary("mul", binary("eq", position, constant(k)), constant(device))],
  );
  return terms.reduce((sum, term) => binary("add", sum, term));
}

function progression(first: number, step: number, position: Scalar): Scalar {
  if (step === 0) return constant(first);
  const width = Math.abs(step);
  const offset = width === 1 ? position : binary("mul", position, constant(width));
  if (step < 0) return binary("sub", constant(first), offset);
  return first === 0 ? offset : binary("add", constant(first), offset);
}
