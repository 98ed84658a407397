/** ShardByStream: binds a tensor to a chunk of an axis of another one (record/chunks.ts). */
import { narrowView, sameNumbers } from "../../commands/view.ts";
import { countBelow, countIn, runsBetween } from "../../ir/runs.ts";
import { withoutReductions } from "../../ir/domain.ts";
import { evaluateScalar } from "../../ir/scalar/scalar.ts";
import type { ShardByStream } from "../../host/nodes.ts";
import { at } from "../../support/invariant.ts";
import { outOfRange, requireShape } from "../checks.ts";
import type { ChunkNumber } from "../actual-sizes.ts";
import { isShared } from "../actual.ts";
import { chunkExtent, chunkOf } from "../chunks.ts";
import { bind, slicesOwn, unbind } from "../memory.ts";
import { evaluate, fail, type Recorder } from "../recorder.ts";
import { extentsOf, isHere, localLayoutOf, longestLayout, tensorOf, viewOf } from "../tensors.ts";

/** Binds the output to the chunk, whatever it was bound to. On a rank without data of the input it unbinds it. */
export function recordShard(recorder: Recorder, statement: ShardByStream): void {
  const { memory, streams, actuals, options } = recorder;
  const { input, output, axis } = statement;
  const [source, made] = [tensorOf(recorder, input), tensorOf(recorder, output)];
  const chunk = chunkOf(recorder, source, cutOf(recorder, statement));
  const declared = extentsOf(recorder, made);
  const known = actuals.get(input);
  const own = countIn(chunk.runs(options.rank));
  const isSpread = isShared(made, at(withoutReductions(made.domain.logical), axis));
  // A piece of a device's share may be the whole axis of another tensor.
  const extents = (known?.extents ?? extentsOf(recorder, source)).with(
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
  const [first] = chunk.runs(options.rank);
  const view = narrowView(whole, axis, countBelow(chunk.share(options.rank), first?.start ?? 0), own);
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
function cutOf(recorder: Recorder, { output, axis, parts, index, swizzled }: ShardByStream): ChunkNumber {
  const count = evaluate(recorder, parts);
  if (count < 1) {
    fail(recorder, {
      code: "index-out-of-range",
      message: "a ShardByStream has no chunks",
      found: `${count} chunks`,
      expected: "at least 1",
      help: "correct the number of chunks",
    });
  }
  const own = evaluate(recorder, index);
  if (own < 0 || own >= count) outOfRange(recorder, `chunk ${own}`, axis, count);
  const indexOn = indexOnRanks(recorder, index, own);
  const { mesh } = tensorOf(recorder, output);
  const first = (rank: number): number => (swizzled && mesh?.has(rank) === true ? mesh.coordinate(rank, "DIDx") : 0);
  return {
    axis,
    parts: count,
    indexOn: (rank) => (indexOn.on(rank) + first(rank)) % count,
    isSameOnAll: indexOn.isSameOnAll && !swizzled,
  };
}

const rankNames = ["rank", "deviceIdx.x"];

/** The value that the index has on each rank at this time. */
function indexOnRanks(
  recorder: Recorder,
  index: ShardByStream["index"],
  own: number,
): { readonly on: (rank: number) => number; readonly isSameOnAll: boolean } {
  let usesRank = false;
  const indices = recorder.indices.size === 0 ? recorder.indices : new Map(recorder.indices);
  const valueOn = (rank: number): number | undefined =>
    evaluateScalar(index, (name) => {
      usesRank ||= rankNames.includes(name);
      return rankNames.includes(name) ? rank : (indices.get(name) ?? recorder.sizeOf(name));
    });
  valueOn(recorder.options.rank);
  return { on: usesRank ? (rank) => valueOn(rank) ?? own : () => own, isSameOnAll: !usesRank };
}
