/**
 * Generated code of programs (CUDA sources, JavaScript and WebAssembly), their simulations, and the choices of
 * schedules.
 */
import { readFileSync } from "node:fs";
import { examples } from "./command-lines.ts";
import { cli, hash, load, Page, textOr } from "./page.ts";
import {
  apiNames,
  braid,
  internals,
  copyKernel,
  createKernelLibrary,
  createWasmMemory,
  folders,
  type Kernel,
  type KernelSource,
  kernelSteps,
  linkKernel,
  noBarriers,
  type Operand,
  parseImplementations,
  planOwn,
  gemmKernel,
  profileName,
  sampleKernels,
  splitKernel,
} from "./sources.ts";

type ExecutorOptions = braid.ExecutorOptions;
type Example = { readonly default: unknown };

const profile = braid.parseProfile(readFileSync(`profiles/${profileName}.json`, "utf8"), profileName);

/** Thrown instead of preparing, with the Program. */
class Caught extends Error {
  readonly program: braid.Program;
  constructor(program: braid.Program) {
    super("caught");
    this.program = program;
  }
}

const catching: braid.Backend = {
  name: "catching",
  open: async () => ({
    prepare: (program) => Promise.reject(new Caught(program)),
    close: async () => {},
  }),
};

async function executorOf(example: string, options: ExecutorOptions, params: Readonly<Record<string, number>> = {}) {
  const { default: program } = await load<Example>(`${folders.examples}/${example}.ts`);
  if (!internals.isProgramFile(program)) throw new Error(`${example} is no program`);
  const known = Object.fromEntries(Object.entries(params).filter(([name]) => name in program.defaults));
  const build = (rank: number) => program.build({ devices: options.devices, rank, params: known });
  const built = build(0);
  const source = "data" in built ? built : (rank: number) => build(rank) as braid.HostProgram;
  return braid.MultiDeviceExecutor.create(source, { on: catching, ...options });
}

/** The Program that an executor passes to its back end. */
async function programOf(example: string, options: ExecutorOptions): Promise<braid.Program> {
  const executor = await executorOf(example, options);
  const { tensors, inputs } = executor.hostProgram(0);
  const zeros = inputs.map((id) => {
    const { dtype, domain } = tensors[id] ?? { dtype: "float", domain: { logical: [] } };
    const axes = domain.logical.filter(({ iterType }) => iterType !== "reduction");
    const shape = axes.map(({ extent }) => (extent.kind === "constant" ? extent.value : NaN));
    return braid.Tensor.zeros(shape, dtype);
  });
  try {
    await executor.run(zeros);
  } catch (error) {
    if (error instanceof Caught) return error.program;
    throw error;
  }
  throw new Error("nothing was prepared");
}

const dedicated = { [apiNames.copyLane]: "dedicated" } as const;
const cuda = { backend: "cuda", [apiNames.schedule]: dedicated } as const;
const settings: Readonly<Record<string, Omit<ExecutorOptions, "devices">>> = {
  nccl: {},
  serial: { overlap: false },
  cuda,
  "cuda put": { ...cuda, protocol: "put" },
  "cuda broadcast": { ...cuda, p2p: "broadcast" },
  "cuda accumulate": { ...cuda, accumulate: true },
  "cuda in parts": {
    ...cuda,
    [apiNames.schedule]: {
      ...dedicated,
      [apiNames.inPlace]: true,
      [apiNames.splitChunks]: 2,
      [apiNames.computeStreams]: 1,
    },
  },
  "cuda merged": {
    ...cuda,
    [apiNames.schedule]: {
      ...dedicated,
      [apiNames.inPlace]: true,
      [apiNames.ownLast]: true,
    },
  },
  "cuda early": {
    ...cuda,
    [apiNames.schedule]: {
      ...dedicated,
      [apiNames.smMargin]: 8,
    },
  },
  "cuda batched": {
    ...cuda,
    [apiNames.schedule]: { ...dedicated, [apiNames.batchSignals]: true, [apiNames.ownLast]: true },
  },
};

function sourceText({ text, grid, block, parameters }: KernelSource): string {
  return `// grid ${grid.join(" x ")}, block ${block.join(" x ")}, parameters ${JSON.stringify(parameters)}\n${text}`;
}

const once = { signals: 1, waits: 1 };

function cudaText(kernel: Kernel, alignment: number): string {
  const { steps, scratchBytes } = kernelSteps(kernel, () => alignment);
  const texts = steps.map((step) => {
    if (step.kind === "kernel") return sourceText(step.source);
    const { contraction, a, b, bias, addend, scales = [], c } = step;
    const operands = [a, b, bias, addend, ...scales, c].filter((operand) => operand !== null);
    const source = gemmKernel(
      contraction,
      operands.map(({ memory }) => memory),
      addend !== null,
    );
    return `${JSON.stringify(step)}\n${sourceText(source)}`;
  });
  const links = [noBarriers, { before: once, after: once }].map((barriers) =>
    kernel.kind === "combine" ? linkKernel(kernel, () => alignment, barriers) : null,
  );
  return [`// scratch ${scratchBytes}`, ...texts, ...links.map((link) => (link === null ? "" : sourceText(link)))].join(
    "\n",
  );
}

/** Hashes of the modules compiled in the meantime. */
const modules: string[] = [];
type WasmModule = new (bytes: Uint8Array) => object;
const wasm = (globalThis as unknown as { readonly WebAssembly: { Module: WasmModule } }).WebAssembly;
wasm.Module = class extends wasm.Module {
  constructor(bytes: Uint8Array) {
    super(bytes);
    modules.push(`module ${hash(bytes)}`);
  }
};

function cpuText(kernel: Kernel, simd: "always" | "never"): string {
  modules.length = 0;
  const memory = createWasmMemory(1 << 16);
  const library = createKernelLibrary({ memory, scratch: { address: 1 << 12, bytes: 2 ** 40 }, simd });
  const text = library.prepare(kernel).toString();
  return [...modules, text, ""].join("\n");
}

async function addKernel(page: Page, title: string, kernel: Kernel): Promise<void> {
  for (const alignment of [256, 4]) {
    page.add(`${title}, CUDA, aligned to ${alignment}`, await textOr(() => cudaText(kernel, alignment)));
  }
  for (const simd of ["always", "never"] as const) {
    page.add(`${title}, CPU, SIMD ${simd}`, await textOr(() => cpuText(kernel, simd)));
  }
  page.add(`${title}, parts`, await textOr(() => JSON.stringify(splitKernel(kernel, 3))));
}

export async function kernelPages(): Promise<void> {
  const samples = new Page("kernels/samples");
  for (const [name, kernel] of Object.entries(sampleKernels)) await addKernel(samples, name, kernel);
  samples.save();
  const dtypes = ["double", "float", "half", "bfloat16", "int", "int64", "bool"] as const;
  for (const dtype of dtypes) {
    const page = new Page(`kernels/ops-${dtype}`);
    const of = (shape: readonly number[], type: Operand["dtype"] = dtype): Operand => ({
      dtype: type,
      shape,
      strides: shape.map((_, axis) => shape.slice(axis + 1).reduce((product, extent) => product * extent, 1)),
    });
    const flat = of([24, 40]);
    for (const op of ["neg", "abs", "relu", "gelu", "exp"] as const) {
      await addKernel(page, op, { kind: "unary", op, inputs: [flat], outputs: [flat] });
    }
    for (const op of ["add", "sub", "mul", "div"] as const) {
      await addKernel(page, op, { kind: "binary", op, inputs: [flat, of([24, 40])], outputs: [flat] });
    }
    for (const op of ["sum", "prod", "amax", "amin"] as const) {
      await addKernel(page, `${op} 0`, { kind: "reduction", op, axes: [0], inputs: [flat], outputs: [of([40])] });
      await addKernel(page, `${op} 1`, { kind: "reduction", op, axes: [1], inputs: [flat], outputs: [of([24])] });
      await addKernel(page, `combine ${op}`, { kind: "combine", op, inputs: [flat, flat, flat], outputs: [flat] });
    }
    for (const to of dtypes)
      await addKernel(page, `to ${to}`, { kind: "cast", inputs: [flat], outputs: [of([24, 40], to)] });
    const product = { inputs: [of([24, 40]), of([40, 12])], outputs: [of([24, 12])] };
    await addKernel(page, "matmul", { kind: "matmul", ...product });
    await addKernel(page, "matmul adding", { kind: "matmul", ...product, accumulate: true });
    await addKernel(page, "linear", {
      kind: "linear",
      inputs: [flat, of([12, 40]), of([12])],
      outputs: [of([24, 12])],
    });
    page.save();
  }
}

/** One page per example and number of devices: kernels, copies and simulations of its Programs in all settings. */
export async function examplePages(): Promise<void> {
  for (const example of examples) {
    for (const devices of [2, 4]) {
      const [kernels, simulated] = [
        new Page(`kernels/${example}-${devices}`),
        new Page(`simulated/${example}-${devices}`),
      ];
      const seen = new Set<string>();
      for (const [title, options] of Object.entries(settings)) {
        const text = await textOr(async () => {
          const program = await programOf(example, { devices, ...options });
          for (const kernel of program.kernels) {
            const key = JSON.stringify(kernel);
            if (!seen.has(key)) await addKernel(kernels, `${kernel.kind} ${seen.add(key).size}`, kernel);
          }
          for (const command of program.ranks.flatMap(({ commands }) => commands)) {
            if (command.kind !== "copy") continue;
            const { source, destination } = command;
            const key = JSON.stringify(
              [source, destination].map(({ dtype, shape, strides }) => [dtype, shape, strides]),
            );
            if (seen.has(key)) continue;
            kernels.add(`copy ${seen.add(key).size}`, sourceText(copyKernel(source, destination, () => 16)));
          }
          return simulationText(program);
        });
        simulated.add(title, text);
      }
      kernels.save();
      simulated.save();
    }
  }
}

/** The predicted time on the profile's machine, as commands and as a graph, and the trace. */
function simulationText(program: braid.Program): string {
  const texts = [true, false].map((graph) => {
    const { milliseconds, trace } = braid.simulate(program, profile, { graph });
    const rounded = JSON.stringify(trace, (_, value: unknown) =>
      typeof value === "number" ? value.toPrecision(9) : value,
    );
    const chrome = [...internals.chromeTraceText(program, trace)].join("");
    return `${milliseconds.toFixed(6)} milliseconds, trace ${hash(rounded)}, Chrome trace ${hash(chrome)}`;
  });
  const overlap = internals.overlapOf(program, braid.simulate(program, profile, { graph: true }).trace);
  return [...texts, JSON.stringify(overlap), `lists ${hash(internals.printProgram(program))}`].join("\n");
}

/** Sizes at which the choice is not obvious. */
const large = { M: 8192, K: 8192, N: 8192, H: 8192, S: 4 };

export async function choicePages(): Promise<void> {
  const page = new Page("choice/examples");
  for (const example of examples) {
    for (const [size, params] of Object.entries({ usual: {}, large })) {
      const text = await textOr(async () => {
        const options = { devices: 4, [apiNames.schedule]: "auto", profile } as const;
        const { choice } = await executorOf(example, options, params);
        if (choice === null) return "none";
        const considered = choice.considered.map(
          ({ candidate, milliseconds }) => `${milliseconds.toFixed(6)} ${candidate.name}`,
        );
        return [choice.reason, JSON.stringify(choice.chosen), ...considered].join("\n");
      });
      page.add(`${example}, ${size}`, text);
    }
  }
  page.save();
}

const implementations = [
  "compute-only",
  "serial;backend=nccl,cuda",
  "communication-only",
  "communication-only;backend=nccl",
  "communication-only;protocol=put",
  "braid;form=rotated,broadcast;backend=cuda,nccl",
  "braid;form=rotated;protocol=get,put;copyStream=inline,dedicated;streams=2,8",
  "braid;form=linear;backend=nccl;interStreamSync=true,false",
  "braid;form=collective;backend=nccl,cuda;chunks=2,8",
  "braid;form=rotated,broadcast;outputs=2",
  "braid;inPlace=true;ownLast=true,false;splitChunks=2;computeStreams=1,2",
  "braid;inPlace=true;batchSignals=true",
  "braid;form=rotated,collective;smMargin=8",
  "braid;scheduleChoice=auto",
];

export async function benchPages(): Promise<void> {
  for (const primitive of ["tp-columnwise", "tp-rowwise", "tp-allreduce"] as const) {
    const page = new Page(`bench/${primitive}`);
    for (const devices of [2, 4]) {
      for (const [m, n, k, dtype] of [
        [256, 64, 128, "float"],
        [8192, 4096, 8192, "bfloat16"],
      ] as const) {
        for (const each of implementations.flatMap((text) => parseImplementations(text, "--impl"))) {
          if (each.kind !== "braid" || (m * devices < 8192 * 4 && each.said.startsWith("choice"))) continue;
          const text = await textOr(() => {
            const problem = { primitive, m, n, k, dtype, devices };
            const { program, layout, reason } = planOwn(each, problem, { on: "cuda", profile });
            return [reason ?? "", JSON.stringify(layout), simulationText(program)].join("\n");
          });
          page.add(`${each.name} ${each.said}, ${m} x ${n} x ${k}, ${devices} devices`, text);
        }
      }
    }
    const sizes = ["--set", "m=64,n=16,k=32", "--devices", "2", "--repeat", "1"];
    const text = await cli("bench", primitive, ...sizes, "--check", "--json");
    const { rows } = JSON.parse(text.slice(0, text.lastIndexOf("}") + 1)) as { readonly rows: readonly Row[] };
    const told = rows.map(({ problem, name, option, source, failure }) =>
      JSON.stringify({ problem, name, option, source, failure }),
    );
    page.add("braid bench", told.join("\n"));
    page.save();
  }
}

interface Row {
  readonly problem: unknown;
  readonly name: string;
  readonly option: string;
  readonly source: string;
  readonly failure: unknown;
}
