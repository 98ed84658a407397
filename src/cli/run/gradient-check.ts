/**
 * `--check` of gradients. The oracle evaluates the ops that `gradients` appended, so it agrees with a wrong rule. Each
 * gradient is therefore also compared with the slope of what was differentiated, along a random direction.
 */
import { drawInputs } from "../../compile/program/inputs.ts";
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { Derivation, FusionData } from "../../ir/fusion-data.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { nameOf } from "../../ir/origin.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import { indexLimits } from "../../ir/runs.ts";
import { evaluateScalar } from "../../ir/scalar/scalar.ts";
import { shapeOf, type Sizes } from "../../ir/sizes.ts";
import { type Tensor, elementCount, elementsOf } from "../../numerics/tensor/host-tensor.ts";
import { toDouble } from "../../oracle/value.ts";
import { canMake, opsBefore, type Pair, type Slope, slopesAt } from "../../oracle/slope/slope.ts";
import { at } from "../../support/invariant.ts";

export interface GradientCheck {
  readonly gradient: TensorId;
  /** The printed name: `T2`. */
  readonly name: string;
  /** The name that the program gave it; null for none. */
  readonly named: string | null;
  /** The difference from the slope, over what a gradient of this size has; null if it was not compared. */
  readonly difference: number | null;
  /** How many elements were not, because they are not finite. */
  readonly leftOut: number;
  /** Whether it and the slope are 0. */
  readonly isZero: boolean;
  /** Why it was not compared; null if it was. */
  readonly notCompared: string | null;
  readonly failure: Diagnostic | null;
}

/** Evaluations by the oracle that take half a minute: of an element, and of a floating-point operation in a sum. */
const [mostWork, elementWork] = [2e10, 500];

/**
 * One check for each gradient that an output depends on. `inputs` are whole tensors. Unless `full`, programs of more
 * work than an oracle has time for are not compared.
 */
export function checkGradients(
  fusion: FusionData,
  inputs: readonly Tensor[],
  sizes: Sizes,
  { seed, full }: { readonly seed: number; readonly full: boolean },
): readonly GradientCheck[] {
  const { derivations = [], outputs, ops } = fusion;
  const needed = new Set([...outputs, ...opsBefore(ops, outputs).flatMap(outputsOf)]);
  return derivations.flatMap((derivation) => {
    const { wrt, gradients } = derivation;
    const pairs = gradients.flatMap((gradient, i): readonly Pair[] =>
      gradient === null || !needed.has(gradient) ? [] : [{ gradient, wrt: at(wrt, i) }],
    );
    if (pairs.length === 0) return [];
    const obstacle = obstacleOf(fusion, derivation, sizes, full);
    if (obstacle !== null) {
      return pairs.map(({ gradient }) => ({ ...uncompared(fusion, gradient), notCompared: obstacle }));
    }
    const own = inputsOf(fusion, derivation, inputs, sizes, seed);
    const found = new Map<TensorId, Slope>();
    for (const drawn of [own, own.map(positive)]) {
      const slopeOf = slopesAt(fusion, derivation, pairs, drawn, sizes);
      const open = pairs.filter(({ gradient }) => !isSettled(found.get(gradient)));
      if (open.length === 0) break;
      const all = slopeOf(open, seed);
      // All of them at once, unless one is wrong, or too small to show among the others.
      const holds = all.agrees && all.isSharp;
      for (const pair of open) {
        const slope = holds || open.length === 1 ? all : slopeOf([pair], seed);
        const before = found.get(pair.gradient);
        if (before?.isSharp !== true || isSettled(slope)) found.set(pair.gradient, slope);
      }
    }
    return [...found].map(([gradient, slope]) => checkOf(fusion, gradient, slope));
  });
}

function isSettled(slope: Slope | undefined): boolean {
  return slope?.isSharp === true && slope.leftOut === 0;
}

/** Why the gradients of a derivation cannot be compared, or not in time; null if they can. */
function obstacleOf(fusion: FusionData, derivation: Derivation, sizes: Sizes, full: boolean): string | null {
  const { of, wrt, cotangents, whole } = derivation;
  const { ops, inputs } = whole ?? fusion;
  const { tensors } = fusion;
  const extents = inputs.flatMap((id) => withoutReductions(at(tensors, id).domain.logical).map(({ extent }) => extent));
  if (extents.some((extent) => evaluateScalar(extent, (name) => sizes.get(name)) === undefined)) {
    return "the sizes of what it differentiates are not known";
  }
  const wanted = [...of, ...wrt, ...cotangents.flatMap((id) => id ?? [])];
  if (!canMake(ops, wanted, inputs)) return "the program lacks a part of what it differentiates";
  if (full || workOf(fusion, ops, sizes) <= mostWork) return null;
  return "at these sizes that takes long: smaller sizes have the same rules, and --check=full compares any";
}

function workOf({ tensors }: FusionData, ops: readonly Op[], sizes: Sizes): number {
  const shape = (id: TensorId): readonly number[] => shapeOf(at(tensors, id), sizes);
  return ops.reduce((sum, op) => {
    const output = shape(op.output);
    const elements = elementCount(output);
    return sum + elementWork * elements + rowOf(op).flops(op, { operands: op.inputs.map(shape), output });
  }, 0);
}

/** The inputs of what was differentiated. A backward pass alone has saved tensors instead of some of them. */
function inputsOf(
  fusion: FusionData,
  { whole }: Derivation,
  inputs: readonly Tensor[],
  sizes: Sizes,
  seed: number,
): readonly Tensor[] {
  if (whole === undefined) return inputs;
  const given = new Map<number, Tensor>();
  whole.inputs.forEach((id, i) => {
    const position = fusion.inputs.indexOf(id);
    if (position >= 0) given.set(i, at(inputs, position));
  });
  const signature = { ...fusion, ...whole };
  return drawInputs(signature, sizes, seed, given, indexLimits(signature, sizes));
}

/** In double, with floats between 0.5 and 1, where logarithms and roots have values. */
function positive(tensor: Tensor): Tensor {
  const wide = toDouble(tensor);
  const elements = elementsOf(wide.dtype, wide.data);
  if (wide.dtype !== "double") return wide;
  for (let i = 0; i < elements.length; i++) elements.set(i, 0.5 + Math.abs(Number(elements.get(i)) % 1) / 2);
  return wide;
}

function uncompared({ tensors }: FusionData, gradient: TensorId): GradientCheck {
  const named = nameOf(at(tensors, gradient));
  return {
    gradient,
    name: `T${gradient}`,
    named,
    difference: null,
    leftOut: 0,
    isZero: false,
    notCompared: null,
    failure: null,
  };
}

function checkOf(fusion: FusionData, gradient: TensorId, slope: Slope): GradientCheck {
  const { claimed, found, bound, scale, leftOut, agrees, isSharp } = slope;
  const none = { ...uncompared(fusion, gradient), leftOut };
  if (!isSharp) return { ...none, notCompared: whyNot(slope) };
  const difference = claimed === found ? 0 : Math.abs(claimed - found) / scale;
  if (agrees) return { ...none, difference, isZero: claimed === 0 && found === 0 };
  const failure: Diagnostic = {
    code: "check-failed",
    message: "a gradient is not the slope of what was differentiated",
    place: { kind: "tensor", text: printTensor(at(fusion.tensors, gradient)) },
    found: `${claimed.toPrecision(6)} along a random direction`,
    expected: `${found.toPrecision(6)} by central differences (within ${bound.toPrecision(3)})`,
    help: "this is a bug in Braid: please report the program and the command line",
  };
  return { ...none, difference, failure };
}

/** At the last point, whose inputs are between 0.5 and 1. */
function whyNot({ found, leftOut, of }: Slope): string {
  if (leftOut === of) return "it has no finite element";
  if (!Number.isFinite(found)) return "what it differentiates is not finite near the inputs";
  return "rounding or curvature hides the slope";
}
