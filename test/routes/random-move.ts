/** Random reshardings over meshes of one to four dimensions. A seed gives the same one on every machine. */
import { at } from "../../src/support/invariant.ts";
import { createRandom, type Random } from "../../src/support/random.ts";
import { type Dimension, type Layout, layout, product } from "./layout.ts";
import { sayable } from "./place-layout.ts";
import type { Move } from "./reshard-program.ts";

const names = ["x", "y", "z", "w"] as const;
const mostDevices = 24;

export interface RandomMove extends Move {
  /** The seed, then the notation of layout.ts: `17: 12 8, x2 y2 [x][y] -> x2 y2 [y][x] on 3 2 1 0`. */
  readonly name: string;
}

/** Draws again until Braid can say both layouts. */
export function randomMove(seed: number): RandomMove {
  const random = createRandom(seed);
  for (;;) {
    const { text, ...move } = drawMove(random);
    if (sayable(move.before) === null || sayable(move.after) === null) continue;
    return { ...move, name: `${seed}: ${text}` };
  }
}

/** Mostly on one mesh; else on its devices in another order, or on a mesh that begins at another device. */
function drawMove(random: Random): Move & { readonly text: string } {
  const shape = Array.from({ length: 1 + random.integer(3) }, () => pick(random, [4, 6, 8, 12, 16]));
  const mesh = drawMesh(random);
  const before = drawSide(random, shape, mesh, null);
  const where = random.integer(6);
  const meshAfter = where === 0 ? drawMesh(random) : mesh;
  const devices =
    where === 0 ? inOrder(meshAfter, random.integer(3)) : where === 1 ? shuffled(random, inOrder(mesh, 0)) : null;
  const after = drawSide(random, shape, meshAfter, devices);
  return { shape, before: before.side, after: after.side, text: `${shape.join(" ")}, ${before.text} -> ${after.text}` };
}

function drawMesh(random: Random): readonly Dimension[] {
  const used = names.slice(0, 1 + random.integer(names.length));
  for (;;) {
    const mesh = used.map((name) => ({ name, size: pick(random, [2, 2, 3, 4]) }));
    if (product(mesh.map(({ size }) => size)) <= mostDevices) return mesh;
  }
}

/** Each dimension is on one of the axes or on none, or its halves are, in any order. */
function drawSide(
  random: Random,
  shape: readonly number[],
  mesh: readonly Dimension[],
  devices: readonly number[] | null,
): { readonly side: Layout; readonly text: string } {
  const halves = mesh.flatMap(({ name, size }) =>
    size === 4 && random.integer(4) === 0 ? [`${name}(1)2`, `${name}(2)2`] : [name],
  );
  const axes = shape.map((): string[] => []);
  for (const part of shuffled(random, halves)) axes[random.integer(shape.length + 1)]?.push(part);
  const meshText = mesh.map(({ name, size }) => `${name}${size}`).join(" ");
  const cutsText = axes.map((parts) => `[${parts.join(" ")}]`).join("");
  return {
    side: layout(meshText, cutsText, devices === null ? {} : { devices }),
    text: `${meshText} ${cutsText}${devices === null ? "" : ` on ${devices.join(" ")}`}`,
  };
}

function inOrder(mesh: readonly Dimension[], first: number): readonly number[] {
  return Array.from({ length: product(mesh.map(({ size }) => size)) }, (_, i) => first + i);
}

function pick<T>(random: Random, values: readonly T[]): T {
  return at(values, random.integer(values.length));
}

function shuffled<T>(random: Random, values: readonly T[]): readonly T[] {
  const rest = [...values];
  return values.map(() => at(rest.splice(random.integer(rest.length), 1), 0));
}
