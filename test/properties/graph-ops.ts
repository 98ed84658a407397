/** The ops of random graphs: those of a transformer, with its shapes at small sizes. */
import {
  add,
  amax,
  broadcast,
  cast,
  div,
  exp,
  type DType,
  type Fusion,
  linear,
  matmul,
  mul,
  permute,
  relu,
  reshape,
  set,
  sub,
  sum,
  tanh,
  type TensorView,
} from "@braid-compiler/braid";

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
  readonly shapes: ReadonlyMap<TensorView, readonly number[]>;
}

/** More elements make the oracle slow. */
const mostElements = 20_000;

/** Appends the steps to an empty Fusion; its outputs are the tensors that nothing reads. */
export function grow(f: Fusion, shape: readonly number[], symbolic: boolean, steps: readonly GraphStep[]): Grown {
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
  const values = [input(shape, "float")];
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
  for (const tensor of values) if (!read.has(tensor)) f.output(tensor);
  return { inputs, made: [...new Set([...inputs, ...values])], shapes };
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
  if (shape.length < 2) return unary();
  const lead = shape.slice(0, -1);
  switch (op) {
    case 0:
    case 1:
      return keep(linear(x, input([width, inner])), [...lead, width]);
    case 2:
    case 3:
      return keep(linear(x, input([width, inner]), input([width])), [...lead, width]);
    case 4:
      return keep(matmul(x, input([inner, width])), [...lead, width]);
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
      return keep(matmul(x, transposed), [...lead, rows]);
    }
    case 14:
      return keep(cast(x, (["double", "bfloat16", "half"] as const)[size % 3] ?? "double"), shape);
    default:
      return unary();
  }
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
