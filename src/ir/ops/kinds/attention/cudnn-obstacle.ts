/**
 * Which attentions cuDNN takes as one kernel, from its release 9.15.1 on, on GPUs of compute capability 8 and 9. The
 * limits are those that cudnn-frontend checks (sdpa_support_surface.h, CompositeSDPABackwardNode).
 */
import { withoutReductions } from "../../../domain.ts";
import type { FusionData } from "../../../fusion-data.ts";
import type { Axes } from "../../row.ts";
import { axesOf, isBias, type SeenKeys } from "./attention.ts";
import type { Op, SdpaBackwardOp, SdpaOp } from "../../op.ts";
import { constantValue } from "../../../scalar/fold.ts";
import type { DType } from "../../../../numerics/dtype.ts";
import { at } from "../../../../support/invariant.ts";

/** Shapes [.., Lq, d], [.., Lk, d] and [.., Lk, e]; null for an extent that is not known yet. */
export interface CudnnAttentionShape extends SeenKeys {
  readonly dtype: DType;
  readonly isBackward: boolean;
  /** Null for 1 / sqrt(d). */
  readonly scale: number | null;
  readonly q: readonly (number | null)[];
  readonly k: readonly (number | null)[];
  readonly v: readonly (number | null)[];
}

export interface CudnnObstacle {
  readonly found: string;
  readonly expected: string;
}

const mostHeadSize = 256;
const headStep = 8;

/** Null if cuDNN takes it, or may take it: rows and keys of unknown number are checked again when it is launched. */
export function cudnnObstacle({
  dtype,
  causal,
  window,
  isBackward,
  scale,
  q,
  k,
  v,
}: CudnnAttentionShape): CudnnObstacle | null {
  if (dtype !== "half" && dtype !== "bfloat16") return { found: dtype, expected: "half or bfloat16" };
  // cuDNN takes the largest of the products before it scales them (measured with 9.19: infinities, and NaN).
  if (scale !== null && !(Math.fround(scale) > 0)) return { found: `a scale of ${scale}`, expected: "a scale above 0" };
  for (const [name, size] of [
    ["q and k", q.at(-1) ?? null],
    ["v", v.at(-1) ?? null],
  ] as const) {
    const expected = `heads of a multiple of ${headStep} elements, at most ${mostHeadSize}`;
    if (size === null)
      return { found: `heads of ${name} whose size is not known when the program is lowered`, expected };
    if (size === 0 || size > mostHeadSize || size % headStep !== 0) {
      return { found: `heads of ${size} elements of ${name}`, expected };
    }
  }
  const [rows, keys] = [q.at(-2) ?? null, k.at(-2) ?? null];
  if (keys === 0) return { found: "no keys", expected: "at least one key" };
  if (causal === "bottomRight" && rows !== null && keys !== null && rows > keys) {
    const found = `rows that see no key: ${rows} rows of q, ${keys} keys`;
    return { found, expected: "at least as many keys as rows with a bottomRight mask" };
  }
  if (window !== null && rows !== null && keys !== null && rows > keys) {
    const found = `a window of ${window} keys, ${rows} rows of q, ${keys} keys`;
    return { found, expected: "at least as many keys as rows with a window" };
  }
  if (isBackward && rows === 1 && keys === 1) {
    return { found: "the gradient of one row and one key", expected: "more rows, or more keys" };
  }
  return null;
}

const mostDecodeRows = 64;
const mostDecodeHead = 256;
const decodeStep = 16;

/** The same of attention with key lengths, for which there is a kernel of few queries (decode-kernel.ts). */
export function decodeObstacle({
  dtype,
  q,
  k,
  v,
}: Omit<CudnnAttentionShape, "causal" | "window" | "scale" | "isBackward">): CudnnObstacle | null {
  if (dtype !== "half" && dtype !== "bfloat16") return { found: dtype, expected: "half or bfloat16" };
  for (const [name, size] of [
    ["q and k", q.at(-1) ?? null],
    ["v", v.at(-1) ?? null],
  ] as const) {
    if (size !== null && size > 0 && size <= mostDecodeHead && size % decodeStep === 0) continue;
    const expected = `with keyLengths, heads of a multiple of ${decodeStep} elements, at most ${mostDecodeHead}`;
    return { found: `heads of ${size ?? "an unknown number of"} elements of ${name}`, expected };
  }
  if (k.at(-2) === 0) return { found: "no keys", expected: "at least one key" };
  const shared = q.slice(0, -2).filter((extent, axis) => k[axis] !== extent);
  const rows = [...shared, q.at(-2) ?? null].reduce<number | null>(
    (product, extent) => (product === null || extent === null ? null : product * extent),
    1,
  );
  if (rows !== null && rows <= mostDecodeRows) return null;
  return {
    found: `${rows ?? "an unknown number of"} rows of q for each head of keys`,
    expected: `with keyLengths, at most ${mostDecodeRows} rows, heads that share keys included`,
  };
}

export function isAttentionOp(op: Op): op is SdpaOp | SdpaBackwardOp {
  return op.kind === "Sdpa" || op.kind === "SdpaBackward";
}

/** Whether the last operand says how many keys there are: the kernel of few queries, which needs no cuDNN, takes it. */
export function hasLengths(
  { tensors }: Pick<FusionData, "tensors">,
  { kind, inputs }: SdpaOp | SdpaBackwardOp,
): boolean {
  const axes = (position: number): Axes => axesOf(at(tensors, at(inputs, position)));
  return kind === "Sdpa" && inputs.length > 3 && !isBias(axes(3), axes(0));
}

/** The elements of the largest heads of q, k and v; 0 of attention itself, and of heads that cuDNN does not take. */
export function gradientHeadsOf(fusion: Pick<FusionData, "tensors">, op: SdpaOp | SdpaBackwardOp): number {
  if (op.kind === "Sdpa" || obstacleOfOp(fusion, op) !== null) return 0;
  const sizes = op.inputs.slice(1, 4).map((id) => withoutReductions(at(fusion.tensors, id).domain.logical).at(-1));
  return Math.max(...sizes.map((axis) => (axis === undefined ? 0 : (constantValue(axis.extent) ?? 0))));
}

/** Of an op of a Fusion. */
export function obstacleOfOp(
  { tensors }: Pick<FusionData, "tensors">,
  op: SdpaOp | SdpaBackwardOp,
): CudnnObstacle | null {
  const isBackward = op.kind === "SdpaBackward";
  const [q, k, v] = op.inputs.slice(isBackward ? 1 : 0).map((id) => at(tensors, id));
  const shape = (tensor: typeof q): readonly (number | null)[] =>
    withoutReductions(tensor?.domain.logical ?? []).map(({ extent }) => constantValue(extent));
  const dtype = q?.dtype ?? "float";
  const shapes = { dtype, q: shape(q), k: shape(k), v: shape(v) };
  if (hasLengths({ tensors }, op)) return decodeObstacle(shapes);
  const scale = op.scale === null ? null : Number(op.scale);
  return cudnnObstacle({ ...shapes, causal: op.causal, window: op.window, isBackward, scale });
}
