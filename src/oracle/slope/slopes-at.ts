/** The gradients of a derivation beside the slopes of what was differentiated, at a point. */
import type { Derivation } from "../../ir/derivation.ts";
import type { TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";
import { createRandom } from "../../support/random.ts";
import { valuesOnly } from "../evaluate.ts";
import { inDouble, toDouble } from "../norms.ts";
import { fromTensor, makeValue, type Value } from "../value.ts";
import type { Continuing } from "./continued-op.ts";
import { evaluateOps, opsBefore, valueOf } from "./evaluate-ops.ts";
import { compareSlope, type Slope, type Weighted } from "./slope.ts";

export interface Pair {
  readonly gradient: TensorId;
  readonly wrt: TensorId;
}

/** `pairs`: those that will be asked for. `inputs`: of what was differentiated. All is evaluated in double, when the first slope is asked for. */
export function slopesAt(
  fusion: FusionData,
  derivation: Derivation,
  pairs: readonly Pair[],
  inputs: readonly Tensor[],
  sizes: Sizes,
): (pairs: readonly Pair[], seed: number) => Slope {
  const { of, cotangents, whole } = derivation;
  const joint = inDouble({ ...fusion, ...whole });
  const clamps = (fusion.markers ?? []).filter(({ name }) => name === "clamp");
  const takesFirst = new Set(clamps.flatMap(({ kept, outputs }) => [...kept, ...outputs]));
  const setting: Continuing = { tensors: joint.tensors, sizes, arithmetic: valuesOnly, takesFirst };
  let point: { readonly weighted: Weighted; readonly values: Values; readonly derived: Values } | null = null;
  const gradients = pairs.map(({ gradient }) => gradient);
  const evaluate = (): NonNullable<typeof point> => {
    const values = new Map(joint.inputs.map((id, i) => [id, fromTensor(toDouble(at(inputs, i)))]));
    // The backward pass alone starts from tensors that the forward pass has saved.
    const wanted = [...of, ...present(cotangents), ...fusion.inputs];
    evaluateOps(opsBefore(joint.ops, wanted, values), values, setting);
    const derived = whole === undefined ? values : new Map(fusion.inputs.map((id) => [id, valueOf(values, id)]));
    evaluateOps(opsBefore(inDouble(fusion).ops, gradients, derived), derived, setting);
    const weights = cotangents.map((id) => (id === null ? one : valueOf(values, id)));
    return { weighted: { ops: opsBefore(joint.ops, of), of, weights }, values, derived };
  };
  return (asked, seed) => {
    point ??= evaluate();
    const { weighted, values, derived } = point;
    const claims = asked.map(({ wrt, gradient }) => ({ wrt, gradient: valueOf(derived, gradient) }));
    return compareSlope(weighted, values, claims, createRandom(seed), setting);
  };
}

type Values = ReadonlyMap<TensorId, Value>;

const one = makeValue("double", [], () => ({ element: 1, bound: 0 }));

function present(ids: readonly (TensorId | null)[]): readonly TensorId[] {
  return ids.flatMap((id) => id ?? []);
}
