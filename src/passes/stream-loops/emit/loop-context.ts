/** The state with which the statements of one Stream loop are emitted. */
import { scalarOn } from "../../../host/alike/rank-rules.ts";
import type { ExprId, HostStream, HostUnit, Statement, StreamId, UnitId } from "../../../host/nodes.ts";
import type { DeviceMesh } from "../../../ir/device-mesh.ts";
import type { DIDType } from "../../../ir/domain.ts";
import { binary, constant, named, type Scalar } from "../../../ir/scalar/scalar.ts";
import { makeId, at } from "../../../support/invariant.ts";
import type { TensorEdit } from "../../edit/tensor-edit.ts";
import type { PassContext } from "../../pass.ts";
import { numberOfRank, type RankContext, sliceOfRank } from "../../rank-class.ts";
import type { Slicer } from "./slicer.ts";

/** The tables of the host program that loops are added to. */
export interface LoopEdit extends TensorEdit {
  readonly streams: HostStream[];
  readonly units: HostUnit[];
  /** The units that several statements post. */
  readonly shared: ReadonlySet<UnitId>;
  scalarCount: number;
  exprCount: number;
}

export function addStream(edit: LoopEdit, index: Scalar | null): StreamId {
  const id = makeId<StreamId>(edit.streams.length);
  edit.streams.push({ id, index });
  return id;
}

export function nextExpr(edit: LoopEdit): ExprId {
  return makeId<ExprId>(edit.exprCount++);
}

export interface LoopContext extends PassContext {
  readonly edit: LoopEdit;
  readonly slicer: Slicer;
  /** The loop's index, 0 .. stop-1. */
  readonly iteration: Scalar;
  /**
   * The chunk that the iteration works on: the iteration itself, or `( ( position * pieces + iteration ) % stop )` in a
   * rotated loop.
   */
  readonly index: Scalar;
  readonly isRotated: boolean;
  readonly stop: Scalar;
  readonly worker: StreamId;
}

/** The statements of an op in an iteration: at its place among the ops, and after all ops. */
export interface IterationStatements {
  readonly body: readonly Statement[];
  readonly epilogue: readonly Statement[];
}

// The team of a DID type as scalars of one rank's program: the rank's position in it, and the device at a position. On
// the mesh 0 .. D-1 positions are device ids, and the scalars print as nvFuser's arithmetic over `rank`. On any other
// mesh the rank's position is a constant, and a device id is a function of the position.

export interface TeamPositions {
  /** Device ids in mesh order (nvFuser's getSlice). */
  readonly team: readonly number[];
  readonly own: Scalar;
  /** The device at a position of 0 .. team.length-1. */
  readonly deviceAt: (position: Scalar) => Scalar;
}

/** The devices that differ from the rank, which must be in `mesh`, only along `type`. */
export function teamPositions(mesh: DeviceMesh, type: DIDType, context: RankContext): TeamPositions {
  const team = sliceOfRank(context, mesh, type);
  const isRange = mesh.shape.length === 1 && team.every((device, position) => device === position);
  return {
    team,
    own: isRange ? named("rank") : numberOfRank(context, (rank) => mesh.coordinate(rank, type)),
    deviceAt: (position) => deviceOfRank(context, team, position),
  };
}

/** The device at a position of the team, noted as each rank has it. */
function deviceOfRank({ rules }: RankContext, team: readonly number[], position: Scalar): Scalar {
  const device = deviceAt(team, position);
  const teamOn = rules?.teams.get(team);
  if (rules === undefined || teamOn === undefined) return device;
  // A scalar of its own: the position may be one that others use.
  const own = { ...device };
  rules.scalars.set(own, {
    scalarOn: (rank) => deviceAt(teamOn(rank), scalarOn(rules, position, rank)),
    valueOn: (rank, valueOf) => teamOn(rank)[valueOf(position)] ?? NaN,
  });
  return own;
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
