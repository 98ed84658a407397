/**
 * The programs of one stage of a pipeline, from its Fusion: the forward pass and the backward pass, and this in two
 * parts, the gradient of the stage's input and those of its weights. All number tensors alike, up to those that lowering
 * adds.
 */
import { reject, call } from "../../ir/ops/call.ts";
import { Fusion } from "../../ir/api/fusion.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { outputsOf } from "../../ir/ops/op.ts";
import { dtypes } from "../../numerics/dtype.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { at, invariant } from "../../support/invariant.ts";
import { decomposedData, placedData } from "../lower.ts";
import { type SavePolicy, splitBackward, withoutStream } from "../split-backward.ts";
import type { PipelinePass } from "./orders.ts";

/** The Fusion of a pass as the passes on Fusions leave it. */
export interface PassProgram {
  readonly fusion: FusionData;
  /** What its outputs are, as the stage numbers tensors. */
  readonly results: readonly TensorId[];
}

export interface PipelineStage {
  readonly mesh: DeviceMesh;
  readonly passes: Readonly<Record<PipelinePass, PassProgram>>;
  /** The activations that come in and go out, and their gradients. */
  readonly x: TensorId;
  readonly y: TensorId;
  readonly dy: TensorId;
  /** Null for indices. */
  readonly dx: TensorId | null;
  /** The other inputs. Without a gradient if the activations that go out do not depend on them. */
  readonly weights: readonly { readonly weight: TensorId; readonly gradient: TensorId | null }[];
  /** As the first pass that has it as an input or an output has it. */
  readonly tensorOf: (id: TensorId) => Tensor;
}

/** `fusion`: activations are its first input and its only output. Throws what lowering and `gradients` throw. */
export function stagePrograms(
  given: Fusion,
  mesh: DeviceMesh,
  { save, lowering }: { readonly save?: SavePolicy; readonly lowering: Partial<LoweringOptions> },
): PipelineStage {
  const fusion = new Fusion(given.data());
  const [x, ...weights] = fusion.inputs;
  const [y] = fusion.outputs;
  if (x === undefined || y === undefined || fusion.outputs.length > 1) {
    return reject(call("pipeline", { code: "{ stage }" }), {
      code: "bad-argument",
      message: "a stage is a Fusion from activations to activations",
      found: `${fusion.inputs.length} inputs and ${fusion.outputs.length} outputs`,
      expected: "the activations as the first input, weights as the others, and one output",
      help: "add inputs and an output to the Fusion",
    });
  }
  const dy = fusion.input(y.extents, y.dtype);
  const wrt = [x, ...weights].filter(({ dtype }) => dtypes[dtype].family === "float");
  const { forward, backward, gradients } = splitBackward(fusion, { of: [y], cotangents: [dy], wrt }, save);
  const found = gradients.map((_, i) => gradients.slice(0, i).filter(Boolean).length);
  const gradientOf = (tensor: TensorView): TensorId | null => {
    const i = wrt.indexOf(tensor);
    return gradients[i] === true ? at(backward.outputs, at(found, i)).id : null;
  };
  const dx = gradientOf(x);
  const program = (data: FusionData): PassProgram => ({
    fusion: decomposedData({ data: () => data }, lowering).decomposed,
    results: data.outputs,
  });
  const [inputPart, weightPart] = cutBackward(placedData(backward, lowering), dx);
  const passes = {
    forward: program({ ...forward.data(), inputs: given.data().inputs }),
    backward: program(backward.data()),
    inputGradient: program(inputPart),
    weightGradient: program(weightPart),
  };
  const known = new Map<TensorId, Tensor>();
  for (const { fusion: own, results } of Object.values(passes)) {
    for (const id of own.inputs) if (!known.has(id)) known.set(id, at(own.tensors, id));
    for (const [i, id] of results.entries()) if (!known.has(id)) known.set(id, at(own.tensors, at(own.outputs, i)));
  }
  return {
    mesh,
    passes,
    x: x.id,
    y: y.id,
    dy: dy.id,
    dx,
    weights: weights.map((weight) => ({ weight: weight.id, gradient: gradientOf(weight) })),
    tensorOf: (id) => {
      const tensor = known.get(id);
      invariant(tensor !== undefined, "a pass has the tensor", { id });
      return tensor;
    },
  };
}

/** The ops on which `first` depends, and the others, which read what the first ones make. */
function cutBackward(data: FusionData, first: TensorId | null): readonly [FusionData, FusionData] {
  const needed = new Set(first === null ? [] : [first]);
  for (const op of data.ops.toReversed()) {
    if (outputsOf(op).some((id) => needed.has(id))) for (const id of op.inputs) needed.add(id);
  }
  const ops = data.ops.filter((op) => outputsOf(op).some((id) => needed.has(id)));
  const others = data.ops.filter((op) => !ops.includes(op));
  const made = new Set(ops.flatMap(outputsOf));
  const read = new Set(others.flatMap((op) => op.inputs));
  const late = data.outputs.filter((id) => id !== first);
  const handed = [...made].filter((id) => id !== first && (read.has(id) || late.includes(id)));
  const edit = { tensors: [...data.tensors], iterDomainCount: data.iterDomainCount };
  for (const id of handed) edit.tensors[id] = withoutStream(edit, at(data.tensors, id), at(data.tensors, id), true);
  return [
    {
      ...data,
      ops,
      inputs: data.inputs.filter((id) => needed.has(id)),
      outputs: [...(first === null ? [] : [first]), ...handed],
    },
    {
      ...data,
      ...edit,
      ops: others,
      inputs: [...data.inputs.filter((id) => read.has(id)), ...handed.filter((id) => read.has(id))],
      outputs: late.filter((id) => !made.has(id)),
    },
  ];
}
