/**
 * nvFuser's tests/cpp/test_overlap.cpp: the Fusions, at small sizes.
 * d is the number of devices; `T<s>` has Stream on s parts of T.
 */
import { DeviceMesh, Fusion, linear, matmul, permute, type TensorView } from "@braid-compiler/braid";
import { cut, outputs, place, type SuiteProgram } from "./setup.ts";

export const h = 2;
const chunkRows = 3;

/** The rows t, the width 4h, and the mesh, for the number of devices. */
interface Sizes {
  readonly devices: number;
  readonly t: number;
  readonly wide: number;
  readonly mesh: DeviceMesh;
}

type Body = (f: Fusion, sizes: Sizes) => readonly TensorView[];

/** `body` returns the results. */
export function overlap(
  name: string,
  communications: string,
  body: Body,
  setting: SuiteProgram["setting"] = {},
): SuiteProgram {
  const build = (devices: number): Fusion => {
    const f = new Fusion();
    const mesh = DeviceMesh.range(devices);
    outputs(f, ...body(f, { devices, t: chunkRows * devices, wide: 4 * h * devices, mesh }));
    return f;
  };
  return { name, communications, build, setting: { streams: 2, ...setting } };
}

/** Chunks of `axis`, as many as devices. */
export const streamed = <T extends TensorView>(tensor: T, axis: number, { devices }: Sizes): T =>
  cut(tensor, axis, devices, "Stream");
export const sharded = <T extends TensorView>(tensor: T, axis: number, { devices }: Sizes): T =>
  cut(tensor, axis, devices);

export const overlapPrograms: readonly SuiteProgram[] = [
  overlap("ColumnAndSequenceParallelLinear_Forward", "", (f, s) => {
    const [x, w] = [f.input([s.t, h]), f.input([s.wide, h])];
    const y = linear(x, w);
    place(s.mesh, x, w);
    sharded(x, 0, s);
    sharded(w, 0, s);
    return [streamed(y, 0, s)];
  }),
  overlap(
    "ColumnAndSequenceParallelLinear_WeightGrad",
    "",
    (f, s) => {
      const [x, grad] = [f.input([s.t, h]), f.input([s.t, s.wide])];
      const w = matmul(permute(grad, [1, 0]), x);
      place(s.mesh, x, grad);
      sharded(x, 0, s);
      sharded(grad, 1, s);
      return [streamed(w, 2, s)];
    },
    { accumulate: true },
  ),
  overlap("ColumnAndSequenceParallelLinear_InputGrad", "ReduceScatter 1", (f, s) => {
    const [grad, w] = [f.input([s.t, s.wide]), f.input([s.wide, h])];
    const y = matmul(grad, w);
    place(s.mesh, grad, w, y);
    sharded(grad, 1, s);
    streamed(grad, 0, s);
    sharded(w, 0, s);
    sharded(y, 2, s);
    return [sharded(y, 0, s)];
  }),
  overlap("RowAndSequenceParallelLinear_Forward", "ReduceScatter 1", (f, s) => {
    const [x, w] = [f.input([s.t, s.wide]), f.input([h, s.wide])];
    const y = linear(x, w);
    place(s.mesh, x, w, y);
    sharded(x, 1, s);
    streamed(x, 0, s);
    sharded(w, 1, s);
    sharded(y, 2, s);
    return [sharded(y, 0, s)];
  }),
  overlap(
    "RowAndSequenceParallelLinear_WeightGrad",
    "",
    (f, s) => {
      const [x, grad] = [f.input([s.t, s.wide]), f.input([s.t, h])];
      const w = matmul(permute(grad, [1, 0]), x);
      place(s.mesh, x, grad);
      sharded(x, 1, s);
      streamed(x, 0, s);
      sharded(grad, 0, s);
      return [w];
    },
    { accumulate: true },
  ),
  overlap("RowAndSequenceParallelLinear_InputGrad", "", (f, s) => {
    const [grad, w] = [f.input([s.t, h]), f.input([h, s.wide])];
    const y = matmul(grad, w);
    place(s.mesh, grad, w);
    sharded(grad, 0, s);
    sharded(w, 1, s);
    return [streamed(y, 0, s)];
  }),
  overlap("CollectiveBasedOverlapTest.RowParallelLinear_Forward", "Allreduce 1", (f, s) => {
    const [x, w] = [f.input([s.t, s.wide]), f.input([h, s.wide])];
    place(s.mesh, x, w);
    sharded(x, 1, s);
    streamed(x, 0, s);
    sharded(w, 1, s);
    return [linear(x, w)];
  }),
];
