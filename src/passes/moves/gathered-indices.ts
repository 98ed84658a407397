/** Warnings about a sharded axis that an op indexes, where split-indices cannot leave it in shares: it is gathered. */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { readsIndices } from "../../ir/index-limits.ts";
import { originated, withNames } from "../../ir/origin.ts";
import type { Op } from "../../ir/ops/op.ts";
import { constantValue } from "../../ir/scalar/fold.ts";
import { at } from "../../support/invariant.ts";
import { opText } from "../op-text.ts";
import type { Moved } from "./list-reshardings.ts";
import { keepsOneRun, shardsOf } from "../../ir/shards.ts";

/** Null unless the op that the tensor is gathered for indexes an axis of it. */
export function gatheredIndices(
  { reader, isInserted, resharding: { tensor: id, bytes } }: Moved,
  tensors: readonly Tensor[],
): Diagnostic | null {
  if (reader === null || !isInserted || !readsIndices(reader) || reader.inputs.indexOf(id) === 1) return null;
  const tensor = at(tensors, id);
  const why = whyGathered(tensor, reader.axis);
  if (why === null || !isIndexed(reader, id)) return null;
  const size = bytes === null ? "an unknown number of bytes" : `${bytes.toLocaleString("en-US")} bytes`;
  const about: Diagnostic = { code: "indexed-axis-gathered", message: `T${id}` };
  const { tensors: mentions } = originated(about, tensors, true);
  return {
    code: "indexed-axis-gathered",
    severity: "warning",
    message: `T${id} is gathered, because ${why.reason}`,
    place: { kind: "tensor", text: withNames(opText(reader), tensors) },
    found: `${size} to a device`,
    expected: "an indexed axis in equal runs, of which each device reads or adds in its own",
    help: why.help,
    ...(mentions === undefined ? {} : { tensors: mentions }),
  };
}

function isIndexed({ kind, inputs }: Op, id: TensorId): boolean {
  return id === inputs[0] || (kind === "ScatterAdd" && id === inputs[2]);
}

function whyGathered(tensor: Tensor, number: number): { readonly reason: string; readonly help: string } | null {
  const axis = at(withoutReductions(tensor.domain.logical), number);
  const [shard, ...others] = shardsOf(tensor).filter((each) => each.axis.id === axis.id);
  if (shard === undefined || shard.cut.parts.length === 1) return null;
  const extent = constantValue(axis.extent);
  const devices = tensor.mesh?.size(shard.type) ?? 1;
  if (others.length > 0 || !keepsOneRun(shard, devices)) {
    return {
      reason: `its axis ${number} is not cut once into runs`,
      help: `cut it with outerSplit(${number}, devices) alone`,
    };
  }
  if (extent === null) {
    return {
      reason: `the extent of its axis ${number} is known only at run time`,
      help: `give it as a number: a multiple of ${devices}`,
    };
  }
  if (extent % devices === 0) return null;
  return {
    reason: `its axis ${number} has ${extent} indices, which ${devices} devices cannot share equally`,
    help: `give it ${Math.ceil(extent / devices) * devices}, with padding at the end: logits, of -Infinity`,
  };
}
