/** Records each kind of statement: one row per kind. Communications and computations have separate files. */
import type { Runs } from "../../ir/runs.ts";
import type { CommandStreamId } from "../../commands/command.ts";
import type { FillKernel } from "../../commands/kernel.ts";
import type { Allocate, ForLoop, HirAliasSelect, IfThenElse, Statement, StreamId, Wait } from "../../host/nodes.ts";
import { isOp } from "../../host/traverse.ts";
import { isChunk } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { dispatch, type RuleTable, at, invariant, unreachable } from "../../support/invariant.ts";
import { indexInto, requireDeclaredShape } from "../checks.ts";
import { launch } from "../launch.ts";
import { bind, dropMemory, letGo, slicesOwn, unbind } from "../memory.ts";
import { recordCommunication, recordPermute } from "./communication.ts";
import { recordShard } from "./shard.ts";
import { recordOp } from "./op.ts";
import { recordGroup, recordHandles, recordPointToPoint } from "./point-to-point.ts";
import { recordLaunch, recordPost } from "./unit.ts";
import { evaluate, evaluateEach, failRecording, type Recorder, type Post } from "../recorder.ts";
import { allocate, findView, isHere, tensorOf, viewOf } from "../tensors.ts";
import { indexedStream, nodeStream, order, waitFor } from "../streams.ts";
import { emitWait } from "../transfers.ts";
import { selectOnEach } from "../views.ts";

/** Records the statements of a scope, whose path is `tape.path`. */
export function recordScope(recorder: Recorder, body: readonly Statement[]): void {
  const { tape } = recorder;
  const depth = tape.path.length;
  body.forEach((statement, position) => {
    tape.path[depth] = position;
    tape.statement = statement;
    tape.origin = null;
    if (isOp(statement)) recordOp(recorder, statement);
    else dispatch(rules, statement, recorder);
    requireFewStreams(recorder);
  });
  tape.path.length = depth;
}

const rules: RuleTable<Exclude<Statement, Op>, void, [Recorder]> = {
  Allocate: recordAllocate,
  Deallocate: ({ tensor }, recorder) => {
    // A tensor that is only on other ranks has nothing to free here; any other tensor must be bound.
    if (!recorder.memory.bindings.has(tensor) && isHere(recorder, tensorOf(recorder, tensor))) viewOf(recorder, tensor);
    unbind(recorder.memory, tensor, recorder.streams.current);
  },
  GetCurrentStream: ({ stream }, { streams }) => {
    streams.byNode.set(stream, streams.current);
  },
  SetCurrentStream: ({ stream }, recorder) => {
    recorder.streams.current = streamOf(recorder, stream);
  },
  Synchronize: ({ stream }, recorder) => {
    order(recorder.streams, streamOf(recorder, stream), recorder.streams.current);
  },
  ForLoop: recordLoop,
  IfThenElse: recordBranch,
  HirAliasSelect: recordAliasSelect,
  ShardByStream: (statement, recorder) => recordShard(recorder, statement),
  Define: ({ name, value }, recorder) => {
    recorder.indices.set(name, evaluate(recorder, value));
  },
  CollectivePermute: (statement, recorder) => recordPermute(recorder, statement),
  Communication: (statement, recorder) => recordCommunication(recorder, statement),
  P2PCommunication: (statement, recorder) => recordPointToPoint(recorder, statement),
  StartCoalescing: (_, recorder) => {
    invariant(recorder.group === null, "coalesced groups do not nest in a valid program");
    recorder.group = [];
  },
  EndCoalescing: (statement, recorder) => recordGroup(recorder, statement),
  ShareMemHandles: (statement, recorder) => recordHandles(recorder, statement),
  Wait: (statement, recorder) => recordWait(recorder, statement),
  PostOnStream: (statement, recorder) => recordPost(recorder, statement),
  LaunchKernel: (statement, recorder) => recordLaunch(recorder, statement),
};

/** With an index, the stream of its value. Otherwise a separate stream, or the one that GetCurrentStream bound. */
function streamOf(recorder: Recorder, id: StreamId): CommandStreamId {
  const { index } = at(recorder.program.streams, id);
  return index === null ? nodeStream(recorder.streams, id) : indexedStream(recorder.streams, evaluate(recorder, index));
}

/** A bound tensor keeps its memory, for example in later iterations and for outputs that the caller allocated. */
function recordAllocate(statement: Allocate, recorder: Recorder): void {
  const { memory, streams } = recorder;
  if (statement.fresh || isChunk(tensorOf(recorder, statement.tensor))) {
    dropMemory(memory, statement.tensor, streams.current);
  } else if (findView(recorder, statement.tensor) !== null) return;
  const view = allocate(recorder, statement.tensor);
  if (!statement.zeroInit) return;
  launch(recorder, {
    statement,
    inputs: [],
    outputs: [view],
    make: (inputs, outputs): FillKernel => ({ kind: "fill", inputs, outputs }),
  });
}

/** Bounds are evaluated once. The index has a value only in the loop's body. */
function recordLoop({ index, start, stop, step, body }: ForLoop, recorder: Recorder): void {
  const { indices, tape } = recorder;
  const [first, end, stride] = [start, stop, step].map((bound) => evaluate(recorder, bound));
  invariant(first !== undefined && end !== undefined && stride !== undefined && stride > 0, "the step is positive");
  countIterations(recorder, Math.max(0, Math.ceil((end - first) / stride)));
  const outer = indices.get(index.name);
  const depth = tape.iteration.length;
  for (let value = first; value < end; value += stride) {
    indices.set(index.name, value);
    tape.iteration[depth] = value;
    recordScope(recorder, body);
  }
  tape.iteration.length = depth;
  if (outer === undefined) indices.delete(index.name);
  else indices.set(index.name, outer);
}

/** A recording is as long as its run. The limit keeps a loop with wrong bounds from filling memory. */
const mostIterations = 2 ** 20;

/** Counts a loop before its first iteration, so that the diagnostic's place is the loop. */
function countIterations(recorder: Recorder, iterations: number): void {
  recorder.iterations += iterations;
  if (recorder.iterations <= mostIterations) return;
  failRecording(recorder, "recording-too-long", "the loops of a host program have too many iterations to record", {
    found: `more than ${mostIterations} iterations in all`,
    expected: `at most ${mostIterations}`,
    help: "check the bounds of the loops",
  });
}

/** The verifier keeps what each stream knows of each other one: 1024 on each of 8 ranks take 256 MiB. */
const mostStreams = 1024;

function requireFewStreams(recorder: Recorder): void {
  if (recorder.streams.infos.length <= mostStreams) return;
  failRecording(recorder, "recording-too-long", "a host program uses too many streams", {
    found: `more than ${mostStreams} streams on one rank`,
    expected: `at most ${mostStreams}`,
    help: "let iterations share streams, for example i % numberOfStreams, and pass fewer with --schedule streams=N",
  });
}

function recordBranch({ predicate, then, else: otherwise }: IfThenElse, recorder: Recorder): void {
  recordScope(recorder, evaluate(recorder, predicate) !== 0 ? then : otherwise);
}

/**
 * Binds the output to the slice, replacing its previous binding. On a rank without data of the input it unbinds the
 * output. Only a communication in which the rank does not use that side may then name the output.
 */
function recordAliasSelect(statement: HirAliasSelect, recorder: Recorder): void {
  const { input, output, axis, index } = statement;
  const { memory, streams } = recorder;
  const source = tensorOf(recorder, input);
  if (!memory.bindings.has(input) && !isHere(recorder, source)) return unbind(memory, output, streams.current);
  const whole = viewOf(recorder, input);
  const { logical } = source.domain;
  const selected = at(logical, axis);
  const position = logical.slice(0, axis).filter(({ iterType }) => iterType !== "reduction").length;
  // A reduced axis takes no memory: every index of it is the whole tensor.
  const view =
    selected.iterType === "reduction"
      ? whole
      : selectOnEach(
          whole,
          position,
          evaluateEach(recorder, index).map((each) =>
            indexInto(recorder, selected, at(whole.shape, position), each, position),
          ),
        );
  selectActual(recorder, statement, selected.iterType === "reduction" ? null : position, view.shape);
  bind(memory, output, { view, owns: slicesOwn(memory), aliasedBy: null }, streams.current);
}

/** Notes the sizes of a slice without axis `position`, if those of its source are not the declared ones. */
function selectActual(
  recorder: Recorder,
  { input, output }: HirAliasSelect,
  position: number | null,
  shape: readonly number[],
): void {
  const { actuals } = recorder;
  const source = actuals.get(input);
  if (source?.differs !== true) {
    requireDeclaredShape(recorder, output, shape);
    actuals.delete(output);
    return;
  }
  const extents = position === null ? source.extents : source.extents.toSpliced(position, 1);
  const exists = new Map<number, (rank: number) => Runs>();
  for (const [axis, own] of source.exists) {
    if (axis !== position) exists.set(position !== null && axis > position ? axis - 1 : axis, own);
  }
  actuals.set(output, { extents, local: shape, differs: true, exists, chunk: null });
}

const awaited: Post = { kind: "awaited" };

/**
 * Wait: the current stream waits for the latest post of a communication.
 * A library's transfer can be waited for once, as in nvFuser; a one-sided half can be waited for on several streams.
 * Throws `not-posted`, `already-waited`.
 */
function recordWait(recorder: Recorder, { target }: Wait): void {
  const { posts, held, streams, tape } = recorder;
  const post = posts.get(target);
  if (post === undefined) {
    return failRecording(recorder, "not-posted", `communication ${target} has not been posted`, {
      found: `Wait before any post of ${target} in this run`,
      expected: "a post before the Wait",
      help: "post the communication on the same path of branches and iterations, before the Wait",
    });
  }
  const { current } = streams;
  switch (post.kind) {
    case "awaited":
      return failRecording(recorder, "already-waited", `communication ${target} is waited for twice`, {
        found: `a second Wait since the latest post of ${target}`,
        expected: "one Wait per post",
        help: "remove the second Wait; another stream that needs the result synchronizes with the stream that waited",
      });
    case "nothing":
      posts.set(target, awaited);
      return;
    case "event":
      posts.set(target, awaited);
      waitFor(tape, post.event, current);
      letGo(recorder.memory, held.get(target) ?? [], current);
      held.delete(target);
      return;
    case "signals":
      if (post.stream !== null) order(streams, post.stream, current);
      for (const signal of post.signals) emitWait(recorder, signal, current);
      // Only one wait can take a signal. A second Wait follows the stream that took it.
      posts.set(target, { kind: "stream", stream: current });
      return;
    case "stream":
      return order(streams, post.stream, current);
    default:
      return unreachable(post);
  }
}
