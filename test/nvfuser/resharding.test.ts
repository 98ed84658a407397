/**
 * nvFuser's tests/cpp/test_resharding.cpp: which Sets, sums and binary ops reshard, before any pass, and what the
 * devices exchange.
 */
import { describe, it } from "vitest";
import { add, broadcast, DeviceMesh, Fusion, set, sum, type TensorView } from "@braid-compiler/braid";
import { expectResharding, place, whole } from "./setup.ts";

const one = DeviceMesh.range(1);
const two = DeviceMesh.range(2);
const three = DeviceMesh.range(3);
const cube = (devices: number): readonly number[] => [devices, devices, devices];

/** A set of a tensor of rank 3. */
function setOf(from: DeviceMesh, to: DeviceMesh, shard: (x: TensorView, y: TensorView) => void): [Fusion, TensorView] {
  const f = new Fusion();
  const x = f.input(cube(2));
  const y = set(x);
  place(from, x);
  place(to, y);
  shard(x, y);
  return [f, y];
}

describe("Set", () => {
  it("Set_SameMesh_NoParallelTypes", async () => {
    await expectResharding(...setOf(two, two, () => {}), false, "");
  });

  it("Set_DifferentMeshes", async () => {
    await expectResharding(...setOf(two, new DeviceMesh([0, 2]), () => {}), true, "Broadcast 1", 3);
  });

  it("Set_DifferentParallelTypes", async () => {
    // Both devices have the whole tensor, so each takes its part.
    await expectResharding(...setOf(two, two, (_, y) => whole(y, 0)), true, "");
  });

  it("Set_SameMesh_SameParallelType", async () => {
    const [f, y] = setOf(two, two, (x, z) => {
      whole(x, 0);
      whole(z, 0);
    });
    await expectResharding(f, y, false, "");
  });
});

/** A sum over one axis of a tensor of rank 3. */
function sumOf(
  axis: number,
  [from, to]: readonly [DeviceMesh, DeviceMesh],
  shard: (x: TensorView, y: TensorView) => void,
): [Fusion, TensorView] {
  const f = new Fusion();
  const x = f.input(cube(2));
  const y = sum(x, [axis]);
  place(from, x);
  place(to, y);
  shard(x, y);
  return [f, y];
}

describe("Sum", () => {
  it("Sum_SameMesh_NoParallelTypes", async () => {
    await expectResharding(...sumOf(0, [two, two], () => {}), false, "");
  });

  it("Sum_DifferentMeshes", async () => {
    await expectResharding(...sumOf(0, [two, three], () => {}), true, "Broadcast 1", 3);
  });

  it("Sum_ParallelizeDifferentAxes", async () => {
    const [f, y] = sumOf(0, [two, two], (x, z) => {
      whole(x, 0);
      whole(z, 1);
    });
    await expectResharding(f, y, true, "ReduceScatter 1");
  });

  it("Sum_UnshardedAxis", async () => {
    const [f, y] = sumOf(1, [two, two], (x, z) => {
      whole(x, 0);
      whole(z, 0);
    });
    await expectResharding(f, y, false, "");
  });

  it("Sum_AllReduce", async () => {
    await expectResharding(...sumOf(0, [two, two], (x) => whole(x, 0)), true, "Allreduce 1");
  });
});

/** A sum of two tensors of rank 3, with axis 0 of some on the devices. */
function addOf(
  meshes: readonly [DeviceMesh, DeviceMesh, DeviceMesh],
  sharded: readonly ("x" | "y" | "z")[],
): [Fusion, TensorView] {
  const f = new Fusion();
  const [x, y] = [f.input(cube(2)), f.input(cube(2))];
  const z = add(x, y);
  const tensors = { x, y, z };
  place(meshes[0], x);
  place(meshes[1], y);
  place(meshes[2], z);
  for (const name of sharded) whole(tensors[name], 0);
  return [f, z];
}

describe("Add", () => {
  const same = [two, two, two] as const;

  it("Add_SameMesh_NoParallelTypes", async () => {
    await expectResharding(...addOf(same, []), false, "");
  });

  it("Add_DifferentMeshes", async () => {
    await expectResharding(...addOf([two, two, three], []), true, "Broadcast 1", 3);
  });

  it("Add_OnlyOutputParallelized", async () => {
    await expectResharding(...addOf(same, ["z"]), true, "");
  });

  it("Add_OnlyInputsParallelized", async () => {
    await expectResharding(...addOf(same, ["x", "y"]), true, "Allgather 1");
  });

  it("Add_SameMesh_SameParallelTypes", async () => {
    await expectResharding(...addOf(same, ["x", "y", "z"]), false, "");
  });

  it("Add_InputsParallelizedDifferently", async () => {
    await expectResharding(...addOf(same, ["x", "z"]), true, "");
  });

  it("Add_Broadcast", async () => {
    const f = new Fusion();
    const [x, row] = [f.input([2, 2]), f.input([2])];
    const y = broadcast(row, [true, false]);
    const z = add(x, y);
    place(two, x, row, y, z);
    whole(x, 0);
    whole(z, 0);
    await expectResharding(f, z, false, "");
  });
});

describe("types of devices", () => {
  it("DIDsNotInvolved", async () => {
    const f = new Fusion();
    const x = f.input([2]);
    const y = set(x);
    place(two, x);
    place(one, y);
    whole(x, 0);
    await expectResharding(f, y, true, "Gather 1");
  });
});
