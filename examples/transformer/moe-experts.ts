/**
 * A mixture of experts with fixed capacity. Tokens and experts lie on the mesh dimension `ep`, the hidden features of
 * each expert on `tp`. A router chooses K experts for each token. A source sends each expert a buffer of C rows, and the
 * experts' grouped matmuls compute as many of them as are in use. Tokens beyond the capacity are dropped.
 *
 *   npx braid run examples/transformer/moe-experts.ts --check
 *   npx braid run examples/transformer/moe-experts.ts --devices 4 --set TP=2 --check
 *   npx braid run examples/transformer/moe-experts.ts --set GROUPS=4 --set TOP_GROUPS=2 --set SHARED=1 --check
 *
 * The first two choose as Mixtral does: the K most probable experts. With GROUPS it is as in DeepSeek-V3: sigmoids, a
 * bias that only the choice sees, and experts of the best groups alone; SHARED experts compute all tokens.
 *
 * Two AllToAlls carry the buffers there and back, one the numbers of their rows; experts need not divide the devices.
 */
import {
  add,
  clamp,
  cumsum,
  DeviceMesh,
  div,
  type DType,
  expand,
  full,
  Fusion,
  gather,
  groupedMatmul,
  gt,
  iota,
  linear,
  lt,
  mul,
  oneHot,
  permute,
  program,
  reshape,
  scatterAdd,
  set,
  sigmoid,
  softmax,
  sub,
  sum,
  swiglu,
  type TensorView,
  topk,
  unsqueeze,
  where,
} from "@braid-compiler/braid";

export default program(
  { T: 8, H: 16, FFN: 32, E: 8, TOP: 2, C: 4, GROUPS: 0, TOP_GROUPS: 1, SHARED: 0, TP: 1, DTYPE: "float" },
  ({ devices, params: { TP, DTYPE, ...given } }) => {
    const f = new Fusion();
    const sizes = { ...given, S: devices / TP };
    const mesh = DeviceMesh.of({ ep: sizes.S, tp: TP });
    const x = f.input([sizes.S, sizes.T, sizes.H], DTYPE).named("x");
    const weights = expertWeights(f, sizes, DTYPE);
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    x.axis(0).parallelize("ep");
    const { gate, up, down, shared } = weights;
    for (const weight of [gate, up, down]) weight.outerSplit(0, sizes.S).parallelize("ep");
    if (TP > 1) {
      for (const weight of [gate, up]) weight.outerSplit(5, TP).parallelize("tp");
      down.outerSplit(4, TP).parallelize("tp");
      for (const weight of shared?.slice(0, 2) ?? []) weight.outerSplit(0, TP).parallelize("tp");
      shared?.[2].outerSplit(1, TP).parallelize("tp");
    }
    f.output(experts(f, x, weights, mesh, sizes).named("y"));
    return f;
  },
);

export interface ExpertSizes {
  /** Sources of T tokens each, and devices that share E experts. */
  readonly S: number;
  readonly T: number;
  readonly H: number;
  readonly FFN: number;
  readonly E: number;
  readonly TOP: number;
  readonly C: number;
  /** 0: softmax, and no groups. */
  readonly GROUPS: number;
  readonly TOP_GROUPS: number;
  readonly SHARED: number;
}

interface ExpertWeights extends Readonly<Record<"router" | "gate" | "up" | "down", TensorView>> {
  readonly bias: TensorView | null;
  readonly shared: MlpWeights | null;
}

export function expertWeights(f: Fusion, { H, FFN, E, GROUPS, SHARED }: ExpertSizes, dtype: DType): ExpertWeights {
  const router = f.input([E, H], dtype).named("router");
  const gate = f.input([E, 1, 1, H, FFN], dtype).named("gate");
  const up = f.input([E, 1, 1, H, FFN], dtype).named("up");
  const down = f.input([E, 1, 1, FFN, H], dtype).named("down");
  const bias = GROUPS > 0 ? f.input([E], dtype).named("bias") : null;
  return { router, gate, up, down, bias, shared: SHARED > 0 ? sharedWeights(f, H, SHARED * FFN, dtype) : null };
}

/** x and the result are [S, T, H], the first axis on the mesh dimension `ep`. */
export function experts(
  f: Fusion,
  x: TensorView,
  { router, gate, up, down, bias, shared }: ExpertWeights,
  mesh: DeviceMesh,
  sizes: ExpertSizes,
): TensorView {
  const { S, T, E, TOP: K } = sizes;
  const logits = linear(x, router);
  const scores = bias === null ? softmax(logits, 2) : sigmoid(logits);
  const choice = bias === null ? scores : ofBestGroups(add(scores, reshape(bias, [1, 1, E])), sizes);
  const best = topk(choice, K, 2).indices;
  const chosen = gather(scores, 2, best);
  const weights = div(chosen, expand(unsqueeze(sum(chosen, [2]), 2), [S, T, K]));
  const sent = dispatch(f, x, best, sizes);

  // Each expert has the buffers of all sources, and their numbers of rows.
  const [rows, counts] = [set(permute(sent.rows, [1, 0, 2, 3])), unsqueeze(permute(sent.counts, [1, 0]), 2)];
  for (const tensor of [rows, counts]) tensor.setDeviceMesh(mesh).outerSplit(0, S).parallelize("ep");
  const hidden = swiglu(groupedMatmul(rows, gate, counts), groupedMatmul(rows, up, counts));
  const returned = set(groupedMatmul(hidden, down, counts));
  returned.setDeviceMesh(mesh).axis(1).parallelize("ep");
  const made = permute(returned, [1, 0, 2, 3]);

  // The shared experts run while the rows return.
  const own = shared === null ? null : mlp(x, shared);
  const routed = combine(made, sent.slots, weights, sizes);
  return own === null ? routed : add(routed, own);
}

/** The choices [S, T, E] of the groups whose two best experts have the greatest sums; -Infinity for all others. */
function ofBestGroups(choice: TensorView, { S, T, E, GROUPS: groups, TOP_GROUPS: top }: ExpertSizes): TensorView {
  const byGroup = reshape(choice, [S, T, groups, E / groups]);
  const best = topk(sum(topk(byGroup, 2, 3).values, [3]), top, 2);
  const isBest = unsqueeze(sum(oneHot(best.indices, groups), [2]), 3);
  const masked = where(expand(gt(isBest, 0), [S, T, groups, E / groups]), byGroup, -Infinity);
  return reshape(masked, [S, T, E]);
}

type MlpWeights = readonly [gate: TensorView, up: TensorView, down: TensorView];

function sharedWeights(f: Fusion, hidden: number, features: number, dtype: DType): MlpWeights {
  const shapes = { gate: [features, hidden], up: [features, hidden], down: [hidden, features] };
  const input = (name: keyof typeof shapes): TensorView => f.input(shapes[name], dtype).named(`shared/${name}`);
  return [input("gate"), input("up"), input("down")];
}

function mlp(x: TensorView, [gate, up, down]: MlpWeights): TensorView {
  return linear(swiglu(linear(x, gate), linear(x, up)), down);
}

interface Dispatched {
  readonly rows: TensorView;
  readonly counts: TensorView;
  readonly slots: TensorView;
}

/**
 * Puts the rows of the tokens x [S, T, H] in the buffers [S, E, C, H] of the experts that `choices` [S, T, K] names, in
 * the order of tokens and choices. `counts` [S, E] are the rows in use, `slots` [S, T K] the places of each choice in the
 * buffers of its source, or -1 for one that found its buffer full.
 */
function dispatch(f: Fusion, x: TensorView, choices: TensorView, { S, T, H, E, TOP: K, C }: ExpertSizes): Dispatched {
  const expert = reshape(choices, [S, T * K]);
  const isOf = oneHot(expert, E);
  const place = sub(sum(mul(isOf, cumsum(isOf, 1)), [2]), 1);
  const slots = where(lt(place, C), add(mul(expert, C), place), -1);
  // Of each slot its token, counted from 1, and 0 if it is empty.
  const token = reshape(expand(reshape(iota(f, T, { start: 1 }), [1, T, 1]), [S, T, K]), [S, T * K]);
  const filled = scatterAdd(full(f, [S, E * C], 0, "int64"), 1, slots, token);
  const index = expand(unsqueeze(sub(filled, 1), 2), [S, E * C, H]);
  return {
    rows: reshape(gather(x, 1, index), [S, E, C, H]),
    counts: clamp(sum(isOf, [1]), null, C),
    slots,
  };
}

/** The sum of the experts' rows [S, E, C, H] of each token, times `weights` [S, T, K]: 0 of dropped choices. */
function combine(
  rows: TensorView,
  slots: TensorView,
  weights: TensorView,
  { S, T, H, E, TOP: K, C }: ExpertSizes,
): TensorView {
  const all = reshape(rows, [S, E * C, H]);
  const own = reshape(gather(all, 1, expand(unsqueeze(slots, 2), [S, T * K, H])), [S, T, K, H]);
  return sum(mul(own, expand(unsqueeze(weights, 3), [S, T, K, H])), [2]);
}
