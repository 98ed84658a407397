/**
 * Copies a strided box of elements to another box of the same shape, in one memory. A run that is contiguous on both
 * sides moves at once: a long run by memory.copy, a short run word by word, because a call then costs more than the
 * loop.
 */
import { at, invariant } from "../support/invariant.ts";
import { encodeModule } from "../support/wasm/encoding.ts";
import { get } from "../support/wasm/instructions.ts";
import { instantiateWasm, isShared, type WasmMemory } from "../support/webassembly.ts";

/** Copies bytes within a memory. */
export type MoveBytes = (to: number, from: number, bytes: number) => void;

/** By an instruction: in a shared memory, copyWithin takes twice as long, because it moves word by word. */
export function createMoveBytes(memory: WasmMemory): MoveBytes {
  const body = [...get(0), ...get(1), ...get(2), 0xfc, 0x0a, 0x00, 0x00];
  const move = { name: "move", parameters: 3, locals: [], body };
  const exported = instantiateWasm(encodeModule([move], isShared(memory) ? "shared" : "unshared"), memory)["move"];
  invariant(exported !== undefined, "a module exports its functions");
  return exported;
}

export interface CopyShape {
  readonly shape: readonly number[];
  readonly elementBytes: number;
  /** In elements, one per axis of `shape`. */
  readonly source: readonly number[];
  readonly destination: readonly number[];
}

/** Takes byte addresses that are multiples of the element size. The boxes do not overlap. */
export type PreparedCopy = (source: number, destination: number) => void;

/** In bytes. Shorter runs are copied word by word. */
const longRun = 64;

export function prepareCopy(
  { buffer }: WasmMemory,
  move: MoveBytes,
  { shape, elementBytes, source, destination }: CopyShape,
): PreparedCopy {
  const word = Math.min(elementBytes, 4);
  const elements = stridedCopyAxes(shape, elementBytes, source, destination);
  const axes = joinCopyAxes([...elements, { extent: elementBytes / word, source: word, destination: word }]);
  const inner = axes.at(-1) ?? { extent: 1, source: word, destination: word };
  const run = inner.extent * word;
  if (inner.source === word && inner.destination === word && run >= longRun) {
    return overAxes(axes.slice(0, -1), (from, to) => move(to, from, run));
  }
  const words = wordsOf(buffer, word);
  const row = axes.at(-2) ?? { extent: 1, source: 0, destination: 0 };
  const rowWords = inWords(row, word);
  const innerWords = inWords(inner, word);
  return overAxes(axes.slice(0, -2), (from, to) => {
    copyPlane(words, from / word, to / word, rowWords, innerWords);
  });
}

/** Integer words, because loading and storing a float may change the bits of a NaN. */
type Words = Uint8Array | Uint16Array | Int32Array;

function wordsOf(buffer: ArrayBufferLike, word: number): Words {
  if (word === 1) return new Uint8Array(buffer);
  if (word === 2) return new Uint16Array(buffer);
  invariant(word === 4, "elements have 1, 2, 4 or 8 bytes", { word });
  return new Int32Array(buffer);
}

function inWords({ extent, source, destination }: CopyAxis, word: number): CopyAxis {
  return { extent, source: source / word, destination: destination / word };
}

function copyPlane(words: Words, from: number, to: number, row: CopyAxis, inner: CopyAxis): void {
  for (let i = 0; i < row.extent; i++) {
    let source = from + i * row.source;
    let destination = to + i * row.destination;
    for (let j = 0; j < inner.extent; j++) {
      words[destination] = words[source] ?? 0;
      source += inner.source;
      destination += inner.destination;
    }
  }
}

function overAxes(axes: readonly CopyAxis[], copy: PreparedCopy): PreparedCopy {
  return axes.reduceRight<PreparedCopy>(
    (inner, { extent, source, destination }) =>
      (from, to) => {
        for (let i = 0; i < extent; i++) inner(from + i * source, to + i * destination);
      },
    copy,
  );
}

// The axes along which a strided box is copied, joined to as few as possible.

export interface CopyAxis {
  readonly extent: number;
  /** In bytes. */
  readonly source: number;
  readonly destination: number;
}

/** Axes in bytes, of strides in elements. */
export function stridedCopyAxes(
  shape: readonly number[],
  elementBytes: number,
  source: readonly number[],
  destination: readonly number[],
): readonly CopyAxis[] {
  return shape.map((extent, i) => ({
    extent,
    source: at(source, i) * elementBytes,
    destination: at(destination, i) * elementBytes,
  }));
}

/**
 * Drops axes of one element, and merges adjacent axes that step evenly on both sides. The axis with the smallest step
 * becomes innermost.
 */
export function joinCopyAxes(axes: readonly CopyAxis[]): readonly CopyAxis[] {
  const ordered = axes.filter(({ extent }) => extent > 1).toSorted((a, b) => b.destination - a.destination);
  return ordered.reduce<readonly CopyAxis[]>((joined, axis) => {
    const outer = joined.at(-1);
    const joins = outer?.source === axis.source * axis.extent && outer.destination === axis.destination * axis.extent;
    if (!joins) return [...joined, axis];
    return [...joined.slice(0, -1), { ...axis, extent: axis.extent * outer.extent }];
  }, []);
}
