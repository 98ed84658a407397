/** A reshape with no op to fuse with is a view: no kernel and no copy. */
import { expect, it } from "vitest";
import {
  add,
  compile,
  DeviceMesh,
  Fusion,
  linear,
  lower,
  permute,
  relu,
  reshape,
  type TensorView,
} from "@braid-compiler/braid";

function fusion(build: (x: TensorView, w: TensorView) => TensorView): Fusion {
  const f = new Fusion();
  const [x, w] = [f.input([6, 4]), f.input([8, 4])];
  f.output(build(x, w));
  for (const tensor of [x, w]) tensor.setDeviceMesh(DeviceMesh.range(2));
  w.outerSplit(0, 2).parallelize("DIDx");
  return f;
}

const kindsOf = (f: Fusion, options = {}): readonly string[] => lower(f, options).body.map(({ kind }) => kind);

it("between a linear and a unit, and between a unit and a linear", () => {
  const heads = fusion((x, w) => relu(permute(reshape(linear(x, w), [6, 4, 2]), [1, 0, 2])));
  expect(kindsOf(heads, { deallocate: false })).toEqual(["Linear", "Reshape", "PostOnStream"]);
  const { program } = compile(heads, { devices: 2 });
  expect(program.ranks[0]?.commands.map(({ kind }) => kind)).toEqual(["alloc", "launch", "launch", "free"]);
  const flat = fusion((x, w) => linear(reshape(relu(x), [2, 3, 4]), w));
  expect(kindsOf(flat, { deallocate: false })).toEqual(["PostOnStream", "Reshape", "Linear"]);
});

it("not within a unit, and not with nvFuser's limits", () => {
  const within = fusion((x) => add(relu(reshape(relu(x), [24])), reshape(x, [24])));
  expect(lower(within).body.filter(({ kind }) => kind === "PostOnStream")).toHaveLength(1);
  const f = new Fusion();
  const x = f.input([6, 4]);
  f.output(reshape(x, [24]));
  expect(kindsOf(f)).toEqual(["Reshape"]);
  expect(kindsOf(f, { nvfuserLimits: true })).toEqual(["PostOnStream"]);
});
