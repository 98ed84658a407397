/**
 * Saves communication between Sets.
 *
 *   T3 = Set(T0[DIDx, _]); T4 = Set(T0[DIDx, _]), placed alike         ->     T3 = Set(T0), read in place of T4
 *   T3[Stream, _] = Set(T0[DIDx, _]); T4[_, _] = Set(T0[DIDx, _])      ->     T3[Stream, _], read in place of T4
 *   T3[_, _] = Set(T0[DIDx, _]); T4[_, DIDx] = Set(T3), T3 unused else ->     T4[_, DIDx] = Set(T0)
 *   T4 = Set(reshape(T0)), where T0 is gathered too                    ->     T4 = reshape(T3)
 *   T4 = Set(expand(T0))                                               ->     T4 = expand(T3), T3 = Set(T0)
 *
 * So two linears that read one sharded activation gather it once, and a gather that is only scattered again is an
 * all-to-all, or nothing.
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { coversShares, layoutOf } from "../../ir/layout.ts";
import type { Op, SetOp } from "../../ir/ops/op.ts";
import { type CutAxis, cutOf, isCut, wholeAxis } from "../../ir/parts.ts";
import { printScalar } from "../../ir/scalar/print.ts";
import { didTypesOf } from "../../ir/shards.ts";
import { at } from "../../support/invariant.ts";
import type { Pass } from "../pass.ts";
import { gathersBeforeViews } from "./gathers-before-views.ts";
import { movesBeforeExpands } from "./moves-before-expands.ts";
import { isResharding, sameMesh } from "./sharding.ts";
import { streamAxis } from "../../ir/stream.ts";

export const mergeSets: Pass<"checked", "checked"> = {
  name: "merge-sets",
  from: "checked",
  to: "checked",
  run: (fusion, { options }) =>
    options.nvfuserLimits || !fusion.ops.some(({ kind }) => kind === "Set")
      ? fusion
      : withoutEqual(gathersBeforeViews(movesBeforeExpands(withoutDetours(fusion)))),
};

/** Each Set that reads only what another Set gathered for it reads that Set's operand. */
function withoutDetours(fusion: FusionData): FusionData {
  const { tensors, ops } = fusion;
  const readers = new Map<TensorId, number>();
  for (const { inputs } of ops) for (const id of inputs) readers.set(id, (readers.get(id) ?? 0) + 1);
  const producers = new Map(ops.map((op) => [op.output, op]));
  const skipped = new Set<Op>();
  const rewritten = ops.map((op): Op => {
    const first = op.kind === "Set" ? producers.get(at(op.inputs, 0)) : undefined;
    if (op.kind !== "Set" || first?.kind !== "Set" || skipped.has(first)) return op;
    const isAlone = readers.get(first.output) === 1 && !fusion.outputs.includes(first.output);
    if (!isAlone || !isDetour(first, op, tensors)) return op;
    skipped.add(first);
    return { ...op, inputs: first.inputs };
  });
  return skipped.size === 0 ? fusion : { ...fusion, ops: rewritten.filter((_, i) => !skipped.has(at(ops, i))) };
}

/** Whether the first Set only joins shares, and the second one shares out again, on one mesh. */
function isDetour(first: SetOp, second: SetOp, tensors: readonly Tensor[]): boolean {
  const [x, y, z] = [at(first.inputs, 0), first.output, second.output].map((id) => at(tensors, id));
  if (x === undefined || y === undefined || z === undefined || y.memory !== "global" || streamAxis(y) !== null)
    return false;
  if (!sameMesh(x.mesh, y.mesh) || !sameMesh(y.mesh, z.mesh)) return false;
  const [before, between, after] = [layoutOf(x), layoutOf(y), layoutOf(z)];
  if (before === null || between === null || after === null) return false;
  return coversShares(between, before) && !coversShares(before, between) && !coversShares(after, between);
}

/**
 * The first of several Sets that move one operand to the same place stays; what the others gave is read from it. After
 * its loop, the result of chunks is as whole as that of a Set without any.
 */
function withoutEqual(fusion: FusionData): FusionData {
  const firsts = new Map<string, TensorId>();
  const merged = new Map<TensorId, TensorId>();
  const ops: Op[] = [];
  for (const original of fusion.ops) {
    const op = original.inputs.some((id) => merged.has(id))
      ? { ...original, inputs: original.inputs.map((id) => merged.get(id) ?? id) }
      : original;
    const places = op.kind === "Set" && isResharding(op, fusion.tensors) ? placesOf(op, fusion.tensors) : [];
    const first = places.length === 0 ? undefined : firsts.get(at(places, 0));
    if (first === undefined || fusion.outputs.includes(op.output)) {
      for (const place of places) if (!firsts.has(place)) firsts.set(place, op.output);
      ops.push(op);
    } else merged.set(op.output, first);
  }
  return merged.size === 0 ? fusion : { ...fusion, ops };
}

/**
 * A text that is equal for Sets that give each device the same, in the same chunks and the same memory; of a Set in
 * chunks also the text without them.
 */
function placesOf({ inputs, output }: SetOp, tensors: readonly Tensor[]): readonly [string, ...string[]] {
  const { domain, mesh, memory } = at(tensors, output);
  const order = domain.allocation?.map(({ id }) => domain.loop.findIndex((axis) => axis.id === id)) ?? null;
  const axes = domain.logical.map((axis) => cutOf(domain, axis));
  const textOf = (cuts: readonly CutAxis[]): string => {
    const parts = cuts.map((cut) =>
      cut.parts.map((part) => [part.type, printScalar(part.extent), printScalar(part.stride)]),
    );
    return JSON.stringify([inputs, mesh?.toString(), memory, parts, order]);
  };
  const whole = axes.map((cut) => (isCut(cut) && didTypesOf(cut).length === 0 ? wholeAxis(cut.extent) : cut));
  return [textOf(axes), ...(whole.some((cut, i) => cut !== axes[i]) ? [textOf(whole)] : [])];
}
