/** Says a layout to Braid: a mesh of at most three dimensions, and their types on the parts of axes. */
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { at } from "../../src/support/invariant.ts";
import { type Dimension, type Layout, type Part, product } from "./layout.ts";

const types = ["DIDx", "DIDy", "DIDz"] as const;

/** The layout on other dimensions: whole ones, as few as three if that can be; null if it cannot. */
export function sayable(given: Layout): Layout | null {
  const refined = merged(split(given));
  if (refined.mesh.length <= types.length) return refined;
  const ordered = merged(inOrderOfUse(refined));
  return ordered.mesh.length <= types.length ? ordered : null;
}

/** Places `tensor`, whose layout Braid can say. */
export function place(tensor: TensorView, said: Layout): void {
  const { mesh, devices, cuts } = said;
  tensor.setDeviceMesh(
    new DeviceMesh(
      nested(
        devices,
        mesh.map(({ size }) => size),
      ),
    ),
  );
  let position = 0;
  for (const parts of cuts) {
    for (const { name, size } of parts) {
      const depth = mesh.findIndex((each) => each.name === name);
      tensor.outerSplit(position, size).parallelize(at(types, mesh.length - 1 - depth));
      position++;
    }
    position++;
  }
}

type Nested = readonly (number | Nested)[];

function nested(devices: readonly number[], sizes: readonly number[]): Nested {
  const [, ...inner] = sizes;
  if (inner.length === 0) return devices;
  const span = product(inner);
  return Array.from({ length: devices.length / span }, (_, i) =>
    nested(devices.slice(i * span, (i + 1) * span), inner),
  );
}

function whole({ name, size }: Dimension): Part {
  return { name, before: 1, size };
}

/** Every dimension cut where a part of it begins or ends, so that all parts are whole dimensions. */
function split({ mesh, cuts, ...rest }: Layout): Layout {
  const piecesOf = new Map(
    mesh.map(({ name, size }): [string, readonly (Dimension & { readonly before: number })[]] => {
      const ends = cuts.flat().flatMap((part) => (part.name === name ? [part.before, part.before * part.size] : []));
      const bounds = [...new Set([1, ...ends, size])].sort((a, b) => a - b);
      return [
        name,
        bounds.slice(1).map((end, i) => ({ name: `${name}${i}`, size: end / at(bounds, i), before: at(bounds, i) })),
      ];
    }),
  );
  return {
    ...rest,
    mesh: [...piecesOf.values()].flat().map(({ name, size }) => ({ name, size })),
    cuts: cuts.map((parts) =>
      parts.flatMap((part) =>
        (piecesOf.get(part.name) ?? [])
          .filter(({ before }) => before >= part.before && before < part.before * part.size)
          .map(whole),
      ),
    ),
  };
}

/** Neighbours that are always used one after the other, or not at all, as one dimension, where there are too many. */
function merged(given: Layout): Layout {
  const { mesh, cuts } = given;
  if (mesh.length <= types.length) return given;
  const after = (name: string): string | null => {
    const parts = cuts.find((each) => each.some((part) => part.name === name));
    if (parts === undefined) return null;
    return parts[parts.findIndex((part) => part.name === name) + 1]?.name ?? "";
  };
  const isUsed = (name: string): boolean => after(name) !== null;
  const i = mesh.findIndex((outer, position) => {
    const inner = mesh[position + 1];
    if (inner === undefined) return false;
    return isUsed(outer.name) ? after(outer.name) === inner.name : !isUsed(inner.name);
  });
  if (i < 0) return given;
  const [outer, inner] = [at(mesh, i), at(mesh, i + 1)];
  const one = { name: outer.name, size: outer.size * inner.size };
  return merged({
    ...given,
    mesh: [...mesh.slice(0, i), one, ...mesh.slice(i + 2)],
    cuts: cuts.map((parts) =>
      parts.filter(({ name }) => name !== inner.name).map((part) => (part.name === one.name ? whole(one) : part)),
    ),
  });
}

/** Unused dimensions first, then those of the first axis, and so on: the devices are listed in that order. */
function inOrderOfUse({ mesh, devices, cuts, ...rest }: Layout): Layout {
  const used = cuts.flat().map(({ name }) => name);
  const order = [...mesh.filter(({ name }) => !used.includes(name)), ...cuts.flat()].map(({ name }) => name);
  const strides = mesh.map((_, i) => product(mesh.slice(i + 1).map(({ size }) => size)));
  let positions = [0];
  for (const name of order) {
    const i = mesh.findIndex((each) => each.name === name);
    positions = positions.flatMap((first) =>
      Array.from({ length: at(mesh, i).size }, (_, coordinate) => first + coordinate * at(strides, i)),
    );
  }
  const ordered = order.flatMap((name) => mesh.filter((each) => each.name === name));
  return { ...rest, mesh: ordered, devices: positions.map((position) => at(devices, position)), cuts };
}
