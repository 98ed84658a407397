/** Loops over devices that exchange partial results, as the benchmarks build them, and small host programs with a sum of two. */
import {
  compile,
  DeviceMesh,
  type DType,
  type Fusion,
  HostProgramBuilder,
  link,
  type Program,
  record,
  type TensorView,
} from "@braid-compiler/braid";
import { buildPrimitive, type Primitive } from "../../bench/compare/primitives.ts";
import type { CompileOptions } from "../../src/compile/compile.ts";
import type { Kernel } from "../../src/commands/kernel.ts";
import type { ScheduleOptions } from "../../src/schedule/schedule.ts";
import { at } from "../../src/support/invariant.ts";

export interface Exchange {
  readonly primitive: Primitive;
  readonly protocol: "get" | "put";
  readonly outputs?: number;
  readonly devices?: number;
  readonly dtype?: DType;
}

export function exchangeFusion({ primitive, outputs = 1, devices = 2, dtype = "bfloat16" }: Exchange): Fusion {
  return buildPrimitive("rotated", { primitive, m: 16, n: 6, k: 5, dtype, devices }, { chunks: devices, outputs });
}

export function exchangeOptions({ primitive, protocol, devices = 2 }: Exchange) {
  return {
    backend: "cuda",
    p2p: "rotated",
    protocol,
    insertReshardingAfter: primitive !== "tp-columnwise",
    interStreamSync: false,
    devices,
    streams: 64,
  } as const satisfies CompileOptions;
}

/** Not verified. */
export function exchange(each: Exchange, schedule: ScheduleOptions = {}): Program {
  return compile(exchangeFusion(each), { ...exchangeOptions(each), schedule, verify: "off" }).program;
}

/** All that belongs to a GEMM that adds what has arrived. */
export const inGemms = { dropSignals: true, inPlace: true, ownLast: true, gemmSums: true, computeStreams: 1 } as const;

/** The kernels of a rank's launches, in list order. */
export function launched({ ranks, kernels }: Program, rank = 0): readonly Kernel[] {
  return at(ranks, rank).commands.flatMap((each) => (each.kind === "launch" ? [at(kernels, each.kernel)] : []));
}

/** As words, `+` for a GEMM that adds its last input. */
export function kindsOf(program: Program, rank = 0): readonly string[] {
  return launched(program, rank).map((kernel) => `${kernel.kind}${"addend" in kernel && kernel.addend ? " +" : ""}`);
}

export interface HostTensors {
  readonly h: HostProgramBuilder;
  readonly rank: number;
  /** Integers [6, 6], of which all sums are exact. */
  readonly input: (shape?: readonly number[]) => TensorView;
  readonly output: (shape?: Parameters<HostProgramBuilder["tensor"]>[0]) => TensorView;
  readonly temporary: (shape?: Parameters<HostProgramBuilder["tensor"]>[0]) => TensorView;
}

/** What a GEMM of [6, 6] leaves: K is reduced. */
export const product = [6, 6, { reduced: 6 }] as const;
/** Two of them, and their sum. */
export const pair = [2, ...product] as const;
export const summed = [{ reduced: 2 }, 6, 6] as const;

/** Linked, on the caller's stream alone. */
export function hosted(
  build: (tensors: HostTensors) => void,
  { world = 1, protocol = "get" }: { readonly world?: number; readonly protocol?: "get" | "put" } = {},
): Program {
  const mesh = DeviceMesh.range(world);
  const options = { dtype: "int", mesh } as const;
  return link(
    Array.from({ length: world }, (_, rank) => {
      const h = new HostProgramBuilder();
      const temporary: HostTensors["temporary"] = (shape = [6, 6]) => h.allocate(h.tensor(shape, options));
      const output: HostTensors["output"] = (shape = [6, 6]) => {
        const tensor = h.tensor(shape, options);
        h.output(tensor);
        return tensor;
      };
      build({ h, rank, input: (shape = [6, 6]) => h.input(shape, options), output, temporary });
      return record(h.build(), { rank, protocol });
    }),
  );
}

/** From one rank to another, without a library. */
export function send(h: HostProgramBuilder, rank: number, from: number, to: number, buffer: TensorView): void {
  const type = rank === from ? "send" : "recv";
  for (const half of h.shareMemHandles({ type, buffer, peer: rank === from ? to : from })) h.wait(h.post(half));
}
