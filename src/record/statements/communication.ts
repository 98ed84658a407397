/**
 * Communications. Those that a library (NCCL, UCC) runs on a stream of its own are spelled out: the communicator's stream waits for
 * the current one, transfers, and records an event that Wait waits for. Those of the CUDA backend are signals, copies and launches
 * on the current stream (record-peer-collective.ts).
 */
import { sideOf, type CollectiveType } from "../../commands/collectives.ts";
import type { Collective } from "../../commands/transfer.ts";
import type { View } from "../../commands/view.ts";
import type { Communication } from "../../host/nodes.ts";
import { reductionOf } from "../../host/collectives.ts";
import { at, invariant } from "../../support/invariant.ts";
import { collectiveViews, membersWith, rootTakesPart } from "./collective-views.ts";
import { emitCopy } from "../launch.ts";
import type { Post } from "../posts.ts";
import { recordPeerCollective } from "./peer-collective.ts";
import { oneSided } from "./point-to-point.ts";
import { transfer } from "./transfer.ts";
import { evaluate, fail, type Recorder, viewOf } from "../recorder.ts";
import { communicatorStream, order, recordOn } from "../streams.ts";
import { squeezeView } from "../views.ts";

export function recordCommunication(recorder: Recorder, statement: Communication): void {
  const { id, type, team } = statement;
  const position = team.indexOf(recorder.options.rank);
  const post: Post =
    position < 0
      ? { kind: "nothing" }
      : type === "SendRecv"
        ? sendRecv(recorder, statement, position)
        : collective(recorder, statement, type, position);
  recorder.posts.set(id, post);
}

function collective(recorder: Recorder, statement: Communication, type: CollectiveType, position: number): Post {
  const { team, reduceOp } = statement;
  const root = rootOf(recorder, statement);
  const operation: Collective = {
    kind: "collective",
    type,
    team,
    root,
    reduceOp: reduceOp === null ? null : reductionOf[reduceOp],
    ...collectiveViews(recorder, statement, type, root, {
      input: sideView(recorder, statement, type, "input", root, position),
      output: sideView(recorder, statement, type, "output", root, position),
    }),
  };
  const communicator = communicatorOf(statement);
  if (statement.backend !== "cuda") return transfer(recorder, communicator, operation);
  return recordPeerCollective(recorder, {
    communicator,
    operation,
    position,
    readers: membersWith(recorder, statement, type, root, "output"),
    sources: membersWith(recorder, statement, type, root, "input"),
  });
}

/** What this rank reads or writes; null where the table of collectives says nothing. */
function sideView(
  recorder: Recorder,
  statement: Communication,
  type: CollectiveType,
  side: "input" | "output",
  root: number | null,
  position: number,
): View | null {
  const id = statement[side];
  switch (sideOf(type, side, root, position)) {
    case "absent":
      return null;
    case "optional":
      return rootTakesPart(recorder, statement, type, side, position) ? viewOf(recorder, id) : null;
    case "required":
      return viewOf(recorder, id);
  }
}

/** The root's position in the team; null for the kinds that have none. */
function rootOf(recorder: Recorder, { root, team }: Communication): number | null {
  if (root === null) return null;
  const position = evaluate(recorder, root);
  if (position >= 0 && position < team.length) return position;
  return fail(recorder, {
    code: "index-out-of-range",
    message: "the root is not a position in the team",
    found: `root ${position} of team (${team.join(" ")})`,
    expected: `a position from 0 to ${team.length - 1}`,
    help: "count the members of the team from 0",
  });
}

/** One sends, the other receives; a device that sends to itself copies. */
function sendRecv(recorder: Recorder, statement: Communication, position: number): Post {
  const { team, input, output, backend } = statement;
  const root = rootOf(recorder, statement);
  if (team.length === 1) return sendToItself(recorder, statement);
  const peer = at(team, 1 - position);
  const type = position === root ? "send" : "recv";
  const view = squeezeView(viewOf(recorder, type === "send" ? input : output));
  if (backend === "cuda") return oneSided(recorder, type, peer, view);
  return transfer(recorder, communicatorOf(statement), { kind: "group", ops: [{ type, peer, view }] });
}

function sendToItself(recorder: Recorder, statement: Communication): Post {
  const { streams, tape } = recorder;
  const [source, destination] = [statement.input, statement.output].map((id) => squeezeView(viewOf(recorder, id)));
  invariant(source !== undefined && destination !== undefined, "a communication has two sides");
  if (statement.backend === "cuda") {
    emitCopy(recorder, source, destination);
    return { kind: "stream", stream: streams.current };
  }
  const stream = communicatorStream(streams, communicatorOf(statement));
  order(streams, streams.current, stream);
  emitCopy(recorder, source, destination, stream);
  return { kind: "event", event: recordOn(tape, stream) };
}

/** The name of the library's communicator for a team: a stream and a sequence of its own. */
function communicatorOf({ backend, team }: Communication): string {
  return `${backend.toUpperCase()} (${team.join(" ")})`;
}
