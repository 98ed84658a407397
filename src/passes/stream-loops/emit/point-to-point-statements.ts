/**
 * One iteration of a point-to-point form, as the options require: an exchange with one peer, or a rooted collective.
 * The root is the iteration's device, which has the shard or keeps the chunk. Source: nvFuser's StreamParallelType with
 * offset_stream_indexing_by_rank on and off; the Gather is ours.
 */
import { type CommunicationType, type CommunicatorBackend, reduceOpOf } from "../../../host/collectives.ts";
import type { P2PCommunication, Statement } from "../../../host/nodes.ts";
import type { Op } from "../../../ir/ops/op.ts";
import { binary, constant, named, type Scalar } from "../../../ir/scalar/scalar.ts";
import { at, unreachable, invariant } from "../../../support/invariant.ts";
import { backendOfTeam } from "../../rank-class.ts";
import { teamBackend } from "../../team-backend.ts";
import type { PeerForm, GatherForm, ScatteredAxis } from "../forms.ts";
import {
  addStream,
  type IterationStatements,
  type LoopContext,
  nextExpr,
  type TeamPositions,
  teamPositions,
} from "./loop-context.ts";
import { selectAt, type LoopSlice, chunkAt, shareAt } from "./slicer.ts";
import type { DIDType, IterDomain, TensorId } from "../../../ir/domain.ts";
import { foldCeilDiv } from "../../../ir/scalar/fold.ts";
import { shardsOf } from "../../../ir/shards.ts";
import type { Chunks } from "../../../ir/stream.ts";
import type { TensorEdit } from "../../edit/tensor-edit.ts";
import { shardedAxis } from "../../routes/layouts.ts";

export function pointToPointStatements(op: Op, form: PeerForm, context: LoopContext): IterationStatements {
  const positions = teamPositions(form.mesh, form.type, context);
  const { body, epilogue } =
    context.options.p2p === "broadcast"
      ? { body: rootedStatements(op, form, positions, context), epilogue: [] }
      : exchangeStatements(op, form, positions, context);
  return { body: [...body, ...chainStreams(context)], epilogue };
}

/** With `interStreamSync`, makes stream i+1 wait for stream i, in the first round over the streams. */
function chainStreams({ edit, iteration, worker, options }: LoopContext): readonly Statement[] {
  if (!options.interStreamSync) return [];
  const following = binary("add", iteration, constant(1));
  const next = addStream(edit, following);
  return [
    {
      kind: "IfThenElse",
      predicate: binary("lt", following, named("numberOfStreams")),
      then: [
        { kind: "SetCurrentStream", stream: next },
        { kind: "Synchronize", stream: worker },
        { kind: "SetCurrentStream", stream: worker },
      ],
      else: [],
    },
  ];
}

const rootedTypes: { readonly [K in PeerForm["kind"]]: CommunicationType } = {
  gather: "Broadcast",
  exchange: "Gather",
  reduce: "Reduce",
};

function rootedStatements(op: Op, form: PeerForm, { team }: TeamPositions, context: LoopContext): readonly Statement[] {
  const { edit } = context;
  const { input, output } = rootedOperands(op, form, context);
  const id = nextExpr(edit);
  return [
    ...input.binding,
    ...output.binding,
    {
      kind: "Communication",
      id,
      type: rootedTypes[form.kind],
      team,
      root: turnOf(context, form.kind === "gather" ? form.pieces : 1),
      reduceOp: op.kind === "Reduction" ? reduceOpOf[op.op] : null,
      input: input.slice,
      output: output.slice,
      backend: backendOfTeam(context, team),
    },
    { kind: "Wait", target: id },
  ];
}

/**
 * The slices that the collective reads and writes. Every rank names both, although only the root's shard, or its
 * output, matters.
 */
function rootedOperands(
  op: Op,
  form: PeerForm,
  context: LoopContext,
): { readonly input: LoopSlice; readonly output: LoopSlice } {
  const { edit, slicer, index } = context;
  const operand = at(op.inputs, 0);
  switch (form.kind) {
    case "gather": {
      const input = form.pieces === 1 ? { slice: operand, binding: [] } : pieceOf(operand, form, context);
      return { input, output: slicer.slice(op.output, form.chunk) };
    }
    case "exchange": {
      // The root receives its whole chunk, from all devices at once.
      const input = slicer.slice(operand, form.scattered.from);
      return { input, output: ownShare(op.output, context, form.scattered, form.type) };
    }
    case "reduce": {
      // A reduced axis takes no memory: its slice is the whole output.
      const input = slicer.slice(operand, form.scattered.from);
      const output = selectAt(edit, op.output, form.stream, index);
      if (form.scattered.chunks === null) return { input, output };
      const own = ownShare(output.slice, context, form.scattered, form.type);
      return { input, output: { slice: own.slice, binding: [...output.binding, ...own.binding] } };
    }
    default:
      return unreachable(form);
  }
}

// One iteration of a point-to-point form as an exchange with one peer, or as a local copy if the peer is the rank
// itself. NCCL coalesces send and receive. CUDA posts them in the order of the protocol, and waits for the send at the
// end of the iteration, after the ops that consume the chunk. Source: nvFuser's StreamParallelType.

function exchangeStatements(
  op: Op,
  form: PeerForm,
  positions: TeamPositions,
  context: LoopContext,
): IterationStatements {
  const isOneSided = teamBackend(positions.team, context.options) === "cuda";
  const { bindings, peers } = peersOf(op, form, positions, context);
  const { during, after } = isOneSided ? oneSided(peers, context) : coalesced(peers, context);
  const branch = (then: readonly Statement[], otherwise: readonly Statement[]): Statement => ({
    kind: "IfThenElse",
    predicate: peers.isOwn,
    then,
    else: otherwise,
  });
  return {
    body: [...bindings, branch(peers.copy, during)],
    epilogue: after.length === 0 ? [] : [branch([], after)],
  };
}

interface Posted {
  readonly during: readonly Statement[];
  /** After the ops that read the received chunk. */
  readonly after: readonly Statement[];
}

function post(
  type: "send" | "recv",
  { sends, receives }: Peers,
  { edit }: LoopContext,
  backend: CommunicatorBackend,
): P2PCommunication {
  const side = type === "send" ? sends : receives;
  return { kind: "P2PCommunication", id: nextExpr(edit), type, ...side, backend };
}

/** In one group the order does not matter, and both directions of the link are used at once. */
function coalesced(peers: Peers, context: LoopContext): Posted {
  const recv = post("recv", peers, context, "nccl");
  const send = post("send", peers, context, "nccl");
  const end = nextExpr(context.edit);
  return {
    during: [
      { kind: "StartCoalescing" },
      recv,
      send,
      { kind: "EndCoalescing", id: end },
      { kind: "Wait", target: end },
    ],
    after: [],
  };
}

/** The half that signals comes first: otherwise every rank would wait before it has signalled. */
function oneSided(peers: Peers, context: LoopContext): Posted {
  const recv = post("recv", peers, context, "cuda");
  const send = post("send", peers, context, "cuda");
  const order = context.options.protocol === "get" ? [send, recv] : [recv, send];
  return {
    during: [{ kind: "ShareMemHandles", communications: [recv, send] }, ...order, { kind: "Wait", target: recv.id }],
    after: [{ kind: "Wait", target: send.id }],
  };
}

/*
 * The buffers and peers of one iteration of a point-to-point form, and the condition under which the peer is the rank
 * itself.
 *
 * A gather that scatters another axis sends the receiver's part of the shard.
 *
 *             chunk of an iteration         gather                          exchange
 *   linear    streamIdx                     send own shard to index,        send chunk index to index,
 *                                           receive chunk index from it     receive chunk index from it
 *   rotated   (rank + streamIdx) % D        send own shard to               send chunk index to index,
 *                                           (D + (rank - streamIdx)) % D,   receive chunk (D + (rank - streamIdx)) % D
 *                                           receive chunk index from index  from it
 *
 * If a shard is k > 1 chunks, a gather takes k iterations per peer: (rank * k + streamIdx) % (D * k) is the chunk of a
 * rotated loop, streamIdx / k takes the place of streamIdx in the peers, and piece streamIdx % k of the shard is sent.
 */

interface Peers {
  readonly sends: { readonly buffer: TensorId; readonly peer: Scalar };
  readonly receives: { readonly buffer: TensorId; readonly peer: Scalar };
  /** Whether both peers are the rank itself. */
  readonly isOwn: Scalar;
  /** The statements of the iteration in that case. */
  readonly copy: readonly Statement[];
}

interface BoundPeers {
  readonly bindings: readonly Statement[];
  readonly peers: Peers;
}

function peersOf(op: Op, form: PeerForm, positions: TeamPositions, context: LoopContext): BoundPeers {
  return form.kind === "gather"
    ? gatherPeers(op, form, positions, context)
    : exchangePeers(op, form, positions, context);
}

/**
 * Sends the piece of the own shard that the receiver wants in this iteration; the whole shard, unsliced, if it is one
 * chunk. The chunk arrives in the slice that later ops of the iteration read.
 */
function gatherPeers(op: Op, form: GatherForm, { own, deviceAt }: TeamPositions, context: LoopContext): BoundPeers {
  const { edit, slicer, index, isRotated } = context;
  const { pieces } = form;
  const shard = at(op.inputs, 0);
  const devices = constant(form.mesh.size(form.type));
  const turn = turnOf(context, pieces);
  const [source, receiver] =
    pieces === 1
      ? [index, opposite(own, context)]
      : isRotated
        ? [
            binary("mod", binary("add", own, turn), devices),
            binary("mod", binary("add", devices, binary("sub", own, turn)), devices),
          ]
        : [turn, turn];
  const { scattered } = form;
  const part =
    scattered === null
      ? { slice: shard, binding: [] }
      : partAt(edit, shard, { axis: scattered.from, chunks: scattered.chunks }, receiver);
  const ownShard = form.keepsAxis
    ? pieceOf(part.slice, form, context)
    : ownShare(part.slice, context, { chunks: null }, form.type);
  const piece = pieces === 1 ? part : ownShard;
  const chunk = slicer.slice(op.output, form.chunk);
  const target =
    scattered === null ? { slice: chunk.slice, binding: [] } : ownShare(chunk.slice, context, scattered, form.type);
  return {
    bindings: [...chunk.binding, ...piece.binding],
    peers: {
      sends: { buffer: piece.slice, peer: deviceAt(receiver) },
      receives: { buffer: chunk.slice, peer: deviceAt(source) },
      isOwn: binary("eq", receiver, own),
      copy: [
        ...(pieces === 1 ? ownShard.binding : []),
        ...target.binding,
        { kind: "Set", inputs: [ownShard.slice], output: target.slice },
      ],
    },
  };
}

/** The part of an axis that the device at a position has: a chunk, or one index. */
function partAt(
  edit: TensorEdit,
  id: TensorId,
  { axis, chunks }: { readonly axis: IterDomain; readonly chunks: Chunks | null },
  position: Scalar,
): LoopSlice {
  return chunks === null ? selectAt(edit, id, axis, position) : chunkAt(edit, id, axis, chunks, position);
}

/** How many devices the iteration's peer is away; in a linear loop, the peer. */
function turnOf({ iteration }: LoopContext, pieces: number): Scalar {
  return pieces === 1 ? iteration : binary("div", iteration, constant(pieces));
}

/** The iteration's piece of the own shard. */
function pieceOf(
  shard: TensorId,
  { sharded, parts, pieces, type }: GatherForm,
  { edit, iteration }: LoopContext,
): LoopSlice {
  const share = { pieces: constant(pieces), extent: foldCeilDiv(sharded.extent, parts) };
  const index = pieces === 1 ? constant(0) : binary("mod", iteration, constant(pieces));
  return shareAt(edit, shard, cutAxisOf(shard, edit, type), share, index);
}

function cutAxisOf(slice: TensorId, { tensors }: TensorEdit, type: DIDType): IterDomain {
  const axis = shardsOf(at(tensors, slice)).find((shard) => shard.type === type)?.axis;
  invariant(axis !== undefined, "what an exchange moves is sharded", { slice });
  return axis;
}

/** The slice of an exchange as it lies on this device: without the scattered axis, or with this device's share of it. */
function ownShare(
  slice: TensorId,
  { edit }: LoopContext,
  { chunks }: Pick<ScatteredAxis, "chunks">,
  type: DIDType,
): LoopSlice {
  const axis = cutAxisOf(slice, edit, type);
  if (chunks === null) return selectAt(edit, slice, axis, constant(0));
  const share = { pieces: constant(1), extent: foldCeilDiv(axis.extent, chunks.parts) };
  return shareAt(edit, slice, axis, share, constant(0));
}

/** Sends the iteration's chunk to the device that keeps it, and receives a peer's share of this rank's chunk. */
function exchangePeers(
  op: Op,
  form: Exclude<PeerForm, GatherForm>,
  { own, deviceAt }: TeamPositions,
  context: LoopContext,
): BoundPeers {
  const { edit, slicer, index } = context;
  invariant(op.kind === "Set", "exchange-reductions gives a reduction a separate set", op);
  const sent = slicer.slice(at(op.inputs, 0), form.scattered.from);
  const source = opposite(own, context);
  const chunks = form.received === null ? null : { parts: form.received.parts, within: [] };
  const received = partAt(edit, op.output, { axis: form.received?.axis ?? form.stream, chunks }, source);
  const position = wholePosition(sent.slice, context, form.type);
  // A run of the sharded axis is not the axis of which the device has one index.
  const isAligned = chunks === null && position >= 0 && position === wholePosition(received.slice, context, form.type);
  const [copied, target] = isAligned
    ? [
        { slice: sent.slice, binding: [] },
        { slice: received.slice, binding: [] },
      ]
    : [
        ownShare(sent.slice, context, { chunks }, form.type),
        ownShare(received.slice, context, form.scattered, form.type),
      ];
  return {
    bindings: [...sent.binding, ...received.binding],
    peers: {
      sends: { buffer: sent.slice, peer: deviceAt(index) },
      receives: { buffer: received.slice, peer: deviceAt(source) },
      isOwn: binary("eq", index, own),
      copy: [...copied.binding, ...target.binding, { kind: "Set", inputs: [copied.slice], output: target.slice }],
    },
  };
}

/**
 * The position that works on this rank's chunk in the same iteration: `( ( stop + ( own - iteration ) ) % stop )` in a
 * rotated loop.
 */
function opposite(own: Scalar, { isRotated, iteration, index, stop }: LoopContext): Scalar {
  if (!isRotated) return index;
  return binary("mod", binary("add", stop, binary("sub", own, iteration)), stop);
}

/** The axis of which the device has one index; -1 if it has a run. */
function wholePosition(slice: TensorId, { edit }: LoopContext, type: PeerForm["type"]): number {
  const tensor = at(edit.tensors, slice);
  const sharded = shardedAxis(tensor, type);
  return tensor.domain.logical.findIndex(({ id }) => id === sharded?.id);
}
