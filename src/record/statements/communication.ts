/**
 * Communications. NCCL and UCC transfer on a separate stream, which is recorded explicitly: the communicator's stream
 * waits for the current stream, transfers, and records the event that Wait waits for. With the CUDA backend a
 * communication is signals, copies and launches on the current stream (peer-collective.ts, point-to-point.ts).
 */
import type { Collective } from "../../commands/command.ts";
import { isEmpty, sameNumbers } from "../../commands/view.ts";
import { agreed } from "../../host/alike/classes.ts";
import { reductionOf } from "../../host/collectives.ts";
import type { CollectivePermute, Communication } from "../../host/nodes.ts";
import { withoutReductions } from "../../ir/domain.ts";
import { countIn, intersection, runsBetween } from "../../ir/runs.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { isWhole, shardsOf } from "../../ir/shards.ts";
import { at } from "../../support/invariant.ts";
import { type AxisSize, withSizes } from "../actual.ts";
import { type RankPointToPoint, viewOn } from "../alike/alike.ts";
import { localShapeText } from "../checks.ts";
import { emitCopy } from "../launch.ts";
import {
  currentProtocol,
  evaluate,
  evaluateEach,
  failRecording,
  type Post,
  ranksOf,
  type Recorder,
  setPost,
  recordedTeams,
} from "../recorder.ts";
import { communicatorOf, communicatorStream, order, recordOn, sendRecvOf } from "../streams.ts";
import { localExtents, findView, outputView, tensorOf, viewOf } from "../tensors.ts";
import { groupOf, postTransfer } from "../transfers.ts";
import { declaredRuns, runsOn, squeezeView } from "../views.ts";
import { alignAxes, collectiveSides, hasEmptySide, positionsWith, type PostedCollective } from "./collective-sides.ts";
import { exchangePlan } from "./exchange-plan.ts";
import { recordExchange, signalsOf } from "./exchange.ts";
import { recordPeerCollective } from "./peer-collective.ts";
import { oneSided } from "./point-to-point.ts";

export function recordCommunication(recorder: Recorder, statement: Communication): void {
  setPost(recorder, statement.id, postOf(recorder, statement), [statement.input, statement.output]);
}

function postOf(recorder: Recorder, statement: Communication): Post {
  const { type } = statement;
  const teams = recordedTeams(recorder, statement);
  const positions = positionsOf(recorder, teams);
  if (positions === null) return { kind: "nothing" };
  return type === "SendRecv"
    ? sendRecv(recorder, statement, teams, positions)
    : collective(recorder, { statement, type, teams, root: rootOf(recorder, statement) }, positions);
}

/** The positions of the ranks that are recorded in their teams; null if they are in none. */
function positionsOf(recorder: Recorder, teams: readonly (readonly number[])[]): readonly number[] | null {
  const positions = ranksOf(recorder).map((rank, k) => (teams[k] ?? at(teams, 0)).indexOf(rank));
  return agreed(positions.map((position) => position < 0)) ? null : positions;
}

function collective(recorder: Recorder, posted: PostedCollective, positions: readonly number[]): Post {
  const { statement, type, root, teams } = posted;
  const { reduceOp, backend } = statement;
  const communicator = communicatorOf(recorder, { backend, teams });
  resizeOutput(recorder, posted);
  const plan = exchangePlan(recorder, posted);
  if (plan !== null) return recordExchange(recorder, posted, plan, communicator);
  if (type === "AllToAllV") return unlikeSides(recorder, statement);
  // All slices are equal, so no rank of the team has elements.
  if (hasEmptySide(recorder, posted, positions)) return { kind: "nothing" };
  const sides = collectiveSides(recorder, posted, positions);
  const reduces = reduceOp === null ? null : reductionOf[reduceOp];
  const operationOn = (k: number): Collective => ({
    kind: "collective",
    type,
    team: teams[k] ?? at(teams, 0),
    root,
    reduceOp: reduces,
    input: sides.input === null ? null : viewOn(sides.input, k),
    output: sides.output === null ? null : viewOn(sides.output, k),
  });
  const operation: Collective = { ...operationOn(0), ...sides };
  if (backend !== "cuda") return postTransfer(recorder, { communicator, operation, operationOn });
  return recordPeerCollective(recorder, {
    communicator,
    operation,
    operationOn,
    positions,
    readers: positionsWith(recorder, posted, "output"),
    sources: positionsWith(recorder, posted, "input"),
  });
}

function unlikeSides(recorder: Recorder, { input, output }: Communication): never {
  const [before, after] = [input, output].map((id) => localShapeText(localExtents(recorder, tensorOf(recorder, id))));
  return failRecording(recorder, "size-mismatch", "the input and output of an AllToAllV have different axes", {
    found: `${before} and ${after}`,
    expected: "the same extents, cut differently among the devices",
    help: "give both sides the same shape",
  });
}

/** The root's position in the team; null for types without a root. */
function rootOf(recorder: Recorder, { root, team }: Communication): number | null {
  if (root === null) return null;
  const position = evaluate(recorder, root);
  if (position >= 0 && position < team.length) return position;
  return failRecording(recorder, "index-out-of-range", "the root is not a position in the team", {
    found: `root ${position} of team (${team.join(" ")})`,
    expected: `a position from 0 to ${team.length - 1}`,
    help: "count the ranks of the team from 0",
  });
}

/** The root sends, the other rank receives. A team of one copies. */
function sendRecv(
  recorder: Recorder,
  statement: Communication,
  teams: readonly (readonly number[])[],
  positions: readonly number[],
): Post {
  const { team, input, output, backend } = statement;
  const root = rootOf(recorder, statement);
  if (team.length === 1) return sendToItself(recorder, statement, teams);
  const peers = positions.map((position, k) => at(teams[k] ?? team, 1 - position));
  const type = agreed(positions.map((position) => position === root)) ? "send" : "recv";
  if (type === "recv") resizeLike(recorder, statement, peers);
  const view = squeezeView(viewOf(recorder, type === "send" ? input : output));
  if (isEmpty(view)) return { kind: "nothing" };
  if (backend === "cuda") return oneSided(recorder, type, peers, view);
  return postTransfer(recorder, groupOf(sendRecvOf(recorder, { backend, teams }), [{ type, peers, view }]));
}

/**
 * Sends to one member of the team and receives from another, as one transfer. Each device is its own peer in the
 * iteration in which it copies its own chunk.
 */
export function recordPermute(recorder: Recorder, statement: CollectivePermute): void {
  const { id, input, output } = statement;
  setPost(recorder, id, permute(recorder, statement), [input, output]);
}

function permute(recorder: Recorder, statement: CollectivePermute): Post {
  const { sendPeer, recvPeer, input, output, backend } = statement;
  const teams = recordedTeams(recorder, statement);
  const own = positionsOf(recorder, teams);
  if (own === null) return { kind: "nothing" };
  const [to, from] = [peersIn(recorder, teams, sendPeer), peersIn(recorder, teams, recvPeer)];
  const ranks = ranksOf(recorder);
  if (agreed(ranks.map((rank, k) => to[k] === rank && from[k] === rank))) {
    resizeLike(recorder, statement, ranks);
    return sendToItself(recorder, statement, teams);
  }
  resizeLike(recorder, statement, from);
  const ops = [
    { type: "send", peers: to, view: squeezeView(viewOf(recorder, input)) } as const,
    { type: "recv", peers: from, view: squeezeView(viewOf(recorder, output)) } as const,
  ].filter(({ view }) => !isEmpty(view));
  if (ops.length === 0) return { kind: "nothing" };
  if (backend === "cuda") return postOneSided(recorder, ops);
  return postTransfer(recorder, groupOf(communicatorOf(recorder, { backend, teams }), ops));
}

/** A send and a receive in peers' memory. Signals come before waits, so that ranks do not wait for each other. */
function postOneSided(recorder: Recorder, ops: readonly RankPointToPoint[]): Post {
  const inOrder = currentProtocol(recorder) === "get" ? ops : ops.toReversed();
  const posts = inOrder.map(({ type, peers, view }) => oneSided(recorder, type, peers, view));
  return { kind: "signals", stream: recorder.streams.current, signals: signalsOf(posts) };
}

/** The member of each rank's team at the position that `peer` is on the rank. */
function peersIn(recorder: Recorder, teams: readonly (readonly number[])[], peer: Scalar): readonly number[] {
  return evaluateEach(recorder, peer).map((position, k) => {
    const team = teams[k] ?? at(teams, 0);
    return team[position] ?? badPosition(recorder, team, position);
  });
}

function badPosition(recorder: Recorder, team: readonly number[], position: number): never {
  return failRecording(recorder, "bad-peer", "a peer of a CollectivePermute is not a position in its team", {
    found: `${position} of team (${team.join(" ")})`,
    expected: `a position from 0 to ${team.length - 1}`,
    help: "count the members of the team from 0",
  });
}

type Sides = Pick<Communication, "input" | "output" | "backend">;

function sendToItself(recorder: Recorder, statement: Sides, teams: readonly (readonly number[])[]): Post {
  const { streams, tape } = recorder;
  const { backend } = statement;
  const source = squeezeView(viewOf(recorder, statement.input));
  const destination = squeezeView(viewOf(recorder, statement.output));
  if (isEmpty(source)) return { kind: "nothing" };
  if (backend === "cuda") {
    emitCopy(recorder, source, destination);
    return { kind: "stream", stream: streams.current };
  }
  const stream = communicatorStream(streams, communicatorOf(recorder, { backend, teams }));
  order(streams, streams.current, stream);
  emitCopy(recorder, source, destination, stream);
  return { kind: "event", event: recordOn(tape, stream) };
}

// The sizes of a communication's output, where the input is a chunk or a share that is shorter than declared.

/** Gives the output of a collective the extents of its input. */
function resizeOutput(recorder: Recorder, { statement, type, root, teams }: PostedCollective): void {
  const { input, output } = statement;
  if (type === "Broadcast" && root !== null) {
    const senders = teams.map((team) => at(team, root));
    return resizeLike(recorder, statement, senders);
  }
  const actual = recorder.actuals.get(input);
  if (actual?.differs !== true || findView(recorder, output) === null) return;
  const made = tensorOf(recorder, output);
  const axes = withoutReductions(made.domain.logical);
  const counterparts = alignAxes(tensorOf(recorder, input), made, type);
  if (counterparts.length !== actual.extents.length) return;
  const ranks = ranksOf(recorder);
  const sizes = counterparts.flatMap((counterpart, position): readonly AxisSize[] => {
    const axis = axes.findIndex(({ id }) => id === counterpart?.id);
    const extent = at(actual.extents, position);
    if (axis < 0) return [];
    const exists = actual.exists.get(position);
    const localOn = (rank: number): number =>
      countIn(intersection(declaredRuns(recorder, made, axis, rank), exists?.(rank) ?? runsBetween(0, extent)));
    return [{ axis, extent, local: agreed(ranks.map(localOn)), exists }];
  });
  outputView(recorder, output, withSizes(recorder, made, sizes));
}

/** Gives the output the sizes that the input has on the sender of all of it. `senders`: that of each rank, or of all. */
function resizeLike(
  recorder: Recorder,
  { input, output }: Pick<Communication, "input" | "output">,
  senders: readonly number[],
): void {
  const own = findView(recorder, output);
  if (own === null) return;
  const source = tensorOf(recorder, input);
  const actual = recorder.actuals.get(input);
  if (actual === undefined && shardsOf(source).every(isWhole)) return;
  const lengths = withoutReductions(source.domain.logical).map((_, axis) =>
    agreed(senders.map((sender) => countIn(runsOn(recorder, source, axis, sender)))),
  );
  if (sameNumbers(lengths, own.shape) || lengths.length !== own.shape.length) return;
  const sizes = lengths.map((local, axis): AxisSize => ({ axis, extent: local, local, exists: undefined }));
  outputView(recorder, output, withSizes(recorder, tensorOf(recorder, output), sizes));
}
