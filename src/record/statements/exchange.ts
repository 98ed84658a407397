/**
 * A communication with unequal slices (exchange-plan.ts): sends and receives of the pieces as one group, and a copy of
 * the rank's own piece. A ReduceScatter receives into temporaries, which one kernel combines in team order. Ranks
 * without pieces issue nothing.
 */
import type { CommandStreamId } from "../../commands/command.ts";
import type { CombineKernel } from "../../commands/kernel.ts";
import type { PointToPoint } from "../../commands/transfer.ts";
import type { View } from "../../commands/view.ts";
import { collectives } from "../../commands/collectives.ts";
import { reductionOf } from "../../host/collectives.ts";
import { at } from "../../support/invariant.ts";
import { contiguousTemporary, emitCopy, launch, release } from "../launch.ts";
import type { Communicator } from "../communicators.ts";
import { currentProtocol, fail, type Post, type Recorder } from "../recorder.ts";
import { communicatorStream, order, recordOn } from "../streams.ts";
import { emit } from "../tape.ts";
import { emitWait } from "../transfers.ts";
import { viewOf } from "../tensors.ts";
import { sameElements, squeezeView } from "../views.ts";
import { type PostedCollective, positionsWith } from "./collective-sides.ts";
import type { ExchangePlan } from "../actual-sizes.ts";
import { rankPieces, type RankPieces } from "./exchange-pieces.ts";
import { heldBy, pairedView, viewOfBox } from "./exchange-plan.ts";
import { oneSided } from "./point-to-point.ts";

/** What one rank gives and gets. */
interface Pieces {
  readonly sends: readonly PointToPoint[];
  readonly receipts: RankPieces["receipts"];
}

/** Records this rank's part: a group of the library's, or one-sided copies with the CUDA backend. */
export function recordExchange(
  recorder: Recorder,
  posted: PostedCollective,
  plan: ExchangePlan,
  communicator: Communicator,
): Post {
  const { streams, tape } = recorder;
  const pieces = piecesOf(recorder, posted, plan);
  if (pieces.sends.length === 0 && pieces.receipts.every(({ boxes }) => boxes.length === 0)) return { kind: "nothing" };
  if (posted.statement.backend === "cuda") return exchangeOneSided(recorder, posted, plan, pieces);
  const library = communicatorStream(streams, communicator);
  order(streams, streams.current, library);
  onStream(recorder, library, () => {
    receive(recorder, posted, plan, pieces, (receives) => {
      const ops = [...pieces.sends, ...receives];
      if (ops.length === 0) return;
      emit(tape, {
        kind: "transfer",
        stream: library,
        communicator: at(communicator.names, 0),
        operation: { kind: "group", ops },
      });
    });
  });
  return { kind: "event", event: recordOn(tape, library) };
}

/** Signals first and waits later, so that ranks with one queue each do not wait for each other. */
function exchangeOneSided(recorder: Recorder, posted: PostedCollective, plan: ExchangePlan, pieces: Pieces): Post {
  const { streams } = recorder;
  const { current } = streams;
  const posts: Post[] = [];
  const run = (ops: readonly PointToPoint[]): void => {
    for (const { type, peer, view } of ops) posts.push(oneSided(recorder, type, [peer], view));
  };
  const { reduces } = collectives[posted.type];
  receive(recorder, posted, plan, pieces, (receives) => {
    if (currentProtocol(recorder) === "get") {
      run(pieces.sends);
      run(receives);
      return;
    }
    run(receives);
    const arrivals = posts.splice(0);
    run(pieces.sends);
    if (!reduces) posts.push(...arrivals);
    else for (const signal of signalsOf(arrivals)) emitWait(recorder, signal, current);
  });
  return { kind: "signals", stream: current, signals: signalsOf(posts) };
}

type Signals = Extract<Post, { kind: "signals" }>["signals"];

export function signalsOf(posts: readonly Post[]): Signals {
  return posts.flatMap((post) => (post.kind === "signals" ? post.signals : []));
}

function piecesOf(recorder: Recorder, posted: PostedCollective, plan: ExchangePlan): Pieces {
  const { rank } = recorder.options;
  const { statement, type } = posted;
  const ranksWith = (side: "input" | "output"): readonly number[] =>
    positionsWith(recorder, posted, side).map((position) => at(statement.team, position));
  const ends = { sources: ranksWith("input"), readers: ranksWith("output"), reduces: collectives[type].reduces };
  const { sends, receipts } = rankPieces(plan, rank, ends);
  countPieces(recorder, posted, ends.readers.length * receipts.reduce((sum, { boxes }) => sum + boxes.length, 0));
  if (sends.length === 0) return { sends: [], receipts };
  const view = pairedView(plan, "input", viewOf(recorder, statement.input));
  const held = heldBy(plan, "input", rank);
  const views = new Map<RankPieces["sends"][number]["boxes"], readonly View[]>();
  const viewsOf = (boxes: RankPieces["sends"][number]["boxes"]): readonly View[] => {
    const known = views.get(boxes) ?? boxes.map((box) => squeezeView(viewOfBox(view, [held], [box])));
    views.set(boxes, known);
    return known;
  };
  return {
    sends: sends.flatMap(({ to, boxes }) =>
      viewsOf(boxes).map((sent): PointToPoint => ({ type: "send", peer: to, view: sent })),
    ),
    receipts,
  };
}

/** A command list has each piece. 1,400 devices that all receive from each other take a minute and 3 GB to verify. */
const mostPieces = 2 ** 21;

/** Counts an exchange by what one rank receives, so that the first rank refuses what would fill memory. */
function countPieces(recorder: Recorder, { statement: { team } }: PostedCollective, pieces: number): void {
  recorder.pieces += pieces;
  if (recorder.pieces <= mostPieces) return;
  fail(recorder, {
    code: "recording-too-long",
    message: "too many pieces of uneven shares move between devices",
    found: `over ${mostPieces} pieces among ${team.length} devices, whose shares of this communication are not equal`,
    expected: `at most ${mostPieces} pieces`,
    help: "give the axis a size of which every chunk is divided evenly by the devices, or use fewer devices",
  });
}

/** Transfers the pieces to the output, or to temporaries that are then combined in the output. */
function receive(
  recorder: Recorder,
  posted: PostedCollective,
  plan: ExchangePlan,
  { receipts }: Pieces,
  transfer: (receives: readonly PointToPoint[]) => void,
): void {
  if (receipts.every(({ boxes }) => boxes.length === 0)) return transfer([]);
  const { rank } = recorder.options;
  const { statement } = posted;
  const output = pairedView(plan, "output", viewOf(recorder, statement.output));
  const held = { input: heldBy(plan, "input", rank), output: heldBy(plan, "output", rank) };
  const reduceOp = statement.reduceOp === null || receipts.length === 1 ? null : reductionOf[statement.reduceOp];
  const parts = receipts.map(({ from, boxes }) => {
    const own = from === rank ? pairedView(plan, "input", viewOf(recorder, statement.input)) : null;
    const place = reduceOp === null ? output : contiguousTemporary(recorder, output);
    const pairs = boxes.map((box) => ({
      source: own === null ? null : viewOfBox(own, [held.input], [box]),
      target: viewOfBox(place, [held.output], [box]),
    }));
    return { from, place, pairs };
  });
  transfer(
    parts.flatMap(({ from, pairs }) =>
      from === rank
        ? []
        : pairs.map(({ target }): PointToPoint => ({ type: "recv", peer: from, view: squeezeView(target) })),
    ),
  );
  for (const { pairs } of parts) {
    for (const { source, target } of pairs) {
      if (source !== null && !sameElements(source, target)) emitCopy(recorder, source, target);
    }
  }
  if (reduceOp === null) return;
  const places = parts.map(({ place }) => place);
  launch(recorder, {
    statement,
    inputs: places,
    outputs: [output],
    inPlace: false,
    fixed: false,
    make: (inputs, outputs): CombineKernel => ({ kind: "combine", op: reduceOp, inputs, outputs }),
  });
  for (const place of places) release(recorder, place);
}

/** Records `body` on another stream. */
function onStream({ streams }: Recorder, stream: CommandStreamId, body: () => void): void {
  const { current } = streams;
  streams.current = stream;
  body();
  streams.current = current;
}
