/** The ops of random graphs: those of a transformer, with its shapes at small sizes, and rows of indices. */
import {
  add,
  amax,
  broadcast,
  cast,
  cat,
  cummax,
  cumsum,
  div,
  dynamicSlice,
  dynamicUpdate,
  exp,
  type DType,
  type Fusion,
  gather,
  indexSelect,
  linear,
  matmul,
  minimum,
  mul,
  pad,
  permute,
  relu,
  reshape,
  scatterAdd,
  sdpa,
  type SdpaOptions,
  type SdpaMasks,
  select,
  set,
  slice,
  sort,
  sub,
  sum,
  tanh,
  type TensorView,
  topk,
  triu,
} from "../../src/index.ts";
import { dtypes } from "../../src/numerics/dtype.ts";

export interface GraphStep {
  readonly op: number;
  /** Which tensor, the last one first. */
  readonly operand: number;
  readonly other: number;
  /** An extent, an axis or a kind. */
  readonly size: number;
}

export interface Grown {
  readonly inputs: readonly TensorView[];
  /** All tensors that a step gave, and the inputs. */
  readonly made: readonly TensorView[];
  readonly outputs: readonly TensorView[];
  readonly shapes: ReadonlyMap<TensorView, readonly number[]>;
}

/** More elements make the oracle slow. */
const mostElements = 20_000;

/** Appends the steps to an empty Fusion; its outputs are the tensors that nothing reads. `dtype` is that of floats. */
export function grow(
  f: Fusion,
  shape: readonly number[],
  symbolic: boolean,
  steps: readonly GraphStep[],
  dtype: DType = "float",
): Grown {
  const shapes = new Map<TensorView, readonly number[]>();
  const inputs: TensorView[] = [];
  const [rows] = shape;
  const input = (extents: readonly number[], dtype: DType): TensorView => {
    // One row of a later input may be a row for all: its extent is no unknown.
    const isOpen = symbolic && extents[0] === rows && extents.length > 1 && (rows !== 1 || inputs.length === 0);
    const tensor = f.input(isOpen ? [null, ...extents.slice(1)] : extents, dtype);
    inputs.push(tensor);
    shapes.set(tensor, extents);
    return tensor;
  };
  const values = [input(shape, dtype)];
  const read = new Set<TensorView>();
  const context: Context = {
    input,
    values,
    read,
    shapeOf: (tensor) => shapes.get(tensor) ?? [],
    keep: (tensor, extents) => {
      shapes.set(tensor, extents);
      return tensor;
    },
  };
  for (const step of steps) {
    const x = values[values.length - 1 - (step.operand % Math.min(3, values.length))];
    if (x === undefined) continue;
    values.push(apply(step, x, context));
    read.add(x);
  }
  const outputs = values.filter((tensor) => !read.has(tensor));
  for (const tensor of outputs) f.output(tensor);
  return { inputs, made: [...new Set([...inputs, ...values])], outputs, shapes };
}

interface Context {
  readonly input: (extents: readonly number[], dtype: DType) => TensorView;
  /** Those that a later step reads. */
  readonly read: Set<TensorView>;
  readonly values: readonly TensorView[];
  readonly shapeOf: (tensor: TensorView) => readonly number[];
  readonly keep: (tensor: TensorView, extents: readonly number[]) => TensorView;
}

const widths = [4, 6, 8, 3, 1, 5, 12, 7];

function apply({ op, other, size }: GraphStep, x: TensorView, context: Context): TensorView {
  const { values, shapeOf, keep, read } = context;
  const input = (extents: readonly number[]): TensorView => context.input(extents, x.dtype);
  const shape = shapeOf(x);
  const width = widths[size % widths.length] ?? 4;
  const inner = shape.at(-1) ?? 1;
  const total = shape.reduce((product, extent) => product * extent, 1);
  const unary = (): TensorView => keep([relu, tanh][size % 2]?.(x) ?? set(x), shape);
  if (shape.length < 2 || (op > 14 && shape.includes(0))) return unary();
  const lead = shape.slice(0, -1);
  const sums = dtypes[x.dtype].bytes === 2 && other % 2 === 0 ? { dtype: "float" as const } : {};
  switch (op) {
    case 0:
    case 1:
      return keep(linear(x, input([width, inner])), [...lead, width]);
    case 2:
    case 3:
      return keep(linear(x, input([width, inner]), input([width])), [...lead, width]);
    case 4:
      return keep(matmul(x, input([inner, width]), sums), [...lead, width]);
    case 5: {
      // A residual, or a new input of the same shape.
      const earlier = values.find((tensor) => tensor !== x && shapeOf(tensor).join() === shape.join());
      if (earlier !== undefined) read.add(earlier);
      const binary = [add, mul, sub][size % 3] ?? add;
      return keep(binary(x, earlier ?? input(shape)), shape);
    }
    case 6: {
      // A row of scales, or one number per row.
      const extents = shape.map((extent, axis) => ((axis === shape.length - 1) === (other % 2 === 0) ? extent : 1));
      return keep(([mul, add][size % 2] ?? mul)(x, input(extents)), shape);
    }
    case 7:
      return softmax(x, shape, keep);
    case 8: {
      const axis = other % shape.length;
      const result = [sum, amax][size % 2] ?? sum;
      if (shape[axis] === 0 && result === amax) return unary();
      return keep(
        result(x, [axis]),
        shape.filter((_, i) => i !== axis),
      );
    }
    case 9:
    case 10:
      return reshaped(x, shape, other, keep) ?? unary();
    case 11:
    case 12: {
      const order = shape.map((_, i) => (i + 1 + (other % (shape.length - 1))) % shape.length);
      return keep(
        permute(x, order),
        order.map((i) => shape[i] ?? 1),
      );
    }
    case 13: {
      // Scores: x times its own transpose.
      const rows = shape.at(-2) ?? 1;
      if ((total / Math.max(inner, 1)) * rows > mostElements) return unary();
      const order = [...shape.keys()];
      order.push(...order.splice(-2).toReversed());
      const transposed = keep(permute(x, order), [...shape.slice(0, -2), inner, rows]);
      return keep(matmul(x, transposed, sums), [...lead, rows]);
    }
    case 14:
      return keep(cast(x, (["double", "bfloat16", "half"] as const)[size % 3] ?? "double"), shape);
    case 15:
      return keep(([cumsum, cummax][size % 2] ?? cumsum)(x, other % shape.length), shape);
    case 16:
      return keep(sort(x, other % shape.length, { descending: size % 2 === 0 }).values, shape);
    case 17: {
      const axis = other % shape.length;
      const k = 1 + (size % Math.max(1, shape[axis] ?? 1));
      return shape[axis] === 0 ? unary() : keep(topk(x, k, axis).values, shape.with(axis, k));
    }
    case 18:
    case 19: {
      // A start that is often out of range; one past the end would end a run that updates.
      const axis = other % shape.length;
      const length = 1 + (size % Math.max(1, shape[axis] ?? 1));
      if (shape[axis] === 0) return unary();
      const start = context.input([], "int64");
      const part = shape.with(axis, length);
      return op === 18
        ? keep(dynamicSlice(x, axis, start, length), part)
        : keep(dynamicUpdate(x, axis, minimum(start, (shape[axis] ?? 0) - length), input(part)), shape);
    }
    case 20: {
      const axis = other % shape.length;
      const joined = cat([x, input(shape.with(axis, width))], axis);
      return keep(joined, shape.with(axis, (shape[axis] ?? 0) + width));
    }
    case 21: {
      const widthsOf = (axis: number): readonly [number, number] =>
        axis === other % shape.length ? [size % 3, 2] : [0, 0];
      const padded = pad(x, [...shape.keys()].map(widthsOf), size % 2);
      return keep(
        padded,
        shape.map((extent, axis) => extent + widthsOf(axis)[0] + widthsOf(axis)[1]),
      );
    }
    case 22:
      return cut(x, shape, other % shape.length, size, keep) ?? unary();
    case 23: {
      const axis = other % shape.length;
      const index = context.input(size % 2 === 0 ? [width] : shape, "int64");
      return size % 2 === 0
        ? keep(indexSelect(x, axis, index), shape.with(axis, width))
        : keep(size % 4 === 1 ? gather(x, axis, index) : scatterAdd(x, axis, index, input(shape)), shape);
    }
    case 24:
      return keep(triu(x, (size % 3) - 1), shape);
    case 25:
    case 26:
      return attention(x, shape, { other, size }, context) ?? unary();
    default:
      return unary();
  }
}

/** A part of an axis, or one index of it; null for a tensor without elements. */
function cut(
  x: TensorView,
  shape: readonly number[],
  axis: number,
  size: number,
  keep: Context["keep"],
): TensorView | null {
  const extent = shape[axis] ?? 0;
  if (shape.includes(0)) return null;
  if (size % 3 === 0) return keep(select(x, axis, size % extent), shape.toSpliced(axis, 1));
  const [start, step] = [size % extent, 1 + (size % 2)];
  const bounds = [0, 1].map((end) =>
    x.extents.map((each, i) => (i === axis ? (end === 0 ? start : extent) : end === 0 ? 0 : each)),
  );
  const steps = shape.map((_, i) => (i === axis ? step : 1));
  return keep(slice(x, bounds[0] ?? [], bounds[1] ?? [], steps), shape.with(axis, Math.ceil((extent - start) / step)));
}

/** Queries x [.., L, d], with keys of their own and one of the masks; null for more elements than the oracle likes. */
function attention(
  x: TensorView,
  shape: readonly number[],
  { other, size }: Pick<GraphStep, "other" | "size">,
  context: Context,
): TensorView | null {
  const batch = shape.slice(0, -2);
  const [rows, depth, keys, width] = [
    shape.at(-2) ?? 0,
    shape.at(-1) ?? 0,
    3 + other,
    widths[size % widths.length] ?? 4,
  ];
  const scores = [...batch, rows, keys];
  if (shape.includes(0) || scores.reduce((product, each) => product * each, 1) > mostElements) return null;
  const options = ((): SdpaOptions & SdpaMasks => {
    switch (other) {
      case 0:
        return {};
      case 1:
        return { causal: "bottomRight" };
      case 2:
        return { mask: context.input(scores, x.dtype) };
      case 3:
        return { mask: context.input([rows, keys], "bool"), causal: "topLeft" };
      case 4:
        return { keyLengths: context.input([], "int64") };
      case 5:
        return { causal: "topLeft", window: 2 };
      case 6:
        return { softCap: 2 };
      default:
        return { mask: context.input([1, keys], x.dtype), softCap: 3 };
    }
  })();
  const [k, v] = [context.input([...batch, keys, depth], x.dtype), context.input([...batch, keys, width], x.dtype)];
  return context.keep(sdpa(x, k, v, options).output, [...batch, rows, width]);
}

/** Each row divided by the sum of its exponentials. */
function softmax(x: TensorView, shape: readonly number[], keep: Context["keep"]): TensorView {
  if (shape.at(-1) === 0) return keep(tanh(x), shape);
  const flags = shape.map((_, axis) => axis === shape.length - 1);
  const lead = shape.slice(0, -1);
  const ones = [...lead, 1];
  const spread = (rows: TensorView): TensorView => keep(broadcast(keep(rows, lead), flags), ones);
  const last = shape.length - 1;
  const shifted = keep(exp(keep(sub(x, spread(amax(x, [last]))), shape)), shape);
  return keep(div(shifted, spread(sum(shifted, [last]))), shape);
}

/** Splits the last axis into heads, or merges the last two axes, or the first two; null if there is no such shape. */
function reshaped(x: TensorView, shape: readonly number[], kind: number, keep: Context["keep"]): TensorView | null {
  const inner = shape.at(-1) ?? 1;
  const extents = x.extents;
  const isOpen = x.extents.some((extent) => extent.kind !== "constant");
  const heads = [2, 3, 4].find((count) => inner > 0 && inner % count === 0);
  if (kind % 3 === 0 && heads !== undefined) {
    const result = [...shape.slice(0, -1), heads, inner / heads];
    return keep(reshape(x, [...extents.slice(0, -1), heads, inner / heads]), result);
  }
  if (shape.length < 3 || (isOpen && shape.includes(0))) return null;
  if (kind % 3 === 1) {
    const merged = inner * (shape.at(-2) ?? 1);
    return keep(reshape(x, [...extents.slice(0, -2), merged]), [...shape.slice(0, -2), merged]);
  }
  const merged = (shape[0] ?? 1) * (shape[1] ?? 1);
  return keep(reshape(x, [isOpen ? -1 : merged, ...extents.slice(2)]), [merged, ...shape.slice(2)]);
}
