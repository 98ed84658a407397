/** nvFuser's tests/cpp/test_stream.cpp and tests/python/direct/test_stream.py: the Fusions, on one device. */
import { add, div, Fusion, matmul, set, sum, type TensorView } from "@braid-compiler/braid";
import { cut, outputs } from "./setup.ts";

export interface StreamProgram {
  readonly f: Fusion;
  readonly tensors: readonly TensorView[];
}

/** in + in, in chunks of columns. */
export function addPerStream(): StreamProgram {
  const f = new Fusion();
  const x = f.input([5, 6]);
  const y = add(x, x);
  outputs(f, y);
  for (const tensor of [x, y]) cut(tensor, 1, 3, "Stream");
  return { f, tensors: [x, y] };
}

/** Sets in chunks of rows, of rows, and of columns. */
export function differentShardings(): StreamProgram {
  const f = new Fusion();
  const x = f.input([4, 6]);
  const a = set(x);
  const b = set(a);
  const c = set(b);
  outputs(f, c);
  cut(a, 0, 2, "Stream");
  cut(b, 0, 2, "Stream");
  cut(c, 1, 2, "Stream");
  return { f, tensors: [a, b, c] };
}

/** Chunks of the weight's columns. */
export function forwardPropagation(): StreamProgram {
  const f = new Fusion();
  const [x, w] = [f.input([6, 4]), f.input([4, 6])];
  const y = matmul(x, w);
  outputs(f, y);
  cut(w, 1, 2, "Stream");
  return { f, tensors: [x, w, y] };
}

/** Chunks of the result's rows. */
export function backwardPropagation(): StreamProgram {
  const f = new Fusion();
  const x = f.input([6, 4]);
  const a = add(x, 1);
  const b = add(a, a);
  outputs(f, b);
  cut(b, 0, 2, "Stream");
  return { f, tensors: [x, a, b] };
}

/** Two readers of x + 1: a sum, and a quotient in chunks of rows. `columns`: the sum in chunks of columns. */
export function allocation({ columns }: { readonly columns: boolean }): StreamProgram {
  const f = new Fusion();
  const x = f.input([4, 6, 3]);
  const a = add(x, 1);
  const b = sum(a, [2]);
  const c = div(a, 2);
  outputs(f, b, c);
  cut(x, 0, 2, "Stream");
  if (columns) cut(b, 1, 2, "Stream");
  return { f, tensors: [x, a, b, c] };
}

/** Chunks of the result's columns. */
export function streamMatmul(): StreamProgram {
  const f = new Fusion();
  const [x, w] = [f.input([5, 7]), f.input([7, 6])];
  const y = matmul(x, w);
  outputs(f, y);
  cut(y, 1, 3, "Stream");
  return { f, tensors: [x, w, y] };
}

/** `inlinable`: both matmuls in chunks of rows; else the first in chunks of columns. */
export function twoMatmuls({ inlinable }: { readonly inlinable: boolean }): StreamProgram {
  const f = new Fusion();
  const width = inlinable ? 5 : 15;
  const [x, w1, w2] = [f.input([6, 3]), f.input([3, width]), f.input([width, 3])];
  const a = matmul(x, w1);
  const y = matmul(a, w2);
  outputs(f, y);
  if (inlinable) cut(x, 0, 3, "Stream");
  else {
    cut(w1, 1, 3, "Stream");
    cut(y, 0, 3, "Stream");
  }
  return { f, tensors: [x, w1, w2, a, y] };
}
