/** ShardByStream: binds a tensor to a chunk of an axis of another one (record/views.ts). */
import { narrowView, sameNumbers, type View } from "../../commands/view.ts";
import { agreed, UnlikeError } from "../../host/alike/classes.ts";
import type { ShardByStream } from "../../host/nodes.ts";
import { type Tensor, withoutReductions } from "../../ir/domain.ts";
import type { SetOp } from "../../ir/ops/op.ts";
import { countBelow, countIn, intersection, runsBetween } from "../../ir/runs.ts";
import { evaluateScalar, leavesOf } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";
import type { Actual, ActualAxisPair, ChunkNumber } from "../actual-sizes.ts";
import { isCutByDevices, withSizes } from "../actual.ts";
import { rankNames } from "../alike/alike.ts";
import { outOfRange, requireShape, localShapeText } from "../checks.ts";
import { emitCopy } from "../launch.ts";
import { bind, slicesOwn, unbind } from "../memory.ts";
import { evaluate, evaluateEach, failRecording, ranksOf, type Recorder } from "../recorder.ts";
import { localExtents, isHere, localLayoutOf, longestLayout, outputView, tensorOf, viewOf } from "../tensors.ts";
import { chunkExtent, chunkOf, narrowOnEach, sameElements } from "../views.ts";
import type { Side } from "./collective-sides.ts";
import { boxes, heldBy, pairOf, viewOfBox } from "./exchange-plan.ts";

/** Binds the output to the chunk, whatever it was bound to. On a rank without data of the input it unbinds it. */
export function recordShard(recorder: Recorder, statement: ShardByStream): void {
  const { memory, streams, actuals } = recorder;
  const ranks = ranksOf(recorder);
  const { input, output, axis } = statement;
  const [source, made] = [tensorOf(recorder, input), tensorOf(recorder, output)];
  const number = cutOf(recorder, statement);
  if (number.isByRank) requireEqualChunks(recorder, source, number);
  const chunk = chunkOf(recorder, source, number);
  const declared = localExtents(recorder, made);
  const known = actuals.get(input);
  const own = agreed(ranks.map((rank) => countIn(chunk.runs(rank))));
  const isSpread = isCutByDevices(made, at(withoutReductions(made.domain.logical), axis));
  // A piece of a device's share may be the whole axis of another tensor.
  const extents = (known?.extents ?? localExtents(recorder, source)).with(
    axis,
    isSpread ? chunkExtent(recorder, chunk) : own,
  );
  const exists = new Map(known?.exists);
  exists.set(axis, isSpread ? chunk.exists : (rank: number) => runsBetween(0, countIn(chunk.runs(rank))));
  if (!memory.bindings.has(input) && !isHere(recorder, source)) {
    unbind(memory, output, streams.current);
    actuals.set(output, { extents, local: [], differs: !sameNumbers(extents, declared), exists, chunk });
    return;
  }
  const whole = viewOf(recorder, input);
  const starts = ranks.map((rank) => countBelow(chunk.share(rank), chunk.runs(rank)[0]?.start ?? 0));
  const view = narrowOnEach(whole, axis, starts, own);
  requireFit(recorder, statement, view.shape);
  bind(memory, output, { view, owns: slicesOwn(memory), aliasedBy: null }, streams.current);
  const differs = !sameNumbers(extents, declared) || !sameNumbers(view.shape, localLayoutOf(recorder, made).shape);
  actuals.set(output, { extents, local: view.shape, differs, exists, chunk });
}

/** A chunk may be shorter than declared, but not longer. */
function requireFit(recorder: Recorder, { input, output, axis }: ShardByStream, shape: readonly number[]): void {
  const longest = longestLayout(recorder, tensorOf(recorder, output)).shape;
  if (at(shape, axis) > at(longest, axis)) requireShape(recorder, `T${output}`, longest, shape);
  if (recorder.actuals.get(input)?.differs === true) return;
  const { shape: declared } = localLayoutOf(recorder, tensorOf(recorder, output));
  requireShape(recorder, `T${output}`, declared.with(axis, at(shape, axis)), shape);
}

/** Which chunk the statement binds. */
function cutOf(
  recorder: Recorder,
  { output, axis, parts, index, swizzled }: ShardByStream,
): ChunkNumber & { readonly isByRank: boolean } {
  const count = evaluate(recorder, parts);
  if (count < 1) {
    failRecording(recorder, "index-out-of-range", "a ShardByStream has no chunks", {
      found: `${count} chunks`,
      expected: "at least 1",
      help: "correct the number of chunks",
    });
  }
  const each = evaluateEach(recorder, index);
  const beyond = each.find((own) => own < 0 || own >= count);
  if (beyond !== undefined) outOfRange(recorder, `chunk ${beyond}`, axis, count);
  const indexOn = indexOnRanks(recorder, index, each);
  const { mesh } = tensorOf(recorder, output);
  const first = (rank: number): number => (swizzled && mesh?.has(rank) === true ? mesh.coordinate(rank, "DIDx") : 0);
  return {
    axis,
    parts: count,
    indexOn: (rank) => (indexOn.on(rank) + first(rank)) % count,
    isSameOnAll: indexOn.isSameOnAll && !swizzled,
    isByRank: indexOn.isByRank,
  };
}

/**
 * A rank that is recorded alone takes its index for that of all ranks, where the index does not name the rank. Of equal
 * chunks that makes no difference.
 */
function requireEqualChunks(recorder: Recorder, source: Tensor, number: ChunkNumber): void {
  const countsOf = (index: number): readonly number[] => {
    const { inBlock } = chunkOf(recorder, source, { ...number, indexOn: () => index });
    return ranksOf(recorder).map((rank) => countIn(inBlock(rank)));
  };
  if (!sameNumbers(countsOf(0), countsOf(number.parts - 1))) throw new UnlikeError(null);
}

interface IndexOnRanks {
  readonly on: (rank: number) => number;
  readonly isSameOnAll: boolean;
  /** Whether it differs between the ranks that are recorded although it does not name the rank. */
  readonly isByRank: boolean;
}

/** The value that the index has on each rank at this time. `each`: on those that are recorded. */
function indexOnRanks(recorder: Recorder, index: ShardByStream["index"], each: readonly number[]): IndexOnRanks {
  const own = at(each, 0);
  if (![...leavesOf(index)].some((name) => rankNames.has(name))) {
    if (each.every((other) => other === own)) return { on: () => own, isSameOnAll: true, isByRank: false };
    const byRank = new Map(ranksOf(recorder).map((rank, k) => [rank, at(each, k)]));
    return { on: (rank) => byRank.get(rank) ?? own, isSameOnAll: false, isByRank: true };
  }
  const indices = recorder.indices.size === 0 ? recorder.indices : new Map(recorder.indices);
  const valueOn = (rank: number): number | undefined =>
    evaluateScalar(index, (name) => (rankNames.has(name) ? rank : (indices.get(name) ?? recorder.sizeOf(name))));
  if (ranksOf(recorder).some((rank, k) => valueOn(rank) !== (each[k] ?? own))) throw new UnlikeError(null);
  return { on: (rank) => valueOn(rank) ?? own, isSameOnAll: false, isByRank: false };
}

// A Set between shardings of one mesh in which every device has all of what it gets. The output is bound to the
// device's part of the input if that is one box of elements, else the parts are copied.
//
//   rank 1 of 2: T1[DIDx 2 of i{8}, _] = Set(T0[i{8}, _], local)     T1 is rows 4 to 7 of T0

/** `bind` binds the output to a view, or copies the view to the output's memory. */
export function recordLocalSet(recorder: Recorder, op: SetOp, bind: (view: View, actual: Actual | null) => void): void {
  const source = at(op.inputs, 0);
  const [input, output] = [tensorOf(recorder, source), tensorOf(recorder, op.output)];
  const pairs = pairsOf(recorder, input, output);
  const view = viewOf(recorder, source);
  const onRanks = ranksOf(recorder).map((rank) => {
    const held = { input: heldBy({ pairs }, "input", rank), output: heldBy({ pairs }, "output", rank) };
    const common = held.output.map((runs, axis) => intersection(runs, at(held.input, axis)));
    return { held, parts: boxes(common), common };
  });
  const lengths = agreed(
    onRanks.map(({ common }) => common.map(countIn)),
    sameNumbers,
  );
  const wanted = agreed(
    onRanks.map(({ held }) => held.output.map(countIn)),
    sameNumbers,
  );
  if (!sameNumbers(lengths, wanted)) reject(recorder, lengths, wanted);
  const known = recorder.actuals.get(source);
  const actual =
    known?.differs === true
      ? withSizes(
          recorder,
          output,
          lengths.map((local, axis) => ({
            axis,
            extent: at(known.extents, axis),
            local,
            exists: known.exists.get(axis),
          })),
        )
      : null;
  const count = agreed(onRanks.map(({ parts }) => parts.length));
  if (count === 0)
    return bind(
      lengths.reduce((part, length, axis) => narrowView(part, axis, 0, length), view),
      actual,
    );
  const partOf = (whole: View, side: Side, part: number): View =>
    viewOfBox(
      whole,
      onRanks.map(({ held }) => held[side]),
      onRanks.map(({ parts }) => at(parts, part)),
    );
  if (count === 1) return bind(partOf(view, "input", 0), actual);
  const target = outputView(recorder, op.output, actual);
  for (let part = 0; part < count; part++) {
    const [from, to] = [partOf(view, "input", part), partOf(target, "output", part)];
    if (!sameElements(from, to)) emitCopy(recorder, from, to);
  }
}

function pairsOf(recorder: Recorder, input: Tensor, output: Tensor): readonly ActualAxisPair[] {
  return withoutReductions(input.domain.logical).map((_, axis) => {
    const pair = pairOf(recorder, input, axis, output, axis);
    return pair === null ? reject(recorder, [], []) : pair.axes;
  });
}

function reject(recorder: Recorder, found: readonly number[], expected: readonly number[]): never {
  return failRecording(recorder, "size-mismatch", "a local Set needs elements that the device does not have", {
    found: localShapeText(found),
    expected: localShapeText(expected),
    help: "remove local=true: then the Set is a communication",
  });
}
