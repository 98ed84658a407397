/** Ops that stretch, join, pad and index on devices and in loops: the oracle's results, and what they communicate. */
import { describe, expect, it } from "vitest";
import {
  cat,
  DeviceMesh,
  expand,
  Fusion,
  lower,
  matmul,
  pad,
  relu,
  slice,
  type TensorView,
  unsqueeze,
} from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { expectRoundTrip } from "../support/round-trip.ts";

/** A Fusion of the inputs' op on a mesh; `place` annotates inputs and output. */
function program(
  shapes: readonly (readonly number[])[],
  devices: number,
  build: (...inputs: TensorView[]) => TensorView,
  place: (output: TensorView, ...inputs: TensorView[]) => void,
): Fusion {
  const f = new Fusion();
  const inputs = shapes.map((shape) => f.input(shape));
  const output = build(...inputs);
  f.output(output);
  for (const tensor of inputs) tensor.setDeviceMesh(DeviceMesh.range(devices));
  place(output, ...inputs);
  return f;
}

const first = (inputs: readonly TensorView[]): TensorView => {
  const [view] = inputs;
  if (view === undefined) throw new Error("an input");
  return view;
};

async function check(fusion: Fusion, devices: number): Promise<void> {
  const host = lower(fusion);
  expectRoundTrip(host, [{ rank: 0, sizes: {} }]);
  await expectOracle(fusion, { devices, machineAlone: true });
}

describe("expand", () => {
  it("is a view with stride 0 beside a contraction, cut over devices without communication", async () => {
    const f = program(
      [
        [3, 1, 2, 4],
        [3, 4, 4, 5],
      ],
      2,
      (k, q) => matmul(expand(k, [-1, 4, -1, -1]), q),
      (output) => {
        output.outerSplit(1, 2).parallelize("DIDx");
      },
    );
    expect(lower(f, { deallocate: false }).body.map(({ kind }) => kind)).toEqual(["Expand", "Set", "Matmul"]);
    expect(collectivesOf(f, 2)).toBe("");
    await check(f, 2);
  });

  it("is part of a unit, and of a loop over the stretched axis", async () => {
    const f = program(
      [[6, 1]],
      2,
      (...inputs) => relu(expand(first(inputs), [-1, 8])),
      (output, x) => {
        x.outerSplit(0, 2).parallelize("DIDx");
        output.outerSplit(1, 2).parallelize("Stream");
      },
    );
    expect(collectivesOf(f, 2)).toBe("");
    await check(f, 2);
  });

  it("is an output", async () => {
    const f = program(
      [[4]],
      2,
      (...inputs) => expand(unsqueeze(first(inputs), 0), [3, -1]),
      (_, x) => {
        x.outerSplit(0, 2).parallelize("DIDx");
      },
    );
    await check(f, 2);
  });
});

describe("cat and pad", () => {
  const joined = (x: TensorView, y: TensorView): TensorView =>
    relu(
      pad(
        cat([relu(x), y], 1),
        [
          [0, 0],
          [1, -2],
        ],
        3,
      ),
    );

  it("keep a sharded axis, in chunks too", async () => {
    const f = program(
      [
        [6, 3],
        [6, 4],
      ],
      2,
      joined,
      (_, x) => {
        x.outerSplit(0, 2).parallelize("DIDx");
      },
    );
    expect(collectivesOf(f, 2)).toBe("");
    await check(f, 2);
    const chunked = program(
      [
        [8, 3],
        [8, 4],
      ],
      2,
      joined,
      (_, x) => {
        x.outerSplit(0, 2).parallelize("DIDx");
        x.outerSplit(1, 2).parallelize("Stream");
      },
    );
    expect(collectivesOf(chunked, 2)).toBe("");
    await check(chunked, 2);
  });

  it("gather the axis that they join or pad", async () => {
    const f = program(
      [
        [6, 4],
        [6, 4],
      ],
      2,
      joined,
      (_, x, y) => {
        for (const input of [x, y]) input.outerSplit(1, 2).parallelize("DIDx");
      },
    );
    expect(collectivesOf(f, 2)).toBe("Allgather 2");
    await check(f, 2);
  });
});

describe("slice with steps", () => {
  it("is a view, and part of a unit", async () => {
    const f = program(
      [[6, 9]],
      2,
      (...inputs) => slice(first(inputs), [0, 1], [6, 9], [1, 3]),
      (_, x) => {
        x.outerSplit(0, 2).parallelize("DIDx");
      },
    );
    await check(f, 2);
    const unit = program(
      [[6, 9]],
      2,
      (...inputs) => relu(unsqueeze(slice(first(inputs), [1, 0], [6, 9], [2, 4]), 0)),
      () => {
        return;
      },
    );
    await check(unit, 2);
  });
});
