/**
 * Ops without operands on devices, in loops and in units: every sharding gives the oracle's elements, and nothing is
 * sent for them.
 */
import { expect, it } from "vitest";
import {
  add,
  broadcast,
  compile,
  DeviceMesh,
  full,
  Fusion,
  iota,
  lower,
  mul,
  parse,
  print,
  relu,
  set,
  type TensorView,
} from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { placements } from "../support/placements.ts";
import { expectRoundTrip } from "../support/round-trip.ts";
import { combinations } from "../support/split-cases.ts";
import { runs, sample } from "../support/suite.ts";

type Placement = (view: TensorView, axis: number) => void;

/** How an axis is cut over two devices, as parts of which devices have several runs, too. */
const cuts: Readonly<Record<string, Placement>> = {
  whole: () => {},
  "outer split": (view, axis) => {
    view.outerSplit(axis, 2).parallelize("DIDx");
  },
  "inner split": (view, axis) => {
    view.split(axis, 2);
    view.axis(axis + 1).parallelize("DIDx");
  },
  "in runs": (view, axis) => {
    view.outerSplit(axis, 3);
    view.outerSplit(axis + 1, 2).parallelize("DIDx");
  },
};

it.each(sample(combinations({ extent: [1, 4, 7, 12, 13], cut: Object.keys(cuts) }), 8))(
  "an iota of $extent, $cut",
  async ({ extent, cut }) => {
    const f = new Fusion();
    const y = iota(f, extent, { start: 3, step: -5 });
    f.output(y);
    cuts[cut]?.(y.setDeviceMesh(DeviceMesh.range(2)), 0);
    expect(collectivesOf(f, 2)).toBe("");
    expectRoundTrip(lower(f, { rank: 0 }), [{ rank: 0 }, { rank: 1 }]);
    await expectOracle(f, { devices: 2, machineAlone: true });
  },
);

/** Rows and columns of a sharded tensor, and a constant, which take the places of what reads them. */
function positions(extents: readonly (number | null)[], place: (x: TensorView, y: TensorView) => void): Fusion {
  const f = new Fusion();
  const x = f.input(extents, "int64");
  const rows = broadcast(iota(f, x.axis(0), { step: 100 }), [false, true]);
  const columns = broadcast(iota(f, x.axis(1), { start: 1 }), [true, false]);
  const y = relu(add(mul(x, full(f, [x.axis(0), x.axis(1)], 1000, "int64")), add(rows, columns)));
  f.output(y);
  place(x, y);
  return f;
}

const some = placements.filter((_, i) => i % runs({ quick: 3, long: 1 }) === 0);

it.each(some)("rows, columns and a constant %s", async (_, devices, place) => {
  for (const [rows, columns] of [
    [12, 8],
    [13, 7],
  ] as const) {
    const f = positions([rows, columns], place);
    expect(collectivesOf(f, devices)).toBe("");
    expectRoundTrip(lower(f, { rank: 0 }), [{ rank: 0 }]);
    await expectOracle(f, { devices, machineAlone: rows === 12 });
  }
});

it("of symbolic extents", async () => {
  const f = positions([null, null], placements[1]?.[2] ?? (() => {}));
  await expectOracle(f, {
    devices: 2,
    sizes: new Map([
      ["i0", 6],
      ["i2", 5],
    ]),
  });
});

it("are placed on the devices of all readers without propagation", async () => {
  const f = new Fusion();
  const x = f.input([4, 6], "int64");
  const y = add(x, broadcast(iota(f, 6), [true, false]));
  const z = mul(x, full(f, [4, 6], 3, "int64"));
  for (const output of [y, z]) f.output(output);
  for (const view of [x, y, z]) view.setDeviceMesh(DeviceMesh.range(2)).outerSplit(0, 2).parallelize("DIDx");
  expect(collectivesOf(f, 2)).toBe("");
  await expectOracle(f, { devices: 2, machineAlone: true, propagate: false });
});

it("cannot be counted by a loop", () => {
  const f = new Fusion();
  const y = iota(f, 8);
  f.output(set(y));
  y.axis(0).parallelize("Stream");
  expect(() => lower(f)).toThrow(/stream-on-host-unit/u);
});

it("cannot be in a unit of a dump, which does not say where its chunk begins", () => {
  const f = new Fusion();
  f.output(relu(f.input([4], "int64")));
  const text = print(lower(f)).replace(/= relu\([^\n]*\);/u, "= iota(4, 0, 1, int64_t);");
  expect(() => compile([parse(text)], { devices: 1 })).toThrow(/kernel-opaque\]: iota is in a host unit/u);
});
