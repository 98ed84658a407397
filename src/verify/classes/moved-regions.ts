/**
 * The regions that commands touch in each buffer, and where a symmetry moves them. Ranks that write slice r + i in
 * iteration i touch the same slices in another order. What counts is that any two regions of a buffer share as many
 * bytes as their images. Where no offset of a buffer changes, there is nothing to compare.
 */
import type { BufferId } from "../../commands/buffer.ts";
import type { Operand } from "../../commands/kernel.ts";
import type { Program } from "../../commands/program.ts";
import { type Region, regionOf } from "../../commands/region.ts";
import { sameNumbers } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { makeId, at } from "../../support/invariant.ts";
import { overlapsOf } from "../check/region-table.ts";
import { spanOf } from "../check/shared-bytes.ts";
import type { Participants } from "../order/slots.ts";
import type { RankBuffers } from "./rank-buffers.ts";
import type { RankPermutation } from "./rank-group.ts";

/** What is the same in a region and its image. */
type Form = Pick<Operand, "dtype" | "shape" | "strides">;

export interface MovedRegions {
  /** Where the image of a region begins; undefined if it is unknown. */
  imageOf(buffer: number, form: Form, offset: number): number | undefined;
  /** False if the region already has another image. */
  note(buffer: number, form: Form, offset: number, image: number): boolean;
  /** The buffers in which the image of a noted region begins elsewhere. */
  moving(): readonly number[];
  /** Whether all images share as many bytes as what they are images of, and lie inside their buffers. */
  keepOverlaps(): boolean;
}

/** A buffer of which one region is noted, which stays where it is. Most are. */
interface TouchedOnce {
  readonly form: Form;
  readonly offset: number;
}

interface Touched {
  /** By form: images by offset. Forms of the same bytes share them. */
  readonly images: Map<Form, Map<number, number>>;
  last: { readonly form: Form; readonly images: Map<number, number> } | null;
  moves: boolean;
}

export function createMovedRegions({ buffers }: Program): MovedRegions {
  const touched = new Map<number, Touched | TouchedOnce>();
  const touchedIn = (buffer: number): Touched => {
    const known = touched.get(buffer);
    if (known !== undefined && "images" in known) return known;
    const made: Touched = { images: new Map(), last: null, moves: false };
    if (known !== undefined) imagesOf(made, known.form).set(known.offset, known.offset);
    touched.set(buffer, made);
    return made;
  };
  const moving = (): readonly number[] =>
    [...touched].flatMap(([buffer, known]) => ("images" in known && known.moves ? [buffer] : []));
  const imagesOf = (own: Touched, form: Form): Map<number, number> => {
    const { last } = own;
    if (last !== null && sameForm(last.form, form)) return last.images;
    const all = [...own.images];
    const known = all.find(([other]) => sameForm(other, form));
    const images = (known ?? all.find(([other]) => sameBytes(other, form)))?.[1] ?? new Map<number, number>();
    if (known === undefined) own.images.set(form, images);
    own.last = { form: known?.[0] ?? form, images };
    return images;
  };
  return {
    imageOf: (buffer, form, offset) =>
      touched.has(buffer) ? imagesOf(touchedIn(buffer), form).get(offset) : undefined,
    note: (buffer, form, offset, image) => {
      const once = touched.get(buffer);
      if (once === undefined && offset === image) {
        touched.set(buffer, { form, offset });
        return true;
      }
      const isAgain = once !== undefined && !("images" in once) && once.offset === offset && sameForm(once.form, form);
      if (isAgain && offset === image) return true;
      const own = touchedIn(buffer);
      const images = imagesOf(own, form);
      const known = images.get(offset);
      if (known !== undefined) return known === image;
      images.set(offset, image);
      if (offset !== image) own.moves = true;
      return true;
    },
    moving,
    keepOverlaps: () => moving().every((buffer) => keepsOverlaps(touchedIn(buffer).images, at(buffers, buffer).bytes)),
  };
}

/** Whether forms differ at most in axes of one index, and in where contiguous ones are cut. */
function sameBytes(a: Form, b: Form): boolean {
  return a.dtype === b.dtype && sameNumbers(joinedAxes(a), joinedAxes(b));
}

/** Extents and strides in turn. */
function joinedAxes({ shape, strides }: Form): readonly number[] {
  const joined: number[] = [];
  for (const [axis, extent] of shape.entries()) {
    if (extent === 1) continue;
    const stride = at(strides, axis);
    const outer = joined.at(-1);
    if (outer === stride * extent) joined.splice(-2, 2, at(joined, joined.length - 2) * extent, stride);
    else joined.push(extent, stride);
  }
  return joined;
}

export function sameForm(a: Form, b: Form): boolean {
  return a === b || (a.dtype === b.dtype && sameNumbers(a.shape, b.shape) && sameNumbers(a.strides, b.strides));
}

function keepsOverlaps(byForm: ReadonlyMap<Form, ReadonlyMap<number, number>>, bytes: number): boolean {
  const [from, to]: [Region[], Region[]] = [[], []];
  const seen = new Set<ReadonlyMap<number, number>>();
  for (const [form, images] of byForm) {
    if (seen.has(images)) continue;
    seen.add(images);
    const region = regionOf({ ...form, buffer: makeId<BufferId>(0), offset: 0 });
    const [span, unit] = [spanOf(region), dtypes[form.dtype].bytes];
    for (const [offset, image] of images) {
      if (!Number.isSafeInteger(image) || image % unit !== 0 || image < 0 || image + span > bytes) return false;
      from.push({ ...region, offset });
      to.push({ ...region, offset: image });
    }
  }
  return areApart(from) && areApart(to) ? true : sameOverlaps(from, to);
}

/** Whether the regions, by their first and last bytes, do not touch each other. */
function areApart(regions: readonly Region[]): boolean {
  const sorted = regions.toSorted((a, b) => a.offset - b.offset);
  return sorted.every((region, i) => i === 0 || at(sorted, i - 1).offset + spanOf(at(sorted, i - 1)) <= region.offset);
}

function sameOverlaps(from: readonly Region[], to: readonly Region[]): boolean {
  const [own, image] = [overlapsOf(from), overlapsOf(to)];
  return from.every((_, region) => {
    const [start, end] = [at(own.overlaps.start, region), at(own.overlaps.start, region + 1)];
    const [first, last] = [at(image.overlaps.start, region), at(image.overlaps.start, region + 1)];
    if (end - start !== last - first) return false;
    const shared = new Map<number, number>();
    for (let i = start; i < end; i++) shared.set(at(own.overlaps.values, i), at(own.shared, i));
    for (let i = first; i < last; i++) {
      if (shared.get(at(image.overlaps.values, i)) !== at(image.shared, i)) return false;
    }
    return true;
  });
}

// A permutation of ranks, and where it takes slots, transfers and regions, as far as lists have been compared.

export interface Mapped {
  readonly program: Program;
  readonly buffers: RankBuffers;
  /** By rank: where its list differs from that of the first rank like it, null for anywhere. */
  readonly ownPositions: (rank: number) => readonly number[] | null;
  readonly participants: Participants;
  /** The node before each rank's command 0, as in the graph. */
  readonly nodeBase: Int32Array;
}

export interface Mapping extends Mapped {
  readonly to: RankPermutation;
  readonly regions: MovedRegions;
  readonly slots: OneToOne;
  readonly transfers: OneToOne;
  /** Launches that read several slices of one buffer: compared once it is known where other commands move the slices. */
  readonly later: (() => boolean)[];
}

interface OneToOne {
  readonly images: Int32Array;
  /** False if either already belongs to another. */
  pair(from: number, to: number): boolean;
}

export function createOneToOne(count: number): OneToOne {
  const images = new Int32Array(count).fill(-1);
  const sources = new Int32Array(count).fill(-1);
  return {
    images,
    pair: (from, to) => {
      if (images[from] === to && sources[to] === from) return true;
      if (images[from] !== -1 || sources[to] !== -1) return false;
      images[from] = to;
      sources[to] = from;
      return true;
    },
  };
}

export function sameSlot({ program, to, slots }: Mapping, a: number, b: number): boolean {
  const [own, image] = [at(program.slots, a), at(program.slots, b)];
  return at(to, own.signaller) === image.signaller && at(to, own.waiter) === image.waiter && slots.pair(a, b);
}

export function sameBuffer({ program, to, buffers }: Mapping, a: number, b: number): boolean {
  return (
    at(to, at(program.buffers, a).rank) === at(program.buffers, b).rank &&
    at(buffers.numberOf, a) === at(buffers.numberOf, b)
  );
}
