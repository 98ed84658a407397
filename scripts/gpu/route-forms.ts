/** Reshardings, and an MLP on a mesh of 2 x 2, for form-times.ts. */
import { compile, type CompileOptions } from "../../src/compile/compile.ts";
import type { Program } from "../../src/commands/program.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, gelu, linear, set } from "../../src/ir/api/ops.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { choose } from "../../src/tune/choose/choose.ts";
import { layout } from "../../test/routes/layout.ts";
import { place } from "../../test/routes/place-layout.ts";
import type { Form, Problem } from "./form.ts";
import { writeNoise } from "./noise.ts";

const columns = 8192;
const nccl = { backend: "nccl" } as const;
const get = { backend: "cuda", protocol: "get" } as const;
const put = { backend: "cuda", protocol: "put" } as const;

type Given = Omit<CompileOptions, "devices" | "on">;

function form(name: string, f: Fusion, devices: number, options: Given, profile: MachineProfile | null): Form {
  const { program } = compile(f, { ...options, devices, on: "cuda" });
  const predicted = profile === null ? null : simulate(program, profile, { graph: true }).milliseconds;
  return formOf(name, program, predicted);
}

function formOf(name: string, program: Program, predicted: number | null): Form {
  return { name, program, predicted, write: (prepared, rank) => writeNoise(program, prepared, rank) };
}

/** A layout in the notation of test/routes, maybe on the devices in another order. */
interface Stop {
  readonly cuts: string;
  readonly devices?: readonly number[];
}

/** `shard` bytes of bfloat16 for each device go through the layouts one after the other. */
function throughLayouts(mesh: string, stops: readonly Stop[], devices: number, shard: number): Fusion {
  const f = new Fusion();
  const x = f.input([(shard * devices) / 2 / columns, columns], "bfloat16");
  let last = x;
  for (const [i, { cuts, devices: order }] of stops.entries()) {
    if (i > 0) last = set(last);
    place(last, layout(mesh, cuts, order === undefined ? {} : { devices: order }));
  }
  f.output(last);
  return f;
}

/** `stops`: the layouts on the way, each of which a collective or a slice makes of the one before. */
function move(name: string, mesh: string, stops: readonly Stop[], devices: number, shard: number): Problem {
  const ends = stops.filter((_, i) => i === 0 || i === stops.length - 1);
  return {
    name: `${name}, ${shard / 2 ** 20} MiB a device`,
    devices,
    forms: (profile) =>
      Object.entries({ nccl, get, put }).flatMap(([how, options]) => [
        form(`exchange, ${how}`, throughLayouts(mesh, ends, devices, shard), devices, options, profile),
        form(
          `collectives, ${how}`,
          throughLayouts(mesh, stops, devices, shard),
          devices,
          { ...options, disablePass: ["insert-routes"] },
          profile,
        ),
      ]),
  };
}

/** On a mesh of 2 x 2, annotated on its inputs. */
function gridMlp(size: number, dtype: DType): Fusion {
  const f = new Fusion();
  const [x, w1, w2] = [f.input([size, size], dtype), f.input([size, size], dtype), f.input([size, size], dtype)];
  f.output(add(x, linear(gelu(linear(x, w1)), w2)));
  for (const tensor of [x, w1, w2]) place(tensor, layout("y2 x2", "[y][x]"));
  return f;
}

function mlp(size: number, dtype: DType): Problem {
  const devices = 4;
  return {
    name: `MLP on 2 x 2, ${size} of ${dtype}`,
    devices,
    forms: (profile) => [
      form("serial, nccl", gridMlp(size, dtype), devices, nccl, profile),
      form("serial, get", gridMlp(size, dtype), devices, get, profile),
      form("device loops, put", gridMlp(size, dtype), devices, { ...put, deviceLoops: true }, profile),
      ...(profile === null
        ? []
        : [nccl, { backend: "cuda" } as const].map((options): Form => {
            const { compilation, milliseconds } = choose(
              gridMlp(size, dtype),
              { ...options, devices, on: "cuda" },
              profile,
            );
            return formOf(`auto, ${options.backend}`, compilation.program, milliseconds);
          })),
    ],
  };
}

const swapped = [{ cuts: "[y][x]" }, { cuts: "[y][]" }, { cuts: "[][y]" }, { cuts: "[x][y]" }];
const reordered = [{ cuts: "[x y][]" }, { cuts: "[x][]" }, { cuts: "[][]" }, { cuts: "[y x][]" }];
const turned = [{ cuts: "[x][]" }, { cuts: "[][]" }, { cuts: "[x][]", devices: [1, 0] }];

export const routeProblems: readonly Problem[] = [
  ...[2 ** 26, 2 ** 30].flatMap((shard) => [
    move("dimensions exchanged", "y2 x2", swapped, 4, shard),
    move("parts reordered", "y2 x2", reordered, 4, shard),
    move("devices exchanged", "x2", turned, 2, shard),
  ]),
  mlp(8192, "bfloat16"),
  mlp(8192, "half"),
];
