/** A transfer as device operations on one stream: packs, the calls of NCCL, and unpacks. */
import type { Transfer } from "../../../commands/command.ts";
import type { Collective } from "../../../commands/transfer.ts";
import { contiguousStrides, type View } from "../../../commands/view.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { identityKernel } from "../kernels/plan/kernel-steps.ts";
import type { NcclCall, Piece, TransferPlan } from "../nccl/plan-builder.ts";
import { planCollective, planGroup } from "../nccl/transfer-plan.ts";
import { type Address, alignmentOf, type Place } from "./address.ts";
import { copyLaunch, type PlacedBox } from "./copy-ops.ts";
import type { DeviceOp } from "./device-op.ts";
import { launchOf, type Planning } from "./planning.ts";

/** `index` is the command's position in the list. */
export function transferOps(
  { communicator, stream }: Transfer,
  index: number,
  planning: Planning,
): readonly DeviceOp[] {
  const plan = planOf(index, planning);
  planning.tables.needScratch(stream, plan.scratchBytes);
  if (plan.calls.length === 0) return [];
  const base = { stream, command: index };
  const scratch = (offset: number): Place => ({ space: "scratch", stream, offset });
  const inMemory = (view: View): PlacedBox => [view, planning.places.addressOf(view)];
  const inScratch = (view: View, offset: number): PlacedBox => [
    { ...view, strides: contiguousStrides(view.shape) },
    scratch(offset),
  ];
  const place = (piece: Piece): Address =>
    piece.kind === "view" ? planning.places.addressOf(piece.view) : scratch(piece.offset);
  return [
    ...plan.packs.map(({ view, offset }) => copyLaunch(base, inMemory(view), inScratch(view, offset), planning)),
    ...plan.identities.map(({ offset, count, dtype, op }) => {
      const to = scratch(offset);
      return launchOf(
        planning,
        base,
        identityKernel(op, dtype, count, () => alignmentOf(to)),
        [to],
      );
    }),
    { kind: "transfer", ...base, communicator, calls: plan.calls.map((call) => placedCall(call, place)) },
    ...plan.unpacks.map(({ view, offset }) => copyLaunch(base, inScratch(view, offset), inMemory(view), planning)),
  ];
}

function placedCall(call: NcclCall, place: (piece: Piece) => Address): NcclCall<Address> {
  if ("piece" in call) return { ...call, piece: place(call.piece) };
  return { ...call, from: place(call.from), to: place(call.to) };
}

function planOf(index: number, { program, rank }: Planning): TransferPlan {
  const own = at(program.ranks, rank);
  const id = own.transferOf[index] ?? null;
  invariant(id !== null, "a transfer was matched", { rank, index });
  const { participants } = at(program.transfers, id);
  const operations = participants.map(({ operation }) => operation);
  const position = participants.findIndex((participant) => participant.rank === rank && participant.command === index);
  const operation = at(operations, position);
  if (operation.kind === "group") return planGroup(operation);
  const collectives = operations.filter((each): each is Collective => each.kind === "collective");
  return planCollective(collectives, position);
}
