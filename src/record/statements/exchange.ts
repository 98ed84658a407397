/**
 * A communication with unequal slices (exchange-plan.ts): sends and receives of the pieces as one group, and a copy of
 * the rank's own piece. A ReduceScatter receives into temporaries, which one kernel combines in team order. Ranks
 * without pieces issue nothing.
 */
import { collectives } from "../../commands/collectives.ts";
import type { CommandStreamId, PointToPoint, PointToPointGroup } from "../../commands/command.ts";
import type { CombineKernel } from "../../commands/kernel.ts";
import type { View } from "../../commands/view.ts";
import { agreed } from "../../host/alike/classes.ts";
import { type ReduceOpType, reductionOf } from "../../host/collectives.ts";
import { at, getOrMake } from "../../support/invariant.ts";
import type { ExchangePlan } from "../actual-sizes.ts";
import { viewOn, viewOnEach } from "../alike/alike.ts";
import { contiguousTemporary, emitCopy, launch, release } from "../launch.ts";
import { currentProtocol, failRecording, type Post, recordedRank, ranksOf, type Recorder } from "../recorder.ts";
import { type Communicator, communicatorStream, order, recordOn } from "../streams.ts";
import { viewOf } from "../tensors.ts";
import { emitTransfer, emitWait } from "../transfers.ts";
import { sameElements, squeezeView } from "../views.ts";
import { positionsWith, type PostedCollective, type Side } from "./collective-sides.ts";
import { heldBy, pairedView, rankPieces, type RankPieces, viewOfBox, type WantedBoxes } from "./exchange-plan.ts";
import { oneSided } from "./point-to-point.ts";

/** What one rank gives and gets. */
interface Pieces {
  readonly sends: readonly PointToPoint[];
  readonly receipts: RankPieces["receipts"];
}

/** Of rank number k. */
type OpsOn = (k: number) => readonly PointToPoint[];

/** Records the part of each rank: a group of the library's, or one-sided copies with the CUDA backend. */
export function recordExchange(
  recorder: Recorder,
  posted: PostedCollective,
  plan: ExchangePlan,
  communicator: Communicator,
): Post {
  const { streams, tape } = recorder;
  const pieces = piecesOf(recorder, posted, plan);
  if (agreed(pieces.map((own) => own.sends.length === 0 && receivesNothing(own)))) return { kind: "nothing" };
  if (posted.statement.backend === "cuda") return exchangeOneSided(recorder, posted, plan, pieces);
  const library = communicatorStream(streams, communicator);
  order(streams, streams.current, library);
  onStream(recorder, library, () => {
    receive(recorder, posted, plan, pieces, (receivesOn) => {
      const operations = pieces.map(({ sends }, k): PointToPointGroup => {
        return { kind: "group", ops: [...sends, ...receivesOn(k)] };
      });
      if (agreed(operations.map(({ ops }) => ops.length === 0))) return;
      const operationOn = (k: number): PointToPointGroup => at(operations, k);
      emitTransfer(recorder, library, { communicator, operation: operationOn(0), operationOn });
    });
  });
  return { kind: "event", event: recordOn(tape, library) };
}

function receivesNothing({ receipts }: Pieces): boolean {
  return receipts.every(({ boxes }) => boxes.length === 0);
}

/** Signals first and waits later, so that ranks with one queue each do not wait for each other. */
function exchangeOneSided(
  recorder: Recorder,
  posted: PostedCollective,
  plan: ExchangePlan,
  pieces: readonly Pieces[],
): Post {
  const { streams } = recorder;
  const { current } = streams;
  const posts: Post[] = [];
  const run = (opsOn: OpsOn): void => {
    const each = pieces.map((_, k) => opsOn(k));
    for (const i of Array(agreed(each.map(({ length }) => length))).keys()) {
      const ops = each.map((own) => at(own, i));
      const peers = ops.map(({ peer }) => peer);
      posts.push(
        oneSided(recorder, agreed(ops.map(({ type }) => type)), peers, viewOnEach(ops.map(({ view }) => view))),
      );
    }
  };
  const sendsOn: OpsOn = (k) => at(pieces, k).sends;
  const { reduces } = collectives[posted.type];
  receive(recorder, posted, plan, pieces, (receivesOn) => {
    if (currentProtocol(recorder) === "get") {
      run(sendsOn);
      run(receivesOn);
      return;
    }
    run(receivesOn);
    const arrivals = posts.splice(0);
    run(sendsOn);
    if (!reduces) posts.push(...arrivals);
    else for (const signal of signalsOf(arrivals)) emitWait(recorder, signal, current);
  });
  return { kind: "signals", stream: current, signals: signalsOf(posts) };
}

type Signals = Extract<Post, { kind: "signals" }>["signals"];

export function signalsOf(posts: readonly Post[]): Signals {
  return posts.flatMap((post) => (post.kind === "signals" ? post.signals : []));
}

/** What each rank that is recorded gives and gets. */
function piecesOf(recorder: Recorder, posted: PostedCollective, plan: ExchangePlan): readonly Pieces[] {
  const { statement, type, teams } = posted;
  const { reduces } = collectives[type];
  const ranksWith = (side: Side): ((team: readonly number[]) => readonly number[]) => {
    const positions = positionsWith(recorder, posted, side);
    return (team) => positions.map((position) => at(team, position));
  };
  const [sourcesOf, readersOf] = [ranksWith("input"), ranksWith("output")];
  // Ranks that only receive may lack the input.
  let sent: View | null = null;
  const whole = (): View => (sent ??= pairedView(plan, "input", viewOf(recorder, statement.input)));
  const wanted: WantedBoxes = { latest: null };
  return ranksOf(recorder).map((rank, k) => {
    const team = teams[k] ?? at(teams, 0);
    const ends = { sources: sourcesOf(team), readers: readersOf(team), reduces };
    const { sends, receipts } = rankPieces(plan, rank, ends, wanted);
    if (k === 0) {
      countPieces(recorder, posted, ends.readers.length * receipts.reduce((sum, { boxes }) => sum + boxes.length, 0));
    }
    if (sends.length === 0) return { sends: [], receipts };
    const view = viewOn(whole(), k);
    const held = heldBy(plan, "input", rank);
    const views = new Map<RankPieces["sends"][number]["boxes"], readonly View[]>();
    const viewsOf = (boxes: RankPieces["sends"][number]["boxes"]): readonly View[] => {
      return getOrMake(views, boxes, () => boxes.map((box) => squeezeView(viewOfBox(view, [held], [box]))));
    };
    const operations = sends.flatMap(({ to, boxes }) =>
      viewsOf(boxes).map((part): PointToPoint => ({ type: "send", peer: to, view: part })),
    );
    return { sends: operations, receipts };
  });
}

/** A command list has each piece. 1,400 devices that all receive from each other take a minute and 3 GB to verify. */
const mostPieces = 2 ** 21;

/** Counts an exchange by what one rank receives, so that the first rank refuses what would fill memory. */
function countPieces(recorder: Recorder, { statement: { team } }: PostedCollective, pieces: number): void {
  recorder.pieces += pieces;
  if (recorder.pieces <= mostPieces) return;
  failRecording(recorder, "recording-too-long", "too many pieces of uneven shares move between devices", {
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
  pieces: readonly Pieces[],
  transfer: (receivesOn: OpsOn) => void,
): void {
  if (agreed(pieces.map(receivesNothing))) return transfer(() => []);
  const { statement } = posted;
  const output = pairedView(plan, "output", viewOf(recorder, statement.output));
  const { reduceOp } = statement;
  if (reduceOp !== null && agreed(pieces.map(({ receipts }) => receipts.length > 1))) {
    return receiveParts(recorder, posted, plan, at(pieces, 0), { output, reduceOp, transfer });
  }
  const ranks = ranksOf(recorder);
  const held = ranks.map((rank) => heldBy(plan, "output", rank));
  // Ranks that want the same have the same boxes, and their views if the output lies alike on them.
  const known = new Map<View, Map<RankPieces["receipts"][number]["boxes"], readonly PointToPoint[]>>();
  transfer((k) => {
    const view = viewOn(output, k);
    const ofView = getOrMake(
      known,
      view,
      () => new Map<RankPieces["receipts"][number]["boxes"], readonly PointToPoint[]>(),
    );
    return at(pieces, k).receipts.flatMap(({ from, boxes }) => {
      if (from === ranks[k]) return [];
      return getOrMake(ofView, boxes, () => receivesOf(view, at(held, k), from, boxes));
    });
  });
  const own = ranks.map((rank, k) => at(pieces, k).receipts.find(({ from }) => from === rank)?.boxes ?? []);
  for (const i of Array(agreed(own.map(({ length }) => length))).keys()) {
    const boxes = own.map((parts) => at(parts, i));
    const source = viewOfBox(
      pairedView(plan, "input", viewOf(recorder, statement.input)),
      ranks.map((rank) => heldBy(plan, "input", rank)),
      boxes,
    );
    const target = viewOfBox(output, held, boxes);
    if (!sameElements(source, target)) emitCopy(recorder, source, target);
  }
}

function receivesOf(
  view: View,
  held: ReturnType<typeof heldBy>,
  from: number,
  boxes: RankPieces["receipts"][number]["boxes"],
): readonly PointToPoint[] {
  return boxes.map((box) => ({ type: "recv", peer: from, view: squeezeView(viewOfBox(view, [held], [box])) }));
}

/** Transfers the parts of one rank, which is recorded alone: its own is in another temporary than those of other ranks. */
function receiveParts(
  recorder: Recorder,
  { statement }: PostedCollective,
  plan: ExchangePlan,
  { receipts }: Pieces,
  {
    output,
    reduceOp,
    transfer,
  }: { readonly output: View; readonly reduceOp: ReduceOpType; readonly transfer: (receivesOn: OpsOn) => void },
): void {
  const rank = recordedRank(recorder);
  const held = { input: heldBy(plan, "input", rank), output: heldBy(plan, "output", rank) };
  const parts = receipts.map(({ from, boxes }) => ({ from, boxes, place: contiguousTemporary(recorder, output) }));
  transfer(() =>
    parts.flatMap(({ from, boxes, place }) => (from === rank ? [] : receivesOf(place, held.output, from, boxes))),
  );
  for (const { from, boxes, place } of parts) {
    if (from !== rank) continue;
    const own = pairedView(plan, "input", viewOf(recorder, statement.input));
    for (const box of boxes) {
      emitCopy(recorder, viewOfBox(own, [held.input], [box]), viewOfBox(place, [held.output], [box]));
    }
  }
  const places = parts.map(({ place }) => place);
  launch(recorder, {
    statement,
    inputs: places,
    outputs: [output],
    fixed: false,
    make: (inputs, outputs): CombineKernel => ({ kind: "combine", op: reductionOf[reduceOp], inputs, outputs }),
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
