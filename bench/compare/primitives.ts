/**
 * The tensor-parallel primitives as Fusions, by size and form. The form decides which axis is the Stream axis, and
 * therefore how communication is chunked:
 *
 *     serial                       one collective and one matmul, one after the other
 *     collective                   a loop over chunks of rows, each with its own collective
 *     rotated, linear, broadcast   a loop over the devices: the sharded axis is itself the Stream axis
 *
 * tp-columnwise gathers the rows of A [m, k] and multiplies by a weight [n, k] of each device. tp-rowwise and
 * tp-allreduce multiply the A [m, k] of each device by its B [k, n] and add over the devices. All matrices are
 * row-major.
 */
import { Fusion } from "../../src/ir/api/fusion.ts";
import { linear, matmul, select, set, sum } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import type { DType } from "../../src/numerics/dtype.ts";

export const primitives = ["tp-columnwise", "tp-rowwise", "tp-allreduce"] as const;
export type Primitive = (typeof primitives)[number];

export const loopForms = ["collective", "rotated", "linear", "broadcast"] as const;
export type LoopForm = (typeof loopForms)[number];
export type Form = "compute-only" | "communication-only" | "serial" | LoopForm;

export interface Problem {
  readonly primitive: Primitive;
  readonly m: number;
  /** Columns: of each device in tp-columnwise, otherwise of the whole result. */
  readonly n: number;
  /** The contracted extent: of each device in tp-rowwise and tp-allreduce, otherwise of the whole matrices. */
  readonly k: number;
  readonly dtype: DType;
  readonly devices: number;
}

/**
 * `chunks`: iterations of the loop of `collective`. `outputs`: tensors that hold the rows of the result, in the loops
 * over devices of tp-rowwise and tp-allreduce. Throws `bad-extent` if the rows do not divide by devices, chunks and
 * outputs.
 */
export function buildPrimitive(form: Form, problem: Problem, { chunks, outputs }: Pieces): Fusion {
  const build = builds[problem.primitive][form];
  const { fusion, tensors } = build(problem, takesOutputs(form, problem.primitive) ? outputs : chunks);
  for (const tensor of tensors) tensor.setDeviceMesh(DeviceMesh.range(problem.devices));
  return fusion;
}

/** Whether the rows of the result may be in several tensors. */
export function takesOutputs(form: Form, primitive: Primitive): boolean {
  return primitive !== "tp-columnwise" && (form === "rotated" || form === "linear" || form === "broadcast");
}

export interface Pieces {
  readonly chunks: number;
  readonly outputs: number;
}

interface Built {
  readonly fusion: Fusion;
  readonly tensors: readonly TensorView[];
}

/** `pieces`: chunks or outputs, whichever the form has. */
type Build = (problem: Problem, pieces: number) => Built;

const builds: { readonly [P in Primitive]: { readonly [F in Form]: Build } } = {
  "tp-columnwise": {
    "compute-only": (problem) => columnwise(problem, [], null, false),
    "communication-only": gatherAlone,
    serial: (problem) => columnwise(problem, [problem.devices], 0, false),
    collective: (problem, chunks) => columnwise(problem, [chunks, problem.devices], 1, true),
    rotated: gatherInLoop,
    linear: gatherInLoop,
    broadcast: gatherInLoop,
  },
  "tp-rowwise": {
    "compute-only": gemmAlone,
    "communication-only": scatterAlone,
    serial: (problem) => {
      const { a, b, partial, c, fusion } = partialProducts(problem, [problem.devices, problem.m], 0, []);
      c.split(1, problem.devices, { inner: false }).axis(1).parallelize("DIDx");
      return { fusion, tensors: [a, b, partial, c] };
    },
    collective: (problem, chunks) => {
      const { m, devices } = problem;
      const rows = [chunks, devices, devices, m / (chunks * devices)];
      const { a, b, partial, c, fusion } = partialProducts(problem, rows, 1, [1]);
      partial.axis(0).parallelize("Stream");
      c.axis(0).parallelize("Stream");
      c.axis(2).parallelize("DIDx");
      return { fusion, tensors: [a, b, partial, c] };
    },
    rotated: (problem, outputs) => exchangeInLoop(problem, outputs, false),
    linear: (problem, outputs) => exchangeInLoop(problem, outputs, false),
    broadcast: (problem, outputs) => reduceInLoop(problem, outputs, false),
  },
  "tp-allreduce": {
    "compute-only": gemmAlone,
    "communication-only": ({ devices, m, n, dtype }) => {
      const fusion = new Fusion();
      const partial = fusion.input([devices, m, n], dtype);
      const c = sum(partial, [0]);
      fusion.output(c);
      partial.axis(0).parallelize("DIDx");
      return { fusion, tensors: [partial, c] };
    },
    serial: (problem) => {
      const { a, b, partial, c, fusion } = partialProducts(problem, [problem.devices, problem.m], 0, []);
      return { fusion, tensors: [a, b, partial, c] };
    },
    collective: (problem, chunks) => {
      const rows = [chunks, problem.devices, problem.m / chunks];
      const { a, b, partial, c, fusion } = partialProducts(problem, rows, 1, []);
      partial.axis(0).parallelize("Stream");
      c.axis(0).parallelize("Stream");
      return { fusion, tensors: [a, b, partial, c] };
    },
    rotated: (problem, outputs) => exchangeInLoop(problem, outputs, true),
    linear: (problem, outputs) => exchangeInLoop(problem, outputs, true),
    broadcast: (problem, outputs) => reduceInLoop(problem, outputs, true),
  },
};

/** `cut`: the axes that split the rows of A, of which `sharded` is the devices'. */
function columnwise({ m, n, k, dtype }: Problem, cut: readonly number[], sharded: number | null, loop: boolean): Built {
  const fusion = new Fusion();
  const rows = m / cut.reduce((product, extent) => product * extent, 1);
  const a = fusion.input([...cut, rows, k], dtype);
  const weight = fusion.input([n, k], dtype);
  const c = linear(a, weight);
  fusion.output(c);
  if (sharded !== null) a.axis(sharded).parallelize("DIDx");
  if (loop) c.axis(0).parallelize("Stream");
  return { fusion, tensors: [a, weight, c] };
}

function gatherInLoop(problem: Problem): Built {
  return columnwise(problem, [problem.devices], 0, true);
}

function gatherAlone({ devices, m, k, dtype }: Problem): Built {
  const fusion = new Fusion();
  const a = fusion.input([devices, m / devices, k], dtype);
  const whole = set(a);
  fusion.output(whole);
  a.axis(0).parallelize("DIDx");
  return { fusion, tensors: [a, whole] };
}

function scatterAlone({ devices, m, n, dtype }: Problem): Built {
  const fusion = new Fusion();
  const partial = fusion.input([devices, devices, m / devices, n], dtype);
  const c = sum(partial, [0]);
  fusion.output(c);
  partial.axis(0).parallelize("DIDx");
  c.axis(1).parallelize("DIDx");
  return { fusion, tensors: [partial, c] };
}

function gemmAlone({ m, n, k, dtype }: Problem): Built {
  const fusion = new Fusion();
  const a = fusion.input([m, k], dtype);
  const b = fusion.input([k, n], dtype);
  const c = matmul(a, b);
  fusion.output(c);
  return { fusion, tensors: [a, b, c] };
}

interface Partial {
  readonly fusion: Fusion;
  readonly a: TensorView;
  readonly b: TensorView;
  readonly partial: TensorView;
  readonly c: TensorView;
}

/**
 * `rows`: the axes of A before k, of which `sharded` is the devices'. B has that axis too, and extent 1 along
 * `broadcast`.
 */
function partialProducts(
  { n, k, devices, dtype }: Problem,
  rows: readonly number[],
  sharded: number,
  broadcast: readonly number[],
): Partial {
  const fusion = new Fusion();
  const a = fusion.input([...rows, k], dtype);
  const batch = broadcast.length === 0 ? [devices] : rows.slice(0, -1).map((_, i) => (i === sharded ? devices : 1));
  const b = fusion.input([...batch, k, n], dtype);
  const partial = matmul(a, b);
  const c = sum(partial, [sharded]);
  fusion.output(c);
  a.axis(sharded).parallelize("DIDx");
  b.axis(batch.length === 1 ? 0 : sharded).parallelize("DIDx");
  partial.axis(sharded).parallelize("DIDx");
  return { fusion, a, b, partial, c };
}

/** In iteration i a device computes the rows of the device i positions after it, and sends them there. */
function exchangeInLoop(problem: Problem, outputs: number, again: boolean): Built {
  return inLoop(problem, outputs, again, (a, partial, c) => {
    a.axis(1).parallelize("Stream");
    partial.axis(0).parallelize("Stream");
    partial.axis(1).parallelize("DIDx");
    c.axis(1).parallelize("DIDx");
  });
}

/** In iteration i all devices compute the rows of device i, and reduce them there. */
function reduceInLoop(problem: Problem, outputs: number, again: boolean): Built {
  return inLoop(problem, outputs, again, (_, partial, c) => {
    partial.axis(0).parallelize("DIDx");
    partial.axis(1).parallelize("Stream");
    c.axis(0).parallelize("Stream");
    c.axis(1).parallelize("DIDx");
  });
}

/**
 * `parallelize` receives A [devices, devices, rows, k], the partial results and their sum. All outputs have equally
 * many rows, one range after the other.
 */
function inLoop(
  { devices, m, n, k, dtype }: Problem,
  outputs: number,
  again: boolean,
  parallelize: (a: TensorView, partial: TensorView, c: TensorView) => void,
): Built {
  const fusion = new Fusion();
  const rows = m / (outputs * devices);
  const whole = fusion.input([...(outputs === 1 ? [] : [outputs]), devices, devices, rows, k], dtype);
  const b = fusion.input([devices, 1, k, n], dtype);
  whole.axis(outputs === 1 ? 0 : 1).parallelize("DIDx");
  b.axis(0).parallelize("DIDx");
  const tensors = [whole, b];
  for (let output = 0; output < outputs; output++) {
    const a = outputs === 1 ? whole : select(whole, 0, output);
    a.axis(0).parallelize("DIDx");
    const partial = matmul(a, b);
    const c = sum(partial, [0]);
    parallelize(a, partial, c);
    tensors.push(a, partial, ...outputOf(fusion, c, again));
  }
  return { fusion, tensors };
}

/** The scattered result, or, with `again`, the result gathered in a second loop: an all-reduce in two halves. */
function outputOf(fusion: Fusion, c: TensorView, again: boolean): readonly TensorView[] {
  if (!again) {
    fusion.output(c);
    return [c];
  }
  const whole = set(c);
  fusion.output(whole);
  whole.axis(0).parallelize("Stream");
  return [c, whole];
}
