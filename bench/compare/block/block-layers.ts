/**
 * The layers of a block, without a sharding: the parameters with the axis along which devices cut them, and the ops
 * between two residuals. Sizes may be those of one device.
 */
import { gelu, linear, permute, reshape, sdpa, split, swiglu } from "../../../src/ir/api/ops.ts";
import { cast, cos, exp, iota, layerNorm, mul, rmsNorm, rope, sin, unsqueeze } from "../../../src/ir/api/ops.ts";
import type { Fusion } from "../../../src/ir/api/fusion.ts";
import type { TensorView } from "../../../src/ir/api/tensor-view.ts";
import { invariant } from "../../../src/support/invariant.ts";
import type { BlockSizes } from "./models.ts";

export interface Parameter {
  readonly name: string;
  readonly shape: readonly number[];
  /** The axis that the devices share; null if each has the whole. */
  readonly cut: 0 | 1 | null;
}

/** In the order of the program's inputs. */
export function parametersOf({ kind, H, HEADS, GROUPS, FFN }: BlockSizes): readonly Parameter[] {
  const part = (name: string, shape: readonly number[], cut: Parameter["cut"] = null): Parameter => ({
    name,
    shape,
    cut,
  });
  const [mixed, qkv] = [H, ((HEADS + 2 * GROUPS) * H) / HEADS];
  if (kind === "llama") {
    return [
      part("norm1", [H]),
      part("w_qkv", [qkv, H], 0),
      part("w_out", [H, mixed], 1),
      part("norm2", [H]),
      part("w_gate", [FFN, H], 0),
      part("w_up", [FFN, H], 0),
      part("w_down", [H, FFN], 1),
    ];
  }
  return [
    part("norm1", [H]),
    part("shift1", [H]),
    part("w_qkv", [qkv, H], 0),
    part("b_qkv", [qkv], 0),
    part("w_out", [H, mixed], 1),
    part("b_out", [H]),
    part("norm2", [H]),
    part("shift2", [H]),
    part("w_up", [FFN, H], 0),
    part("b_up", [FFN], 0),
    part("w_down", [H, FFN], 1),
    part("b_down", [H]),
  ];
}

/** A parameter's tensor by name. */
export type Parameters = (name: string) => TensorView;

export function byName(parameters: readonly Parameter[], tensors: readonly TensorView[]): Parameters {
  const known = new Map(parameters.map(({ name }, i) => [name, tensors[i]]));
  return (name) => {
    const found = known.get(name);
    invariant(found !== undefined, "a block has this parameter", { name });
    return found;
  };
}

export interface Layers {
  readonly norm1: (x: TensorView) => TensorView;
  /** Up to the linear after the attention. `mark` gets the result of the first linear. */
  readonly attention: (n: TensorView, mark?: (projected: TensorView) => void) => TensorView;
  readonly norm2: (x: TensorView) => TensorView;
  readonly mlp: (n: TensorView) => TensorView;
}

/** `head`: the elements of a head, which the sizes of one device do not say. */
export function layersOf(f: Fusion, sizes: BlockSizes, head: number, of: Parameters): Layers {
  return sizes.kind === "llama" ? llamaLayers(f, sizes, head, of) : gptLayers(sizes, head, of);
}

function llamaLayers(f: Fusion, { B, L, HEADS, GROUPS }: BlockSizes, head: number, of: Parameters): Layers {
  const shared = HEADS / GROUPS;
  return {
    norm1: (x) => rmsNorm(x, of("norm1")),
    attention: (n, mark = () => {}) => {
      const projected = linear(n, of("w_qkv"));
      mark(projected);
      const groups = reshape(projected, [B, L, GROUPS, shared + 2, head]);
      const [q, k, v] = split(permute(groups, [0, 2, 3, 1, 4]), [shared, 1, 1], 2);
      const [c, s] = angles(f, L, head);
      const heads = sdpa(rope(q, c, s), rope(k, c, s), v, { causal: "topLeft" }).output;
      return linear(reshape(permute(heads, [0, 3, 1, 2, 4]), [B, L, HEADS * head]), of("w_out"));
    },
    norm2: (x) => rmsNorm(x, of("norm2")),
    mlp: (n) => linear(swiglu(linear(n, of("w_gate")), linear(n, of("w_up"))), of("w_down")),
  };
}

function gptLayers({ B, L, HEADS }: BlockSizes, head: number, of: Parameters): Layers {
  return {
    norm1: (x) => layerNorm(x, of("norm1"), of("shift1")),
    attention: (n, mark = () => {}) => {
      const projected = linear(n, of("w_qkv"), of("b_qkv"));
      mark(projected);
      const heads = reshape(projected, [B, L, HEADS, 3 * head]);
      const [q, k, v] = split(permute(heads, [0, 2, 1, 3]), [head, head, head], -1);
      const mixed = permute(sdpa(q, k, v, { causal: "topLeft" }).output, [0, 2, 1, 3]);
      return linear(reshape(mixed, [B, L, HEADS * head]), of("w_out"), of("b_out"));
    },
    norm2: (x) => layerNorm(x, of("norm2"), of("shift2")),
    mlp: (n) => linear(gelu(linear(n, of("w_up"), of("b_up")), "tanh"), of("w_down"), of("b_down")),
  };
}

/** The cosines and sines of position i times 10000^(-2 j / head), as [L, head / 2]. */
function angles(f: Fusion, L: number, head: number): readonly [TensorView, TensorView] {
  const [position, pair] = [cast(iota(f, L), "float"), cast(iota(f, head / 2), "float")];
  const frequency = exp(mul(pair, (-2 * Math.log(10_000)) / head));
  const angle = mul(unsqueeze(position, 1), unsqueeze(frequency, 0));
  return [cos(angle), sin(angle)];
}
