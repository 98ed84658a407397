/**
 * What a Fusion sends between devices, and why: one entry for each op that reshards, once no op does anything else
 * besides (after local-sets).
 */
import { axisShards } from "../../ir/axis-shards.ts";
import { allocationSize, type DIDType, type Tensor, type TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { evaluateScalar } from "../../ir/scalar/scalar.ts";
import { collectives, type CommunicationType } from "../../host/collectives.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { opText } from "../op-text.ts";
import { type OpPlacements, placementsOf } from "./placement.ts";
import { type ReshardingStep, reshardingStep } from "./resharding-step.ts";
import { isResharding, sameMesh, streamAxis } from "./sharding.ts";
import { teamsOf } from "./step-teams.ts";

export interface Resharding {
  /** The tensor that moves. */
  readonly tensor: TensorId;
  readonly collective: CommunicationType;
  /** The type of the mesh along which devices exchange; null if only the mesh changes. */
  readonly along: DIDType | null;
  /** Whether it goes in chunks, in a loop. */
  readonly chunked: boolean;
  /** The bytes that the device that receives most receives; null if a size is not known. */
  readonly bytes: number | null;
  /** Which op needs it, and what it follows there. */
  readonly reason: string;
}

/** `before` is the Fusion as the user wrote it: its tensors with a mesh are the user's. */
export function listReshardings(
  fusion: FusionData,
  before: FusionData,
  sizeOf: (name: string) => number | undefined,
): readonly Resharding[] {
  const { tensors } = fusion;
  return fusion.ops.flatMap((op): readonly Resharding[] => {
    const placements = isResharding(op, tensors) ? placementsOf(op, tensors) : null;
    const step = placements === null ? null : reshardingStep(placements.from, placements.to, placements.reduced);
    if (placements === null || step === null) return [];
    const tensor = at(op.inputs, 0);
    return [
      {
        tensor,
        collective: step.kind,
        along: step.type,
        chunked: streamAxis(at(tensors, op.output)) !== null,
        bytes: receivedBytes(op, placements, step, tensors, sizeOf),
        reason: reasonFor(op, step, fusion, before),
      },
    ];
  });
}

function receivedBytes(
  op: Op,
  { from, to }: OpPlacements,
  step: ReshardingStep,
  tensors: readonly Tensor[],
  sizeOf: (name: string) => number | undefined,
): number | null {
  const output = at(tensors, op.output);
  const elements = evaluateScalar(allocationSize(output), sizeOf);
  if (elements === undefined) return null;
  const share = (cuts: OpPlacements["from"]["cuts"], without: number | null): number =>
    [...cuts.values()].reduce((part, { axis, devices }) => (axis === without ? part : part / devices), 1);
  const whole = elements * dtypes[output.dtype].bytes;
  const { onOneMesh } = collectives[step.kind];
  if (from.mesh.equals(to.mesh) && onOneMesh !== null && step.type !== null) {
    const members = from.mesh.size(step.type);
    const times = onOneMesh.times === "team" ? members : onOneMesh.times;
    const reduced = op.kind === "Reduction" || op.kind === "Squeeze" ? (op.axes[0] ?? null) : null;
    const own = onOneMesh.share === "before" ? share(from.cuts, reduced) : share(to.cuts, null);
    return Math.ceil((whole * own * times * (members - 1)) / members);
  }
  const members = Math.max(
    ...teamsOf(step, from.mesh, to.mesh, at(to.mesh.devices, 0)).map(({ team }) => team.length),
    1,
  );
  return Math.ceil(collectives[step.kind].reduces ? whole * (members - 1) : whole * share(to.cuts, null));
}

function reasonFor(op: Op, { type }: ReshardingStep, fusion: FusionData, before: FusionData): string {
  const { tensors } = fusion;
  if (op.kind !== "Set") return `${opText(op)} sums over devices`;
  const isUsers = (id: TensorId): boolean => (before.tensors[id]?.mesh ?? null) !== null;
  if (before.ops.some(({ output }) => output === op.output)) return `${opText(op)} is in the program`;
  const reader = fusion.ops.find(({ inputs }) => inputs.includes(op.output));
  const producer = before.ops.find(({ output }) => output === op.inputs[0]);
  if (reader === undefined)
    return producer === undefined ? opText(op) : `the result of ${opText(producer)} is annotated`;
  const asWritten = before.ops.find(({ output }) => output === reader.output) ?? reader;
  const needs = `${opText(asWritten)} needs it`;
  if (isUsers(reader.output)) return `${needs} as T${reader.output} is annotated`;
  const leader = leaderOf(reader, op.output, type, tensors);
  return leader === null ? needs : `${needs} to follow T${leader}`;
}

/** The other operand of `reader` from which its output has its cut along `type`, or another cut of its own. */
function leaderOf(reader: Op, moved: TensorId, type: DIDType | null, tensors: readonly Tensor[]): TensorId | null {
  const output = at(tensors, reader.output);
  const pairs = axisMap(reader, tensors);
  const others = reader.inputs.filter((id) => id !== moved);
  const cut = axisShards(output).find((shard) => shard.type === type)?.axis.id;
  const leads = (id: TensorId): boolean =>
    axisShards(at(tensors, id)).some(
      (shard) =>
        shard.type === type &&
        pairs.some(({ producer, consumer }) => producer.id === shard.axis.id && consumer.id === cut),
    );
  return others.find(leads) ?? others.find((id) => !sameMesh(at(tensors, id).mesh, at(tensors, moved).mesh)) ?? null;
}
