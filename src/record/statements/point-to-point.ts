/**
 * Sends and receives. With NCCL and UCC a coalesced group is one transfer on the communicator's stream, and a single
 * send or receive is a group of one. With CUDA each rank records its half on its current stream. Two signals per pair
 * order the halves.
 *
 *            send                              recv
 *   get      signal ready; Wait: done          wait ready, copy from the sender, signal done
 *   put      wait ready, copy to the           signal ready; Wait: done
 *            receiver, signal done
 *
 * A Wait on another stream than the post's also waits for that stream.
 */
import { isEmpty, sameNumbers, sameView, type View } from "../../commands/view.ts";
import type { EndCoalescing, P2PCommunication, ShareMemHandles } from "../../host/nodes.ts";
import { at, invariant } from "../../support/invariant.ts";
import { type RankPointToPoint, requireSameDistance } from "../alike/alike.ts";
import {
  currentProtocol,
  evaluateEach,
  failRecording,
  type Post,
  recordedRank,
  ranksOf,
  type Recorder,
  setPost,
} from "../recorder.ts";
import { singleOf, worldOf } from "../streams.ts";
import { emit } from "../tape.ts";
import { viewOf } from "../tensors.ts";
import { groupOf, postTransfer } from "../transfers.ts";
import { squeezeView } from "../views.ts";

/**
 * Notes which buffers of this rank a peer may access from here on. It emits no command: link gives each half the view
 * of its peer. Throws `bad-peer`, `not-bound`.
 */
export function recordHandles(recorder: Recorder, { communications }: ShareMemHandles): void {
  for (const communication of communications) {
    const view = squeezeView(viewOf(recorder, communication.buffer));
    recorder.shared.set(communication.id, { peers: peersOf(recorder, communication), view });
  }
}

/** Posts a send or receive, or adds it to the open coalesced group. Throws `bad-peer`, `not-shared`. */
export function recordPointToPoint(recorder: Recorder, statement: P2PCommunication): void {
  const { id, type, buffer, backend } = statement;
  const view = squeezeView(viewOf(recorder, buffer));
  const peers = peersOf(recorder, statement);
  if (backend === "cuda") {
    requireShared(recorder, statement, peers, view);
    recorder.posts.set(id, isEmpty(view) ? nothingSent : oneSided(recorder, type, peers, view));
    return;
  }
  const op: RankPointToPoint = { type, peers, view };
  if (recorder.group === null) {
    if (isEmpty(view)) return void recorder.posts.set(id, { kind: "nothing" });
    const communicator = singleOf(recorder, backend, ranksOf(recorder), peers);
    setPost(recorder, id, postTransfer(recorder, groupOf(communicator, [op])), [buffer]);
    return;
  }
  if (!isEmpty(view)) recorder.group.push({ op, buffer });
}

/** Of an empty part, neither rank issues its half. It can be waited for on several streams. */
const nothingSent: Post = { kind: "signals", stream: null, signals: [] };

/** Posts the group as one transfer, unless this rank has no send or receive in it. */
export function recordGroup(recorder: Recorder, { id }: EndCoalescing): void {
  const { group } = recorder;
  invariant(group !== null, "a valid program opens the groups that it closes");
  recorder.group = null;
  const ops = group.map(({ op }) => op);
  const post: Post =
    ops.length === 0 ? { kind: "nothing" } : postTransfer(recorder, groupOf(worldOf(recorder, "nccl"), ops));
  setPost(
    recorder,
    id,
    post,
    group.map(({ buffer }) => buffer),
  );
}

/** One for each rank that is recorded at once. */
function peersOf(recorder: Recorder, { type, peer, backend }: P2PCommunication): readonly number[] {
  const values = evaluateEach(recorder, peer);
  const isItself = (value: number, k: number): boolean => backend === "cuda" && value === at(ranksOf(recorder), k);
  if (values.every((value, k) => value >= 0 && !isItself(value, k))) return values;
  const rank = recordedRank(recorder);
  const value = at(values, 0);
  const toItself = isItself(value, 0);
  return failRecording(recorder, {
    code: "bad-peer",
    message: toItself ? `the peer of a one-sided ${type} is the rank itself` : `the peer of a ${type} is not a rank`,
    found: `peer ${value} on rank ${rank}`,
    expected: toItself ? "another rank" : "a rank from 0",
    help: toItself ? "copy with a Set where the peer is this rank" : "correct the expression of the peer",
  });
}

/**
 * A peer accesses the buffer of the latest handle, so a post of any other buffer would move the wrong data. Throws
 * `not-shared`.
 */
function requireShared(
  recorder: Recorder,
  { id, type, buffer }: P2PCommunication,
  peers: readonly number[],
  view: View,
): void {
  const shared = recorder.shared.get(id);
  if (shared === undefined) {
    return failRecording(recorder, "not-shared", `a one-sided ${type} is posted before its handle is shared`, {
      found: `no earlier ShareMemHandles of P2PCommunication ${id}`,
      expected: "a ShareMemHandles that holds it, earlier on the same path",
      help: "share the handles of both halves before the first post",
    });
  }
  const samePeer = sameNumbers(shared.peers, peers);
  requireSameDistance(shared.view, view);
  if (samePeer && sameView(shared.view, view)) return;
  return failRecording(recorder, {
    code: "not-shared",
    message: `a one-sided ${type} is posted with a different ${samePeer ? "buffer" : "peer"} than its shared handle`,
    found: samePeer
      ? `T${buffer} was bound again after the ShareMemHandles`
      : `peer ${at(peers, 0)}, shared with rank ${at(shared.peers, 0)}`,
    expected: "the buffer and the peer of the latest ShareMemHandles",
    help: "share the handles again when the buffer or the peer changes, for example in every iteration of a loop",
  });
}

/** `peers` has one for each rank that is recorded at once. */
export function oneSided(recorder: Recorder, role: "send" | "recv", peers: readonly number[], view: View): Post {
  const { sequences, streams, tape, alike } = recorder;
  const peer = at(peers, 0);
  alike?.peers.push(peers);
  const key = `${role} ${peer}`;
  const sequence = sequences.get(key) ?? 0;
  sequences.set(key, sequence + 1);
  const protocol = currentProtocol(recorder);
  const pair = tape.pairs.push({ protocol, role, peer, sequence, view }) - 1;
  const stream = streams.current;
  const copies = (protocol === "get") === (role === "recv");
  if (!copies) {
    emit(tape, { kind: "signalPeer", stream, pair, slot: "ready" });
    return { kind: "signals", stream: null, signals: [{ kind: "waitPeer", pair, slot: "done" }] };
  }
  emit(tape, { kind: "waitPeer", stream, pair, slot: "ready" });
  emit(tape, { kind: "copyPeer", stream, pair });
  emit(tape, { kind: "signalPeer", stream, pair, slot: "done" });
  return { kind: "stream", stream };
}
