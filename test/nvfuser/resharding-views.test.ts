/**
 * nvFuser's tests/cpp/test_resharding.cpp: which views, matmuls and collectives reshard, before any pass, and what the
 * devices exchange.
 */
import { describe, expect, it } from "vitest";
import {
  add,
  broadcast,
  DeviceMesh,
  Fusion,
  matmul,
  reshape,
  select,
  set,
  squeeze,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { expectResharding, cut, place, reshards, whole } from "./setup.ts";

const two = DeviceMesh.range(2);

describe("reshape", () => {
  it("SplitingView", async () => {
    const f = new Fusion();
    const x = f.input([2, 3, 96]);
    const y = reshape(x, [2, 3, 12, 8]);
    place(two, x, y);
    cut(x, 2, 2);
    cut(y, 2, 2);
    await expectResharding(f, y, false, "");
  });

  it("MergingView", async () => {
    const f = new Fusion();
    const x = f.input([2, 3, 12, 8]);
    const y = reshape(x, [2, 3, 96]);
    place(two, x, y);
    cut(x, 2, 2);
    cut(y, 2, 2);
    await expectResharding(f, y, false, "");
  });
});

describe("Matmul", () => {
  const build = (shard: (a: TensorView, b: TensorView, c: TensorView) => void): [Fusion, TensorView] => {
    const f = new Fusion();
    const [a, b] = [f.input([2, 2]), f.input([2, 2])];
    const c = matmul(a, b);
    place(two, a, b, c);
    shard(a, b, c);
    return [f, c];
  };

  it("Matmul_NoResharding", async () => {
    const [f, c] = build((a, _, z) => {
      whole(a, 0);
      whole(z, 0);
    });
    await expectResharding(f, c, false, "");
  });

  it("Matmul_Resharding", async () => {
    const [f, c] = build((a, b, z) => {
      whole(a, 0);
      whole(b, 1);
      whole(z, 0);
    });
    await expectResharding(f, c, true, "Allgather 1");
  });
});

describe("collectives", () => {
  it("Allgather", async () => {
    const f = new Fusion();
    const x = f.input([4]);
    const y = set(x);
    place(two, x, y);
    cut(x, 0, 2);
    await expectResharding(f, y, true, "Allgather 1");
  });

  it("ReduceScatter", async () => {
    const f = new Fusion();
    const x = f.input([2, 2, 6]);
    const y = sum(x, [0]);
    place(two, x, y);
    whole(x, 0);
    cut(y, 2, 2);
    await expectResharding(f, y, true, "ReduceScatter 1");
  });

  it("Allreduce", async () => {
    const f = new Fusion();
    const x = f.input([2, 3]);
    const y = sum(x, [0]);
    const z = add(y, y);
    place(two, x, y, z);
    whole(x, 0);
    expect(reshards(f, y)).toBe(true);
    await expectResharding(f, z, false, "Allreduce 1");
  });

  it("Broadcast", async () => {
    const f = new Fusion();
    const x = f.input([3]);
    const y = broadcast(x, [true, false]);
    place(two, x, y);
    // A broadcast axis has one index, which all devices hold.
    expect(() => whole(y, 0)).toThrow("size-contradicts-mesh");
    await expectResharding(f, y, false, "");
  });
});

describe("squeeze", () => {
  const build = (devices: number): [Fusion, TensorView, TensorView] => {
    const f = new Fusion();
    const x = f.input([devices, 1]);
    const y = squeeze(x, [1]);
    place(DeviceMesh.range(devices), x, y);
    whole(x, 0);
    return [f, x, y];
  };

  it("ReshardingSqueeze", async () => {
    const [f, , y] = build(2);
    await expectResharding(f, y, true, "Allgather 1");
  });

  it("DISABLED_NonreshardingSqueeze", async () => {
    const [f, , y] = build(2);
    whole(y, 0);
    await expectResharding(f, y, false, "");
  });
});

describe("select", () => {
  const build = (shardX: readonly number[], shardY: readonly number[]): [Fusion, TensorView] => {
    const f = new Fusion();
    const x = f.input([2, 2, 3]);
    const y = select(x, 0, 0);
    place(two, x, y);
    for (const axis of shardX) whole(x, axis);
    for (const axis of shardY) whole(y, axis);
    return [f, y];
  };

  it("NonResharding", async () => {
    await expectResharding(...build([1], [0]), false, "");
  });

  it("ReshardinSelectIntoDeviceDim", async () => {
    await expectResharding(...build([0], []), true, "Allgather 1");
  });

  it("ReshardingSelectIntoNonDeviceDim", async () => {
    await expectResharding(...build([1], []), true, "Allgather 1");
  });
});
