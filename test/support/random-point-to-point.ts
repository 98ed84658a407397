/**
 * Random Fusions that move a sharded axis to a Stream axis, so that lowering makes a loop over the devices: gathers,
 * exchanges and reductions on any mesh, with other ops around. A recipe is plain numbers, so that fast-check can shrink
 * it.
 */
import fc from "fast-check";
import { add, DeviceMesh, Fusion, matmul, type ParallelType, set, sum, type TensorView } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import { schedules } from "./point-to-point-schedules.ts";

export interface PointToPointRecipe {
  readonly form: "gather" | "exchange" | "reduce";
  /** Device ids of a mesh of one or two dimensions. */
  readonly devices: readonly number[];
  readonly rows: number;
  readonly along: "DIDx" | "DIDy";
  /** Where the sharded axis stands among the others. */
  readonly position: number;
  readonly scattered: number;
  /** The extent of the scattered axis if each device keeps a run of it; 0: each keeps one index. */
  readonly run: number;
  readonly extents: readonly number[];
  readonly before: boolean;
  /** `columns`: a matmul whose columns are sharded, and a set that gathers them chunk by chunk. */
  readonly behind: "nothing" | "add" | "matmul" | "columns";
  readonly streamed: boolean;
  readonly schedule: string;
  readonly streams: number;
  readonly chained: boolean;
  readonly after: boolean;
}

export const pointToPointRecipes: fc.Arbitrary<PointToPointRecipe> = fc.record({
  form: fc.constantFrom("gather", "gather", "exchange", "reduce"),
  devices: fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 1 }),
  rows: fc.constantFrom(1, 1, 2, 3),
  along: fc.constantFrom("DIDx", "DIDy"),
  position: fc.nat({ max: 2 }),
  scattered: fc.nat({ max: 3 }),
  run: fc.constantFrom(0, 0, 3, 4, 7),
  extents: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 2 }),
  before: fc.boolean(),
  behind: fc.constantFrom("nothing", "add", "matmul", "columns", "columns"),
  streamed: fc.boolean(),
  schedule: fc.constantFrom(...Object.keys(schedules)),
  streams: fc.constantFrom(1, 2, 3, 7),
  chained: fc.boolean(),
  after: fc.boolean(),
});

function meshOf({ devices, rows }: PointToPointRecipe): DeviceMesh {
  const columns = devices.length / rows;
  if (rows === 1 || !Number.isInteger(columns)) return new DeviceMesh(devices);
  return new DeviceMesh(Array.from({ length: rows }, (_, row) => devices.slice(row * columns, (row + 1) * columns)));
}

export function buildPointToPoint(recipe: PointToPointRecipe): Fusion {
  const f = new Fusion();
  const mesh = meshOf(recipe);
  const type = mesh.hasAxis(recipe.along) ? recipe.along : "DIDx";
  const size = mesh.size(type);
  const kept = recipe.run === 0 ? size : recipe.run;
  const others = recipe.extents.toSpliced(recipe.scattered % 3, 0, ...(recipe.form === "gather" ? [] : [kept]));
  const position = recipe.position % (others.length + 1);
  const shape = others.toSpliced(position, 0, size);
  const scattered = ((): number => {
    const among = recipe.scattered % 3;
    return among >= position ? among + 1 : among;
  })();
  const x = f.input(shape);
  const source = recipe.before ? add(x, x) : x;
  const y = recipe.form === "reduce" ? sum(source, [position]) : set(source);
  const tensors = [x, source, y];
  x.axis(position).parallelize(type);
  source.axis(position).parallelize(type);
  y.axis(position).parallelize("Stream");
  if (recipe.form !== "gather") {
    const cut = (tensor: TensorView, parallel: ParallelType): void => {
      const axis = recipe.run === 0 ? tensor.axis(scattered) : tensor.outerSplit(scattered, size);
      axis.parallelize(parallel);
    };
    cut(y, type);
    if (recipe.streamed && recipe.before) cut(source, "Stream");
  }
  if (recipe.behind === "nothing" || recipe.form !== "gather") {
    f.output(y);
  } else {
    // The contracted axis takes no Stream.
    const isStreamed = recipe.behind === "add" || position < shape.length - 1;
    const columns = recipe.behind === "columns" ? size : 2;
    const weight = recipe.behind === "add" ? null : f.input([at(shape, shape.length - 1), columns]);
    const z = weight === null ? add(y, y) : matmul(y, weight);
    if (isStreamed) z.axis(position).parallelize("Stream");
    if (weight !== null) tensors.push(weight);
    tensors.push(z);
    if (weight === null || recipe.behind !== "columns") {
      f.output(z);
    } else {
      const whole = set(z);
      tensors.push(whole);
      weight.axis(1).parallelize(type);
      z.axis(shape.length - 1).parallelize(type);
      if (isStreamed) whole.axis(position).parallelize("Stream");
      f.output(whole);
    }
  }
  for (const tensor of tensors) tensor.setDeviceMesh(mesh);
  return f;
}
