/**
 * Cuts the moves of a transfer or a copy into parts that may run concurrently. Large chains of moves
 * (machine/transfers/moves.ts) are sliced along one axis, small ones grouped. Every element is moved or combined as in
 * the whole, so bits stay the same.
 */
import { elementCount, type View } from "../../../commands/view.ts";
import type { Chain, Move } from "../../../machine/transfers/moves.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";

const lineBytes = 64;

/** Bytes that a chain reads and writes. */
export function chainBytes(chain: Chain): number {
  return chain.reduce(
    (sum, { sources, destination: { dtype, shape } }) =>
      sum + elementCount(shape) * dtypes[dtype].bytes * (sources.length + 1),
    0,
  );
}

/** At most `count` parts of about equal bytes; each part is a sequence of chains. */
export function cutChains(chains: readonly Chain[], count: number): readonly (readonly Chain[])[] {
  const share = chains.reduce((sum, chain) => sum + chainBytes(chain), 0) / count;
  const parts = Array.from({ length: count }, (): Chain[] => []);
  let before = 0;
  for (const slice of chains.flatMap((chain) => slicesOf(chain, Math.ceil(chainBytes(chain) / share)))) {
    const bytes = chainBytes(slice);
    // A slice belongs to the part that contains its middle.
    at(parts, Math.min(count - 1, Math.floor((before + bytes / 2) / share))).push(slice);
    before += bytes;
  }
  return parts.filter(({ length }) => length > 0);
}

/** At most `count` slices along the outermost axis of the result that has enough elements, or else the longest axis. */
function slicesOf(chain: Chain, count: number): readonly Chain[] {
  const { shape, strides, dtype } = at(chain, 0).destination;
  if (count < 2 || shape.length === 0) return [chain];
  const outermost = [...shape.keys()].toSorted((a, b) => at(strides, b) - at(strides, a));
  const longest = at(
    [...shape.keys()].toSorted((a, b) => at(shape, b) - at(shape, a)),
    0,
  );
  const axis = outermost.find((each) => at(shape, each) >= count) ?? longest;
  const extent = at(shape, axis);
  // No two workers write the same cache line.
  const grain = strides[axis] === 1 ? lineBytes / dtypes[dtype].bytes : 1;
  const blocks = Math.ceil(extent / grain);
  const slices = Math.min(count, blocks);
  const boundary = (i: number): number => Math.min(extent, Math.floor((i * blocks) / slices) * grain);
  return Array.from({ length: slices }, (_, i) => {
    const [start, stop] = [boundary(i), boundary(i + 1)];
    return chain.map((move) => sliceOfMove(move, axis, start, stop - start));
  });
}

function sliceOfMove({ op, sources, destination }: Move, axis: number, start: number, length: number): Move {
  const slice = (view: View): View => ({
    ...view,
    offset: view.offset + start * at(view.strides, axis) * dtypes[view.dtype].bytes,
    shape: view.shape.with(axis, length),
  });
  return {
    op,
    sources: sources.map(({ from, view }) => ({ from, view: slice(view) })),
    destination: slice(destination),
  };
}
