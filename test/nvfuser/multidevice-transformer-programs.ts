/**
 * nvFuser's tests/cpp/test_multidevice_transformer.cpp and tests/python/multidevice/test_transformer.py: the Fusions. d is
 * the number of devices, an axis of the weights in the C++ suite. Dropout is 0 there, and the scale of attention is
 * 1 / sqrt(E / H), since with nvFuser's 1e-3 the gradients of q and k nearly vanish.
 */
import {
  add,
  broadcast,
  cast,
  DeviceMesh,
  type DType,
  dropout,
  Fusion,
  gelu,
  layerNorm,
  linear,
  matmul,
  permute,
  reshape,
  sdpa,
  set,
  split,
  splitBackward,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { cut, outputs, place, type SuiteProgram, whole } from "./setup.ts";

export interface TransformerSizes {
  readonly B: number;
  readonly S: number;
  readonly E: number;
  readonly H: number;
}

export const smallSizes: TransformerSizes = { B: 2, S: 8, E: 32, H: 8 };
/** Those of the C++ suite. */
export const fullSizes: TransformerSizes = { B: 2, S: 128, E: 768, H: 16 };

/** What a model is built with. The names of weights begin with w. */
interface Context extends TransformerSizes {
  readonly f: Fusion;
  readonly mesh: DeviceMesh;
  readonly d: number;
  readonly dtype: DType;
  /** The rows are spread over the devices between the layers. */
  readonly sp: boolean;
}

const wide = (x: TensorView): TensorView => cast(x, "float");

/** A weight or bias with an axis of devices. */
function weight({ f, dtype, mesh }: Context, name: string, ...shape: readonly number[]): TensorView {
  return whole(f.input(shape, dtype).named(name).setDeviceMesh(mesh), 0);
}

/** A tensor that all devices have. */
function same({ f, E, mesh }: Context, name: string, dtype: DType): TensorView {
  return f.input([E], dtype).named(name).setDeviceMesh(mesh);
}

/** x [BS, E], or [D, BS / D, E] with sp. */
function rows({ f, d, B, S, E, dtype, sp, mesh }: Context): TensorView {
  const x = f
    .input(sp ? [d, (B * S) / d, E] : [B * S, E], dtype)
    .named("x")
    .setDeviceMesh(mesh);
  return sp ? whole(x, 0) : x;
}

/** x w^T + b, of x [BS, E] and w [D, N, E]: [D, BS, N]. */
function columns(x: TensorView, w: TensorView, b: TensorView): TensorView {
  const products = matmul(broadcast(x, [true, false, false]), permute(w, [0, 2, 1]));
  return add(products, broadcast(b, [false, true, false]));
}

/** The sum over devices of x w^T, of x [D, BS, K] and w [D, E, K], plus a bias. */
function reduced({ d, B, S, E, sp, mesh }: Context, x: TensorView, w: TensorView, b: TensorView): Linear1 {
  const partial = matmul(x, permute(w, [0, 2, 1]));
  const linear1 = sp ? sum(reshape(partial, [d, d, (B * S) / d, E]), [0]) : sum(partial, [0]);
  // Axis 0 is the reduced one.
  if (sp) whole(linear1.setDeviceMesh(mesh), 1);
  const flags = Array.from({ length: linear1.rank }, (_, axis) => axis < linear1.rank - 1);
  return { linear1, output: add(wide(linear1), broadcast(wide(b), flags)) };
}

interface Linear1 {
  readonly linear1: TensorView;
  readonly output: TensorView;
}

/** With sp, the rows that all devices have; each row's share is gathered. */
function gathered({ B, S, E, sp, mesh }: Context, x: TensorView): TensorView {
  return sp ? reshape(set(x).setDeviceMesh(mesh), [B * S, E]) : x;
}

interface Layer extends Linear1 {
  readonly linear0: TensorView;
  /** The activation, or attention's output. */
  readonly between: TensorView;
  readonly weights: readonly TensorView[];
}

function mlp(context: Context, x: TensorView): Layer {
  const { d, E, dtype } = context;
  const [w0, b0] = [weight(context, "w0_mlp", d, (4 * E) / d, E), weight(context, "b0_mlp", d, (4 * E) / d)];
  const [w1, b1] = [weight(context, "w1_mlp", d, E, (4 * E) / d), same(context, "b1_mlp", context.dtype)];
  const linear0 = columns(gathered(context, x), w0, b0);
  const between = cast(gelu(wide(linear0), "tanh"), dtype);
  return { linear0, between, weights: [w0, b0, w1, b1], ...reduced(context, between, w1, b1) };
}

function attention(context: Context, x: TensorView): Layer {
  const { d, B, S, E, H } = context;
  const [w0, b0] = [weight(context, "w0_mha", d, (3 * E) / d, E), weight(context, "b0_mha", d, (3 * E) / d)];
  const [w1, b1] = [weight(context, "w1_mha", d, E, E / d), same(context, "b1_mha", context.dtype)];
  const linear0 = columns(gathered(context, x), w0, b0);
  const heads = (part: TensorView): TensorView => permute(reshape(part, [d, B, S, H / d, E / H]), [0, 1, 3, 2, 4]);
  const [q, k, v] = split(reshape(linear0, [d, B, S, (3 * E) / d]), [E / d, E / d, E / d], -1);
  const between = sdpa(heads(q), heads(k), heads(v), { causal: "topLeft" }).output;
  const flat = reshape(permute(between, [0, 1, 3, 2, 4]), [d, B * S, E / d]);
  return { linear0, between, weights: [w0, b0, w1, b1], ...reduced(context, flat, w1, b1) };
}

function block(context: Context, x: TensorView): Model {
  const { dtype } = context;
  const norm = (i: number) => [same(context, `gain${i}`, "float"), same(context, `shift${i}`, "float")] as const;
  const [norm0, norm1] = [norm(0), norm(1)];
  const ln0 = layerNorm(wide(x), ...norm0);
  const mha = attention(context, cast(ln0, dtype));
  const between = add(wide(x), mha.output);
  const ln1 = layerNorm(between, ...norm1);
  const last = mlp(context, cast(ln1, dtype));
  const out = cast(add(between, last.output), dtype);
  return {
    outputs: [ln0, mha.output, ln1, last.output, out],
    weights: [...norm0, ...norm1, ...mha.weights, ...last.weights],
  };
}

/** The outputs, and what is differentiated. */
interface Model {
  readonly outputs: readonly TensorView[];
  readonly weights: readonly TensorView[];
}

type Build = (dtype: DType, sizes: TransformerSizes) => SuiteProgram;

/** Every input gets the mesh. An axis of devices lies on it: of weights, and of rows with sp. */
function suite(name: string, communications: string, sp: boolean, model: (context: Context) => Model): Build {
  return (dtype, sizes) => ({
    name,
    communications,
    devices: [2, 4],
    build: (d) => {
      const f = new Fusion();
      outputs(f, ...model({ ...sizes, f, d, dtype, sp, mesh: DeviceMesh.range(d) }).outputs);
      return f;
    },
  });
}

/** The backward pass alone, on what the forward pass saves; the outputs are the gradients of x and of the weights. */
function backward(
  name: string,
  communications: string,
  output: number,
  model: (context: Context) => Model,
  sp = false,
): Build {
  return (dtype, sizes) => ({
    name,
    communications,
    devices: [2, 4],
    build: (d) => {
      const f = new Fusion();
      const context = { ...sizes, f, d, dtype, sp, mesh: DeviceMesh.range(d) };
      const { outputs: results, weights } = model(context);
      const of = results[output];
      const [x] = f.inputs;
      if (of === undefined || x === undefined) throw new Error("no such output");
      const cotangent = f.input(of.extents, of.dtype).named("dy").setDeviceMesh(context.mesh);
      if (sp) cut(cotangent, 1, d);
      return splitBackward(f, { of: [of], cotangents: [cotangent], wrt: [x, ...weights] }).backward;
    },
  });
}

const mlpModel = (context: Context): Model => {
  const { linear0, between, linear1, output, weights } = mlp(context, rows(context));
  return { outputs: [linear0, between, linear1, output], weights };
};

const attentionModel = (context: Context): Model => {
  const { linear0, between, linear1, output, weights } = attention(context, rows(context));
  return { outputs: [linear0, between, linear1, output], weights };
};

const blockModel = (context: Context): Model => block(context, rows(context));

/** linear weights whose loop domain is split, and inputs [B, S, E]; the axis of devices is no axis of theirs. */
function splitWeight(context: Context, name: string, axis: number, ...shape: readonly number[]): TensorView {
  const { f, d, dtype, mesh } = context;
  return cut(f.input(shape, dtype).named(name).setDeviceMesh(mesh), axis, d);
}

function splitMlp(context: Context, x: TensorView): Layer {
  const { f, E, dtype, mesh } = context;
  const [w0, b0] = [splitWeight(context, "w0_mlp", 0, 4 * E, E), splitWeight(context, "b0_mlp", 0, 4 * E)];
  const [w1, b1] = [splitWeight(context, "w1_mlp", 1, E, 4 * E), f.input([E], dtype).named("b1_mlp")];
  place(mesh, b1);
  const linear0 = linear(x, w0, b0);
  const between = cast(gelu(wide(linear0), "tanh"), dtype);
  const linear1 = linear(between, w1, b1);
  return { linear0, between, linear1, output: linear1, weights: [w0, b0, w1, b1] };
}

function splitAttention(context: Context, x: TensorView): Layer {
  const { f, B, S, E, H, dtype, mesh } = context;
  const [w0, b0] = [splitWeight(context, "w0_mha", 0, 3 * E, E), splitWeight(context, "b0_mha", 0, 3 * E)];
  const [w1, b1] = [splitWeight(context, "w1_mha", 1, E, E), f.input([E], dtype).named("b1_mha")];
  place(mesh, b1);
  const linear0 = linear(x, w0, b0);
  const D = E / H;
  const heads = permute(reshape(linear0, [B, S, H, 3 * D]), [0, 2, 1, 3]);
  const [q, k, v] = split(heads, [D, D, D], -1);
  const between = sdpa(q, k, v, { causal: "topLeft" }).output;
  const linear1 = linear(reshape(permute(between, [0, 2, 1, 3]), [B, S, E]), w1, b1);
  return { linear0, between, linear1, output: linear1, weights: [w0, b0, w1, b1] };
}

/** x [B, S, E], with S cut with sp. */
function tokens(context: Context): TensorView {
  const { f, d, B, S, E, dtype, mesh, sp } = context;
  const x = f.input([B, S, E], dtype).named("x").setDeviceMesh(mesh);
  return sp ? cut(x, 1, d) : x;
}

const splitMlpModel = (context: Context): Model => {
  const { output, weights } = splitMlp(context, tokens(context));
  return { outputs: [output], weights };
};

const splitAttentionModel = (context: Context): Model => {
  const x = tokens(context);
  const { output, weights } = splitAttention(context, x);
  return { outputs: [add(x, output)], weights };
};

/** The Python suite's block, with dropout of 0.1. */
const splitBlockModel = (context: Context): Model => {
  const { f, E, dtype, mesh } = context;
  const x = tokens(context);
  const seed = f.input([], "int64").named("seed");
  const norms = [0, 1].map((i) => [f.input([E], dtype).named(`gain${i}`), f.input([E], dtype).named(`shift${i}`)]);
  place(mesh, seed, ...norms.flat());
  const [norm0 = [], norm1 = []] = norms;
  const mha = splitAttention(context, layerNorm(x, ...norm0));
  const middle = add(wide(x), dropout(wide(mha.output), 0.1, seed));
  const ln1 = cast(layerNorm(middle, ...norm1.map(wide)), dtype);
  const last = splitMlp(context, ln1);
  const out = cast(add(middle, dropout(wide(last.output), 0.1, seed)), dtype);
  return {
    outputs: [mha.linear0, mha.between, mha.linear1, last.linear0, last.linear1, out],
    weights: [...norms.flat(), ...mha.weights, ...last.weights],
  };
};

export const transformerPrograms: readonly Build[] = [
  suite("MLP_Layer", "Allreduce 1", false, mlpModel),
  suite("Sequence_Parallel_MLP_Layer", "Allgather 1, ReduceScatter 1", true, mlpModel),
  suite("MultiheadAttention", "Allreduce 1", false, attentionModel),
  suite("MultiheadAttention_SP", "Allgather 1, ReduceScatter 1", true, attentionModel),
  backward("MLP_Backward", "Allreduce 1", 3, mlpModel),
  backward("MHA_Backward", "Allreduce 1", 3, attentionModel),
  suite("Forward_SP", "Allgather 2, ReduceScatter 2", true, blockModel),
  suite("Forward", "Allreduce 2", false, blockModel),
  backward("Backward", "Allreduce 2", 4, blockModel),
  suite("LoopSplitMLP", "Allreduce 1", false, splitMlpModel),
  suite("LoopSplitMHAFwd", "Allreduce 1", false, splitAttentionModel),
  suite("test_transformer_forward", "Allreduce 2", false, splitBlockModel),
  suite("test_transformer_forward", "Allgather 2, ReduceScatter 2", true, splitBlockModel),
  backward("test_transformer_backward", "Allreduce 2", 5, splitBlockModel),
  backward("test_transformer_backward", "Allgather 4, Allreduce 6, ReduceScatter 2", 5, splitBlockModel, true),
];
