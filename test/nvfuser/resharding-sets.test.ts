/**
 * nvFuser's tests/cpp/test_resharding.cpp: the Sets that passes insert, loops over devices, and what the devices
 * exchange.
 */
import { describe, expect, it } from "vitest";
import { add, DeviceMesh, Fusion, lower, relu, set, type TensorView } from "@braid-compiler/braid";
import { walk } from "../../src/host/traverse.ts";
import type { FusionData } from "../../src/ir/fusion-data.ts";
import { isCommunicable, isResharding } from "../../src/passes/routes/layouts.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { afterPass } from "../support/propagated.ts";
import { cut, expectExchange, outputs, place, reshards, whole } from "./setup.ts";

const two = DeviceMesh.range(2);

/** The op that defines `tensor` after the passes that insert Sets, and its Fusion. */
function definition(f: Fusion, tensor: TensorView): { readonly after: FusionData; readonly op: FusionData["ops"][0] } {
  const after = afterPass("insert-routes", f);
  const op = after.ops.find(({ output }) => output === tensor.id);
  if (op === undefined) throw new Error(`T${tensor.id} has no op`);
  return { after, op };
}

function placementText({ tensors }: FusionData, id: number): string {
  const tensor = tensors[id];
  const types = tensor?.domain.loop.filter(({ iterType }) => iterType !== "reduction").map((axis) => axis.parallelType);
  return `${String(tensor?.mesh)} ${types?.join(" ")}`;
}

describe("inserted Sets", () => {
  const to = new DeviceMesh([2]);

  it("InsertResharding_Before", async () => {
    const f = new Fusion();
    const [a, b] = [f.input([2, 1, 2]), f.input([2, 1, 2])];
    const c = add(a, b);
    outputs(f, c);
    place(two, a, b);
    place(to, c);
    whole(a, 0);
    whole(c, 1);
    const { after, op } = definition(f, c);
    expect(op.kind).toBe("Binary");
    for (const input of op.inputs) expect(placementText(after, input)).toBe(placementText(after, c.id));
    expect(isResharding(op, after.tensors)).toBe(false);
    await expectExchange(f, 3, "Gather 1");
  });

  it("InsertResharding_After", async () => {
    const f = new Fusion();
    const a = f.input([2, 1, 2]);
    const b = relu(a);
    outputs(f, b);
    place(two, a);
    place(to, b);
    whole(a, 0);
    whole(b, 1);
    const after = afterPass("insert-routes", f);
    const readers = after.ops.filter(({ inputs }) => inputs.includes(b.id));
    expect(readers.map(({ kind }) => kind)).toEqual(["Set"]);
    expect(placementText(after, b.id)).toBe(placementText(after, a.id));
    expect(placementText(after, after.outputs[0] ?? 0)).toBe("DeviceMesh{2} Serial DIDx Serial");
    await expectExchange(f, 3, "Gather 1");
  });

  it("InsertShardedAxisReordering", async () => {
    const f = new Fusion();
    const a = f.input([2, 2, 2]);
    const b = relu(a);
    const c = add(a, b);
    outputs(f, c);
    place(two, a, b, c);
    whole(b, 1);
    whole(c, 1);
    const { after } = definition(f, c);
    // All that reshard are what communications can do; strides take the place of a layout pass.
    for (const op of after.ops)
      expect(isResharding(op, after.tensors) && !isCommunicable(op, after.tensors)).toBe(false);
    await expectExchange(f, 2, "");
  });
});

describe("swizzles", () => {
  // A device that begins with its own chunk is an option of the loop, not an annotation.
  const build = (): readonly [Fusion, TensorView, TensorView] => {
    const f = new Fusion();
    const x = f.input([4, 3]);
    const y = set(x);
    const z = relu(y);
    outputs(f, z);
    place(two, x, y, z);
    cut(x, 0, 2);
    cut(y, 0, 2, "Stream");
    cut(z, 0, 2, "Stream");
    return [f, y, z];
  };

  it("Swizzle1D_DIDToStream", () => {
    const [f, y] = build();
    expect(reshards(f, y)).toBe(true);
    expect(collectivesOf(f, 2, { p2p: "broadcast" })).toBe("Broadcast 1");
    // Each device copies its own chunk and exchanges the other one.
    const kinds = walk(lower(f, { p2p: "rotated" }).body).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "P2PCommunication")).toHaveLength(2);
  });

  it("Swizzle1D_ConsistentSwizzle", () => {
    const [f, , z] = build();
    expect(reshards(f, z)).toBe(false);
    // One loop has both, next to the one that joins the streams.
    const loops = lower(f, { p2p: "rotated" }).body.filter(({ kind }) => kind === "ForLoop");
    expect(loops).toHaveLength(2);
  });
});
