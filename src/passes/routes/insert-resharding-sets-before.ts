/**
 * Puts a Set before the op for each operand with another layout than the op's output, so that the op itself does not
 * reshard.
 *
 *   T2[Stream, _, _, _] = matmul(T0[_, DIDx, _, _], T1)
 * becomes
 *   T3[Stream, _, _, _] = set(T0[_, DIDx, _, _])
 *   T2[Stream, _, _, _] = matmul(T3, T1)
 *
 * Source: nvFuser's insertReshardingSetsBefore.
 */
import { type Tensor, withoutReductions } from "../../ir/domain.ts";
import { keepShares, layout, type Layout, layoutOf } from "../../ir/layout.ts";
import { axisMap, partialAxes, splitsDivide } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at, invariant } from "../../support/invariant.ts";
import { addSerialTensor, editFusion } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { streamPart } from "../../ir/stream.ts";
import { imagesOf, moveTo, streamOn } from "./layouts.ts";
import { isCommunicable, type OperandChange, reshardedOperands } from "./sharding.ts";

export const insertReshardingSetsBefore: Pass<"checked", "checked"> = {
  name: "insert-resharding-sets-before",
  from: "checked",
  to: "checked",
  run: (fusion) => {
    const edit = editFusion(fusion);
    const { tensors } = edit;
    for (const op of fusion.ops) {
      const changes = isCommunicable(op, tensors) ? [] : reshardedOperands(op, tensors);
      if (changes.length === 0) {
        edit.ops.push(op);
        continue;
      }
      const inputs = [...op.inputs];
      const output = at(tensors, op.output);
      for (const change of changes) {
        const { operand, producer } = change;
        const { place, stream } = placeOfOperand(op, change, tensors);
        const copy = addSerialTensor(edit, producer, withoutReductions(producer.domain.logical), place.mesh);
        const axes = copy.domain.logical;
        const chunks = stream === null ? null : at(axes, stream);
        moveTo(edit, copy, axes, place, streamOn(streamPart(output), chunks));
        // Peers write into the Set's output instead of the op's.
        if (output.memory === "symmetric") tensors[copy.id] = { ...at(tensors, copy.id), memory: "symmetric" };
        edit.ops.push({ kind: "Set", inputs: [producer.id], output: copy.id });
        inputs[operand] = copy.id;
      }
      if (output.memory === "symmetric") tensors[op.output] = { ...output, memory: "global" };
      edit.ops.push({ ...op, inputs });
    }
    return edit.ops.length === fusion.ops.length ? fusion : { ...fusion, ...edit };
  },
};

/**
 * The layout of an operand with which each device works only on its own data: cut and streamed along the axes that
 * it shares with the output, and cut along a reduced axis if the op leaves partial results.
 */
function placeOfOperand(
  op: Op,
  { operand, producer }: OperandChange,
  tensors: readonly Tensor[],
): { readonly place: Layout; readonly stream: number | null } {
  const output = at(tensors, op.output);
  // The operand loses its own splits, so the output's alone must divide a reshaped axis.
  const own = axisMap(op, tensors).filter(
    ({ operand: of, broadcast, outermost, producer: from, consumer }) =>
      of === operand && !broadcast && (!outermost || splitsDivide(output.domain, consumer, from)),
  );
  const axes = withoutReductions(producer.domain.logical);
  const images = imagesOf(
    axes,
    own.filter(({ consumer }) => consumer.iterType !== "reduction"),
  );
  const wanted = layoutOf(output, images, axes);
  const given = layoutOf(producer);
  invariant(wanted !== null, "a resharding op has a mesh", { tensor: output.id });
  const partial = partialAxes(op, tensors).map(({ parallelType }) => parallelType);
  const kept = given === null ? null : keepShares(given, ({ type }) => partial.includes(type));
  // An axis that the op reduces chunk by chunk must arrive chunk by chunk.
  const streamed = streamPart(output)?.axis.id;
  const chunked = own.find(({ consumer }) => consumer.id === streamed)?.producer.id;
  const stream = axes.findIndex(({ id }) => id === chunked);
  return {
    place: layout(
      wanted.mesh,
      wanted.axes.map((cut, axis) => (images[axis] === null ? (kept?.axes[axis] ?? cut) : cut)),
    ),
    stream: stream < 0 ? null : stream,
  };
}
