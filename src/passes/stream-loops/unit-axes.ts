/**
 * Which tensors of a host unit a loop over the Stream axis of its outputs slices: those from which the outputs take the
 * axis. All others are read whole.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { HostProgram, PostOnStream } from "../../host/nodes.ts";
import { at } from "../../support/invariant.ts";
import { axisText, tensorList } from "../op-text.ts";
import type { SlicedAxes } from "./loop-member.ts";
import { loopedOperandAxes } from "./operand-axes.ts";
import { type Chunks, sameChunks, streamPart, type StreamPart } from "../../ir/stream.ts";

/** The sliced axes of the tensors of a unit's Fusion, by tensor. */
export type SlicedTensors = ReadonlyMap<TensorId, IterDomain>;

/** The axes of the posted tensors that the loop slices. Throws `stream-on-cut-axis` and `stream-on-split-axis`. */
export function unitAxes(post: PostOnStream, looped: StreamPart, program: HostProgram): SlicedAxes {
  const { fusion } = at(program.units, post.unit);
  const made = post.outputs.map((id) => madeAxis(post, at(program.tensors, id), looped));
  const sliced = slicedTensors(post, made, looped.chunks, program);
  const read = post.inputs.map((id, i): IterDomain | null => {
    const own = sliced.get(at(fusion.inputs, i));
    return own === undefined
      ? null
      : counterpart(own, at(fusion.tensors, at(fusion.inputs, i)), at(program.tensors, id));
  });
  return { read, made };
}

function madeAxis(post: PostOnStream, output: Tensor, looped: StreamPart): IterDomain {
  const own = streamPart(output);
  if (own !== null && sameChunks(own.chunks, looped.chunks)) return own.axis;
  return fail({
    code: "stream-on-host-unit",
    message: "the outputs of a unit have different Stream axes",
    place: { kind: "statement", text: `PostOnStream of a fused unit with outputs ${tensorList(post.outputs)}` },
    found: own === null ? `no Stream axis that a loop can count on T${output.id}` : axisText(output, own.part),
    expected: "as many chunks of one axis on all outputs",
    help: "give all outputs the same Stream axis, or put set() after the op and parallelize the set's output with Stream",
  });
}

/**
 * The tensors of the unit's Fusion that have an iteration's slice. `made` are the axes of the posted outputs. Throws
 * `stream-on-cut-axis` and `stream-on-split-axis`.
 */
export function slicedTensors(
  { unit, outputs }: PostOnStream,
  made: readonly IterDomain[],
  chunks: Chunks | null,
  program: Pick<HostProgram, "tensors" | "units">,
): SlicedTensors {
  const { fusion } = at(program.units, unit);
  const sliced = new Map<TensorId, IterDomain>();
  const whole = new Set<TensorId>();
  fusion.outputs.forEach((id, i) => {
    sliced.set(id, counterpart(at(made, i), at(program.tensors, at(outputs, i)), at(fusion.tensors, id)));
  });
  for (const op of fusion.ops.toReversed()) {
    const axis = sliced.get(op.output);
    const axes =
      axis === undefined
        ? []
        : loopedOperandAxes(op, axis, chunks ?? { parts: axis.extent, within: [] }, fusion.tensors);
    op.inputs.forEach((input, operand) => {
      const own = axes[operand] ?? null;
      const known = sliced.get(input);
      if (own === null ? known !== undefined : whole.has(input) || (known !== undefined && known.id !== own.id)) {
        rejectUse(at(fusion.tensors, input), own ?? known);
      }
      if (own === null) whole.add(input);
      else sliced.set(input, own);
    });
  }
  return sliced;
}

/** The axis of `other` at the place of `axis` in `tensor`. */
function counterpart(axis: IterDomain, tensor: Tensor, other: Tensor): IterDomain {
  const position = withoutReductions(tensor.domain.logical).findIndex(({ id }) => id === axis.id);
  return at(withoutReductions(other.domain.logical), position);
}

function rejectUse(tensor: Tensor, axis: IterDomain | undefined): never {
  return fail({
    code: "stream-on-cut-axis",
    message: `a fused unit needs T${tensor.id} as a whole and in chunks`,
    place: { kind: "tensor", text: axis === undefined ? `T${tensor.id}` : axisText(tensor, axis) },
    found: "ops of one unit that read the tensor along different axes",
    expected: "ops that read the chunk of their own iteration",
    help: "remove Stream from the op that reads the whole tensor: it then runs before or after the loop, not overlapped",
  });
}
