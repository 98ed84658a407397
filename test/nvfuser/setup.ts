/** The notation of nvFuser's multi-device tests: outer_split and parallelize, meshes, reshardings, tensors of floats. */
import { DeviceMesh, Fusion, type ParallelType, type TensorView } from "@braid-compiler/braid";
import { expect } from "vitest";
import { shardOf } from "../../src/executor/shard.ts";
import { sizesFromShapes } from "../../src/ir/sizes.ts";
import { type Tensor, tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { isResharding } from "../../src/passes/routes/layouts.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle, type RunSetting } from "../support/expect-oracle.ts";

/** Splits `parts` parts off axis `axis` of the loop domain and puts them on `type`. */
export function cut<T extends TensorView>(tensor: T, axis: number, parts: number, type: ParallelType = "DIDx"): T {
  tensor.outerSplit(axis, parts).parallelize(type);
  return tensor;
}

/** Puts a whole axis on `type`. */
export function whole<T extends TensorView>(tensor: T, axis: number, type: ParallelType = "DIDx"): T {
  tensor.axis(axis).parallelize(type);
  return tensor;
}

export function place(mesh: DeviceMesh, ...tensors: readonly TensorView[]): void {
  for (const tensor of tensors) tensor.setDeviceMesh(mesh);
}

/** Makes the tensors the outputs of their Fusion. */
export function outputs(f: Fusion, ...tensors: readonly TensorView[]): void {
  for (const tensor of tensors) f.output(tensor);
}

/** nvFuser's isResharding of the op that defines `tensor`, before any pass. */
export function reshards(f: Fusion, tensor: TensorView): boolean {
  const { ops, tensors } = f.data();
  const op = ops.find(({ output }) => output === tensor.id);
  if (op === undefined) throw new Error(`T${tensor.id} is an input`);
  return isResharding(op, tensors);
}

/** What the devices exchange, and the oracle's results on the machine. `shapes`: of inputs with open extents. */
export async function expectExchange(
  f: Fusion,
  devices: number,
  communications: string,
  shapes?: readonly (readonly number[])[],
): Promise<void> {
  expect(collectivesOf(f, devices)).toBe(communications);
  await expectOracle(f, { devices, machineAlone: true, ...sizesOf(f, shapes) });
}

/** What `tensor`'s op is found to be, before any pass, and what the whole program exchanges and computes. */
export async function expectResharding(
  f: Fusion,
  tensor: TensorView,
  expected: boolean,
  communications: string,
  devices = 2,
): Promise<void> {
  expect(reshards(f, tensor)).toBe(expected);
  outputs(f, tensor);
  await expectExchange(f, devices, communications);
}

function sizesOf(f: Fusion, shapes?: readonly (readonly number[])[]): Pick<RunSetting, "sizes"> {
  if (shapes === undefined) return {};
  const inputs = f.inputs.map((input) => input.data());
  return { sizes: sizesFromShapes(inputs, shapes) };
}

/** A test of nvFuser that is run: its Fusion, what the devices exchange, and on how many devices it runs. */
export interface SuiteProgram {
  readonly name: string;
  readonly build: (devices: number) => Fusion;
  /** Kinds and numbers of communications on two devices, as `collectivesOf` writes them. */
  readonly communications: string;
  /** Numbers of devices; 1, 2 and 4 if not given. */
  readonly devices?: readonly number[];
  readonly setting?: Omit<RunSetting, "devices">;
  /** Shapes of the inputs, if the Fusion leaves extents open. */
  readonly shapes?: (devices: number) => readonly (readonly number[])[];
}

/** `body` gets the mesh of all devices. */
export function program(
  name: string,
  communications: string,
  body: (f: Fusion, devices: number, mesh: DeviceMesh) => void,
  more: Omit<SuiteProgram, "name" | "communications" | "build"> = {},
): SuiteProgram {
  const build = (devices: number): Fusion => {
    const f = new Fusion();
    body(f, devices, DeviceMesh.range(devices));
    return f;
  };
  return { name, communications, build, ...more };
}

/** The number of devices on which `communications` is counted. */
function countedOn({ devices = [2] }: SuiteProgram): number {
  return devices.includes(2) ? 2 : (devices.at(-1) ?? 2);
}

export function expectCommunications(program: SuiteProgram): void {
  const devices = countedOn(program);
  const { p2p = "rotated", accumulate = false, backend = "nccl" } = program.setting ?? {};
  expect(collectivesOf(program.build(devices), devices, { p2p, accumulate, backend })).toBe(program.communications);
}

export async function expectValues({ build, devices = [1, 2, 4], setting, shapes }: SuiteProgram): Promise<void> {
  for (const count of devices) {
    const f = build(count);
    await expectOracle(f, { ...setting, devices: count, ...sizesOf(f, shapes?.(count)) });
  }
}

/** A tensor with the elements 0, 1, 2, .. */
export function arange(shape: readonly number[]): Tensor<"float"> {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return { dtype: "float", shape, data: Float32Array.from({ length: count }, (_, i) => i) };
}

/** The elements of a whole tensor that a rank holds: nvFuser's shard_tensor. */
export function localPart(tensor: TensorView, whole: Tensor<"float">, rank: number): readonly number[] {
  const bytes = shardOf(tensor.data(), whole.shape, tensorBytes(whole), rank);
  return [...new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4)];
}
