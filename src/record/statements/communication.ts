/**
 * Communications. NCCL and UCC transfer on a separate stream, which is recorded explicitly: the communicator's stream
 * waits for the current stream, transfers, and records the event that Wait waits for. With the CUDA backend a
 * communication is signals, copies and launches on the current stream (peer-collective.ts, point-to-point.ts).
 */
import type { SlicedType } from "../../commands/collectives.ts";
import type { Collective, PointToPoint } from "../../commands/transfer.ts";
import { isEmpty } from "../../commands/view.ts";
import { reductionOf } from "../../host/collectives.ts";
import type { CollectivePermute, Communication } from "../../host/nodes.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";
import { shapeText } from "../checks.ts";
import { emitCopy } from "../launch.ts";
import { currentProtocol, evaluate, fail, type Post, postTransfer, type Recorder, setPost } from "../recorder.ts";
import { extentsOf, tensorOf, viewOf } from "../tensors.ts";
import { communicatorOf, sendRecvOf } from "../communicators.ts";
import { communicatorStream, order, recordOn } from "../streams.ts";
import { squeezeView } from "../views.ts";
import { collectiveSides, hasEmptySide, positionsWith } from "./collective-sides.ts";
import { recordExchange, signalsOf } from "./exchange.ts";
import { exchangePlan } from "./exchange-plan.ts";
import { resizeLike, resizeOutput } from "./output-sizes.ts";
import { recordPeerCollective } from "./peer-collective.ts";
import { oneSided } from "./point-to-point.ts";

export function recordCommunication(recorder: Recorder, statement: Communication): void {
  setPost(recorder, statement.id, postOf(recorder, statement), [statement.input, statement.output]);
}

function postOf(recorder: Recorder, statement: Communication): Post {
  const { type, team } = statement;
  const position = team.indexOf(recorder.options.rank);
  if (position < 0) return { kind: "nothing" };
  return type === "SendRecv"
    ? sendRecv(recorder, statement, position)
    : collective(recorder, statement, type, position);
}

function collective(recorder: Recorder, statement: Communication, type: SlicedType, position: number): Post {
  const { team, reduceOp, backend } = statement;
  const root = rootOf(recorder, statement);
  const posted = { statement, type, root };
  const communicator = communicatorOf(recorder, statement);
  resizeOutput(recorder, posted);
  const plan = exchangePlan(recorder, posted);
  if (plan !== null) return recordExchange(recorder, posted, plan, communicator);
  if (type === "AllToAllV") return unlikeSides(recorder, statement);
  // All slices are equal, so no rank of the team has elements.
  if (hasEmptySide(recorder, posted, position)) return { kind: "nothing" };
  const operation: Collective = {
    kind: "collective",
    type,
    team,
    root,
    reduceOp: reduceOp === null ? null : reductionOf[reduceOp],
    ...collectiveSides(recorder, posted, position),
  };
  if (backend !== "cuda") return postTransfer(recorder.streams, communicator, operation);
  return recordPeerCollective(recorder, {
    communicator: communicator.name,
    operation,
    position,
    readers: positionsWith(recorder, posted, "output"),
    sources: positionsWith(recorder, posted, "input"),
  });
}

function unlikeSides(recorder: Recorder, { input, output }: Communication): never {
  const [before, after] = [input, output].map((id) => shapeText(extentsOf(recorder, tensorOf(recorder, id))));
  return fail(recorder, {
    code: "size-mismatch",
    message: "the input and output of an AllToAllV have different axes",
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
  return fail(recorder, {
    code: "index-out-of-range",
    message: "the root is not a position in the team",
    found: `root ${position} of team (${team.join(" ")})`,
    expected: `a position from 0 to ${team.length - 1}`,
    help: "count the ranks of the team from 0",
  });
}

/** The root sends, the other rank receives. A team of one copies. */
function sendRecv(recorder: Recorder, statement: Communication, position: number): Post {
  const { team, input, output, backend } = statement;
  const root = rootOf(recorder, statement);
  if (team.length === 1) return sendToItself(recorder, statement);
  const peer = at(team, 1 - position);
  const type = position === root ? "send" : "recv";
  if (type === "recv") resizeLike(recorder, statement, peer);
  const view = squeezeView(viewOf(recorder, type === "send" ? input : output));
  if (isEmpty(view)) return { kind: "nothing" };
  if (backend === "cuda") return oneSided(recorder, type, [peer], view);
  return postTransfer(recorder.streams, sendRecvOf(recorder, statement), {
    kind: "group",
    ops: [{ type, peer, view }],
  });
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
  const { team, sendPeer, recvPeer, input, output } = statement;
  const own = team.indexOf(recorder.options.rank);
  if (own < 0) return { kind: "nothing" };
  const [to, from] = [positionIn(recorder, team, sendPeer), positionIn(recorder, team, recvPeer)];
  if (to === own && from === own) {
    resizeLike(recorder, statement, recorder.options.rank);
    return sendToItself(recorder, statement);
  }
  resizeLike(recorder, statement, at(team, from));
  const ops = [
    { type: "send", peer: at(team, to), view: squeezeView(viewOf(recorder, input)) } as const,
    { type: "recv", peer: at(team, from), view: squeezeView(viewOf(recorder, output)) } as const,
  ].filter(({ view }) => !isEmpty(view));
  if (ops.length === 0) return { kind: "nothing" };
  if (statement.backend === "cuda") return postOneSided(recorder, ops);
  return postTransfer(recorder.streams, communicatorOf(recorder, statement), { kind: "group", ops });
}

/** A send and a receive in peers' memory. Signals come before waits, so that ranks do not wait for each other. */
function postOneSided(recorder: Recorder, ops: readonly PointToPoint[]): Post {
  const inOrder = currentProtocol(recorder) === "get" ? ops : ops.toReversed();
  const posts = inOrder.map(({ type, peer, view }) => oneSided(recorder, type, [peer], view));
  return { kind: "signals", stream: recorder.streams.current, signals: signalsOf(posts) };
}

function positionIn(recorder: Recorder, team: readonly number[], peer: Scalar): number {
  const position = evaluate(recorder, peer);
  if (position >= 0 && position < team.length) return position;
  return fail(recorder, {
    code: "bad-peer",
    message: "a peer of a CollectivePermute is not a position in its team",
    found: `${position} of team (${team.join(" ")})`,
    expected: `a position from 0 to ${team.length - 1}`,
    help: "count the members of the team from 0",
  });
}

type Sides = Pick<Communication, "input" | "output" | "team" | "backend">;

function sendToItself(recorder: Recorder, statement: Sides): Post {
  const { streams, tape } = recorder;
  const source = squeezeView(viewOf(recorder, statement.input));
  const destination = squeezeView(viewOf(recorder, statement.output));
  if (isEmpty(source)) return { kind: "nothing" };
  if (statement.backend === "cuda") {
    emitCopy(recorder, source, destination);
    return { kind: "stream", stream: streams.current };
  }
  const stream = communicatorStream(streams, communicatorOf(recorder, statement));
  order(streams, streams.current, stream);
  emitCopy(recorder, source, destination, stream);
  return { kind: "event", event: recordOn(tape, stream) };
}
