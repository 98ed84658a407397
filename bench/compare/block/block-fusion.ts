/**
 * The block as Fusions:
 *
 *     whole                the block on all devices, its forward pass in chunks of tokens
 *     compute-only         the kernels of one device: its heads, its hidden features, and its tokens of norms and
 *                          residuals. Where a device would gather tokens or receive sums, it reads an input of that
 *                          size, and its own part of its own result.
 *     communication-only   the gathers and reductions of the activations alone
 */
import { gradients } from "../../../src/ir/api/gradients.ts";
import { add, set, slice, sum } from "../../../src/ir/api/ops.ts";
import type { TensorView } from "../../../src/ir/api/tensor-view.ts";
import { DeviceMesh } from "../../../src/ir/device-mesh.ts";
import { invariant } from "../../../src/support/invariant.ts";
import { BlockBuilder, type BlockFusion } from "./block-builder.ts";
import { layersOf, type Parameter } from "./block-layers.ts";
import { type BlockProblem, isBackward, sizesOf } from "./block-problem.ts";
import type { BlockSizes } from "./models.ts";

export interface Chunked {
  readonly chunks: number;
  /** Whether all of the forward pass but the attention is; otherwise what comes after the attention. */
  readonly all: boolean;
  /**
   * Whether devices share the tokens between the linears although the cut is `tp`: then an all-reduce is a reduce-scatter,
   * the residual and the norm of a device's tokens, and a gather. Without chunks only.
   */
  readonly overDevices?: boolean;
}

export const unchunked: Chunked = { chunks: 1, all: false };

/** `chunks`: of the tokens of each sequence. Throws `bad-extent` if they do not divide by devices and chunks. */
export function wholeBlock(problem: BlockProblem, { chunks, all, overDevices = false }: Chunked): BlockFusion {
  invariant(!overDevices || chunks === 1, "tokens are in chunks or over devices", { chunks });
  const { devices } = problem;
  const sizes = sizesOf(problem);
  const { H, HEADS } = sizes;
  const built = new BlockBuilder(problem, "whole");
  const x = built.input("x", tokens(sizes, sizes.L));
  const { parameters, weights, of } = built.parameters(sizes, 1);
  const dz = isBackward(problem) ? built.input("dz", tokens(sizes, sizes.L)) : null;
  built.onDevices(devices);
  parameters.forEach(({ cut }, i) => {
    if (cut !== null) weights[i]?.outerSplit(cut, devices).parallelize("DIDx");
  });
  for (const each of problem.cut === "tp-sp" ? [x, dz] : []) {
    if (chunks > 1) each?.outerSplit(1, chunks);
    each?.outerSplit(chunks > 1 ? 2 : 1, devices).parallelize("DIDx");
  }
  const { norm1, attention, norm2, mlp } = layersOf(built.fusion, sizes, H / HEADS, of);
  const inChunks = (tensor: TensorView): void => {
    if (all) tensor.outerSplit(1, chunks).parallelize("Stream");
  };
  const shared = (tensor: TensorView): TensorView => {
    if (overDevices) tensor.setDeviceMesh(DeviceMesh.range(devices)).outerSplit(1, devices).parallelize("DIDx");
    return tensor;
  };
  const residual = shared(add(x, shared(attention(norm1(x), inChunks))));
  const sum = shared(add(residual, shared(mlp(norm2(residual)))));
  const z = overDevices ? set(sum).setDeviceMesh(DeviceMesh.range(devices)) : sum;
  if (chunks > 1) z.outerSplit(1, chunks).parallelize("Stream");
  built.output("z", z);
  if (dz !== null) {
    const wrt = [x, ...weights];
    const names = ["x", ...parameters.map(({ name }) => name)];
    built.gradients(names, gradients(built.fusion, { of: [z], cotangents: [dz], wrt }));
  }
  return built.done();
}

/** Every device does the same, with shares of the sizes of one device. */
export function computeOfBlock(problem: BlockProblem): BlockFusion {
  const { devices } = problem;
  const whole = sizesOf(problem);
  const sizes = {
    ...whole,
    HEADS: whole.HEADS / devices,
    GROUPS: whole.GROUPS / devices,
    FFN: whole.FFN / devices,
  };
  const cut = problem.cut === "tp-sp";
  const own = tokens(sizes, cut ? sizes.L / devices : sizes.L);
  const all = tokens(sizes, sizes.L);
  const built = new BlockBuilder(problem, "compute-only");
  const x = built.input("x", own);
  const { weights, of, parameters } = built.parameters(whole, devices);
  const dz = isBackward(problem) ? built.input("dz", own) : null;
  const gathered = (name: string): TensorView | null => (cut ? built.input(name, all) : null);
  const [gathered1, gathered2] = [gathered("n1"), gathered("n2")];
  const dy = dz === null || !cut ? dz : built.input("dy", all);
  built.onDevices(devices);
  const share = (tensor: TensorView): TensorView => (cut ? slice(tensor, [0, 0, 0], own) : tensor);
  const { norm1, attention, norm2, mlp } = layersOf(built.fusion, sizes, whole.H / whole.HEADS, of);

  const n1 = norm1(x);
  const read1 = gathered1 ?? n1;
  const y1 = attention(read1);
  const residual = add(x, share(y1));
  const n2 = norm2(residual);
  const read2 = gathered2 ?? n2;
  const y2 = mlp(read2);
  const z = add(residual, share(y2));
  if (cut) built.output("n1", n1).output("n2", n2);
  built.output("z", z);
  if (dz === null || dy === null) return built.done();

  const inHalf = parameters.findIndex(({ name }) => name === "norm2");
  const isNorm = ({ name }: Parameter): boolean => /^(norm|shift)/.test(name);
  const of2 = (half: 0 | 1, norm: boolean): readonly number[] =>
    parameters.flatMap((each, i) => (i < inHalf === (half === 0) && isNorm(each) === norm ? [i] : []));
  const back = (from: TensorView, g: TensorView, to: TensorView, which: readonly number[]): TensorView => {
    const chosen = which.map((i) => ({ name: parameters[i]?.name ?? "", tensor: weights[i] ?? from }));
    const wrt = [to, ...chosen.map(({ tensor }) => tensor)];
    const [first, ...rest] = gradients(built.fusion, { of: [from], cotangents: [g], wrt });
    built.gradients(
      chosen.map(({ name }) => name),
      rest,
    );
    invariant(first !== null && first !== undefined, "a layer depends on what it reads");
    return first;
  };
  const dn2 = back(y2, dy, read2, of2(1, false));
  const dr = add(dz, back(n2, share(dn2), residual, of2(1, true)));
  const dn1 = back(y1, cut ? dy : dr, read1, of2(0, false));
  built.output("x gradient", add(dr, back(n1, share(dn1), x, of2(0, true))));
  return built.done();
}

export function communicationOfBlock(problem: BlockProblem): BlockFusion {
  const { devices, dtype, cut } = problem;
  const sizes = sizesOf(problem);
  const built = new BlockBuilder(problem, "communication-only");
  const { fusion } = built;
  const mesh = DeviceMesh.range(devices);
  const passes = isBackward(problem) ? 2 : 1;
  for (let i = 0; i < 2 * passes; i++) {
    if (cut === "tp-sp") {
      const x = built.input(`gathered${i}`, tokens(sizes, sizes.L));
      x.setDeviceMesh(mesh).outerSplit(1, devices).parallelize("DIDx");
      built.output(`gathered${i}`, set(x).setDeviceMesh(mesh));
    }
    const partial = fusion.input([devices, ...tokens(sizes, sizes.L)], dtype);
    built.named(`partial${i}`);
    partial.setDeviceMesh(mesh).axis(0).parallelize("DIDx");
    const reduced = sum(partial, [0]).setDeviceMesh(mesh);
    if (cut === "tp-sp") reduced.outerSplit(1, devices).parallelize("DIDx");
    built.output(`reduced${i}`, reduced);
  }
  return built.done();
}

function tokens({ B, H }: BlockSizes, count: number): readonly [number, number, number] {
  return [B, count, H];
}
