/**
 * A transfer as NCCL calls on contiguous memory: one call if NCCL has it (src/host/collectives.ts), otherwise a group
 * of sends and receives. Strided views are packed into scratch before and unpacked after. A plan says which calls use
 * which memory; transfer-actions.ts makes the calls.
 *
 *     Gather at the root          group: recv from every rank that has an input (from itself as well)
 *     ReduceScatter, strided out  reduceScatter(input, scratch); unpack scratch -> output
 */
import { collectives, type NcclCollective } from "../../../commands/collectives.ts";
import type { Collective, PointToPointGroup, Transfer } from "../../../commands/command.ts";
import { contiguousStrides, partOf, type View } from "../../../commands/view.ts";
import { at, invariant, unreachable } from "../../../support/invariant.ts";
import { identityKernel } from "../kernels/plan/kernel-steps.ts";
import { type Address, alignmentOf, type AddressPlace } from "../ops/address.ts";
import { copyLaunch, type PlacedBox } from "../ops/copy-ops.ts";
import type { DeviceOp } from "../ops/device-op.ts";
import { launchOf, type Planning } from "../ops/planning.ts";
import {
  viewBytes,
  createPlan,
  type NcclCall,
  type PeerView,
  type Piece,
  type PlanBuilder,
  type Reduced,
  type TransferPlan,
} from "./plan-builder.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

/** The plan of the rank at `position`. `operations` are those of the whole team in team order. */
export function planCollective(operations: readonly Collective[], position: number): TransferPlan {
  const plan = createPlan();
  const own = at(operations, position);
  const { nccl } = collectives[own.type];
  if (nccl === null) planSendsAndReceives(plan, operations, own);
  else planCall(plan, own, nccl);
  return plan.done();
}

/**
 * NCCL needs an address on both sides. A rank without one side passes the other side twice. A root without an input to
 * a reduction passes neutral elements.
 */
function planCall(plan: PlanBuilder, { type, input, output, reduceOp, root }: Collective, kind: NcclCollective): void {
  // NCCL counts the side that is not split.
  const counted = collectives[type].splitsInput ? (output ?? input) : (input ?? output);
  if (counted === null) return;
  const { dtype } = counted;
  const count = elementCount(counted.shape);
  const neutral = (): Piece | null => (reduceOp === null ? null : plan.identity(count, dtype, reduceOp));
  const source = input === null ? neutral() : plan.source(input);
  const to = output === null ? source : plan.destination(output);
  const from = source ?? to;
  if (from === null || to === null) return;
  const moved = { from, to, bytes: viewBytes(counted) };
  const reduced = (): Reduced => ({ from, to, count, dtype, op: required(reduceOp) });
  switch (kind) {
    case "allGather":
      return plan.call({ kind, ...moved });
    case "broadcast":
      return plan.call({ kind, ...moved, root: required(root) });
    case "allReduce":
    case "reduceScatter":
      return plan.call({ kind, ...reduced() });
    case "reduce":
      return plan.call({ kind, ...reduced(), root: required(root) });
    default:
      return unreachable(kind);
  }
}

/**
 * A collective without a call: `own` sends to every rank that has an output and receives from every one that has an
 * input.
 */
function planSendsAndReceives(plan: PlanBuilder, operations: readonly Collective[], own: Collective): void {
  const { team, input, output } = own;
  const { reduces, splitsInput, splitsOutput } = collectives[own.type];
  invariant(!reduces, "every reduction has an NCCL call", own.type);
  const peersWith = (side: "input" | "output"): readonly number[] =>
    operations.flatMap((operation, i) => (operation[side] === null ? [] : [at(team, i)]));
  const viewsOf = (view: View | null, splits: boolean, peers: readonly number[]): readonly PeerView[] =>
    view === null ? [] : peers.map((peer, part) => ({ peer, view: splits ? partOf(view, part) : view }));
  const sent = viewsOf(input, splitsInput, peersWith("output"));
  const received = viewsOf(output, splitsOutput, peersWith("input"));
  if (splitsInput && splitsOutput) {
    // Sends and receives of one peer are adjacent.
    for (const [i, each] of sent.entries()) {
      plan.send(each);
      plan.receive(at(received, i));
    }
  } else {
    sent.forEach(plan.send);
    received.forEach(plan.receive);
  }
}

export function planGroup({ ops }: PointToPointGroup): TransferPlan {
  const plan = createPlan();
  for (const { type, peer, view } of ops) {
    if (type === "send") plan.send({ view, peer });
    else plan.receive({ view, peer });
  }
  return plan.done();
}

function required<T>(value: T | null): T {
  invariant(value !== null, "link checks that a collective has the tensors of its row");
  return value;
}

// A transfer as device operations on one stream: packs, the calls of NCCL, and unpacks.

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
  const scratch = (offset: number): AddressPlace => ({ space: "scratch", stream, offset });
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
