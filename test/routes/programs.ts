/**
 * Programs whose routes could move more bytes than they need: `today` is what the busiest device receives, `enough`
 * what it would receive by the route in the comment. GPUs run them, too (test/gpu).
 */
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, broadcast, cat, expand, gelu, linear, matmul, reshape, set, slice } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { layout } from "./layout.ts";
import { place } from "./place-layout.ts";

export interface RouteProgram {
  readonly name: string;
  readonly devices: number;
  readonly today: number;
  readonly enough: number;
  /** Whether small integers round, too. */
  readonly rounds?: boolean;
  /** `size` is 4096 for bytes and 64 for values, in the one program that is large. */
  readonly program: (f: Fusion, size: number) => TensorView;
}

function on(mesh: string, cuts: string, ...tensors: readonly TensorView[]): void {
  for (const tensor of tensors) place(tensor, layout(mesh, cuts));
}

function from(mesh: string, cuts: string, devices: readonly number[], tensor: TensorView): void {
  place(tensor, layout(mesh, cuts, { devices }));
}

const grid = "y2 x2";

export const routePrograms: readonly RouteProgram[] = [
  {
    // Allgather of w along y: 64. ReduceScatter along x: 64.
    name: "a linear of operands and a residual that are cut along both dimensions",
    devices: 4,
    today: 128,
    enough: 128,
    program: (f) => {
      const [x, w, residual] = [f.input([8, 8]), f.input([8, 8]), f.input([8, 8])];
      on(grid, "[y][x]", x, w, residual);
      return add(residual, linear(x, w));
    },
  },
  {
    // The same twice.
    name: "an MLP and its residual on such a mesh",
    devices: 4,
    today: 256,
    enough: 256,
    rounds: true,
    program: (f) => {
      const [x, w1, w2] = [f.input([8, 8]), f.input([8, 8]), f.input([8, 8])];
      on(grid, "[y][x]", x, w1, w2);
      return add(x, linear(gelu(linear(x, w1)), w2));
    },
  },
  {
    // AllToAll of x: 4 x 8 x 8 x 4 / 4 x 3 / 4 = 192, and of y. To move the experts' weights and hidden rows takes 768.
    name: "experts on devices of their own, whose tokens come from all devices and go back there",
    devices: 4,
    today: 384,
    enough: 384,
    rounds: true,
    program: (f) => {
      const [x, w1, w2] = [f.input([4, 8, 8]), f.input([4, 8, 16]), f.input([4, 16, 8])];
      const y = matmul(gelu(matmul(x, w1)), w2);
      on("x4", "[][x][]", x, y);
      on("x4", "[x][][]", w1, w2);
      return y;
    },
  },
  {
    // Allgather of the sum: 8 x 8 x 4 x 3 / 4 = 192. To gather both operands takes 384.
    name: "a sum of two cut tensors that every device needs",
    devices: 4,
    today: 192,
    enough: 192,
    program: (f) => {
      const [a, b] = [f.input([8, 8]), f.input([8, 8])];
      const y = add(a, b);
      on("x4", "[x][]", a, b);
      on("x4", "[][]", y);
      return y;
    },
  },
  {
    // AllToAll of x: 4 x 4096 x 4 / 4 x 3 / 4 = 12,288. ReduceScatter of y: 4 x 4096 x 4 x 3 / 4 = 49,152.
    name: "a matmul of few rows by a weight whose contracted axis is cut, rows of all over the devices",
    devices: 4,
    today: 61_440,
    enough: 61_440,
    program: (f, size) => {
      const [x, w] = [f.input([4, size]), f.input([size, size])];
      const y = matmul(x, w);
      on("x4", "[x][]", x, w, y);
      return y;
    },
  },
  {
    // Two devices exchange their shares.
    name: "two dimensions of a mesh are exchanged",
    devices: 4,
    today: 128,
    enough: 128,
    program: (f) => {
      const x = f.input([16, 8]);
      const y = set(x);
      on(grid, "[y][x]", x);
      on(grid, "[x][y]", y);
      return y;
    },
  },
  {
    // Each device gets its share from one other.
    name: "the parts of an axis are reordered",
    devices: 32,
    today: 16,
    enough: 16,
    program: (f) => {
      const x = f.input([16, 8]);
      const y = set(x);
      on("x4 y2 z4", "[x y][z]", x);
      on("x4 y2 z4", "[y x][z]", y);
      return y;
    },
  },
  {
    // Each device gets the share of its neighbour.
    name: "the inner part of a mesh dimension is gathered",
    devices: 16,
    today: 32,
    enough: 32,
    program: (f) => {
      const x = f.input([16, 8]);
      const y = set(x);
      on("x2 y8", "[y][x]", x);
      on("x2 y4 z2", "[y][x]", y);
      return y;
    },
  },
  {
    // Each device of the second mesh gets its half.
    name: "rows over three devices to rows over two others",
    devices: 5,
    today: 96,
    enough: 96,
    program: (f) => {
      const x = f.input([12, 4]);
      const y = set(x);
      on("x3", "[x][]", x);
      from("x2", "[x][]", [3, 4], y);
      return y;
    },
  },
  {
    name: "a reshape that merges an axis with one index for each device with one that is cut",
    devices: 8,
    today: 0,
    enough: 0,
    program: (f) => {
      const x = f.input([4, 8]);
      const y = reshape(x, [32]);
      on("y4 x2", "[y][x]", x);
      on("y4 x2", "[y x]", y);
      return y;
    },
  },
  {
    name: "the reshape back",
    devices: 4,
    today: 0,
    enough: 0,
    program: (f) => {
      const x = f.input([8]);
      const y = reshape(x, [2, 4]);
      on(grid, "[y x]", x);
      on(grid, "[y][x]", y);
      return y;
    },
  },
  {
    // ReduceScatter along y: 64. Two devices exchange their shares: 64.
    name: "a contracted axis and the rows of the result on the same dimension",
    devices: 4,
    today: 128,
    enough: 128,
    program: (f) => {
      const [x, w] = [f.input([8, 8]), f.input([8, 8])];
      const y = linear(x, w);
      on(grid, "[x][y]", x);
      on(grid, "[][y]", w);
      on(grid, "[y][x]", y);
      return y;
    },
  },
  {
    // ReduceScatter.
    name: "columns of a sum over devices that become rows, which are cut",
    devices: 4,
    today: 1536,
    enough: 1536,
    program: (f) => {
      const [x, w] = [f.input([16, 8]), f.input([8, 32])];
      const y = matmul(x, w);
      const z = cat([slice(y, [0, 0], [16, 16]), slice(y, [0, 16], [16, 32])], 0);
      on("x4", "[][x]", x);
      on("x4", "[x][]", w, z);
      return z;
    },
  },
  {
    // The row once.
    name: "a stretched row that a peer reads",
    devices: 2,
    today: 16,
    enough: 16,
    program: (f) => {
      const [x, z] = [f.input([4]), f.input([3, 4])];
      on("x1", "[]", x);
      from("x1", "[][]", [1], z);
      return add(expand(broadcast(x, [true, false]), [3, 4]), z);
    },
  },
];

export function fusionOf({ program }: RouteProgram, size: number): Fusion {
  const f = new Fusion();
  f.output(program(f, size));
  return f;
}
