/**
 * One iteration of a point-to-point form, as the options require: an exchange with one peer, or a rooted collective.
 * The root is the iteration's device, which has the shard or keeps the chunk. Source: nvFuser's StreamParallelType with
 * offset_stream_indexing_by_rank on and off; the Gather is ours.
 */
import { type CommunicationType, type CommunicatorBackend, reduceOpOf } from "../../../host/collectives.ts";
import type { P2PCommunication, Statement } from "../../../host/nodes.ts";
import type { Op } from "../../../ir/ops/op.ts";
import { binary, constant, named } from "../../../ir/scalar/scalar.ts";
import { at } from "../../../support/invariant.ts";
import { unreachable } from "../../../support/unreachable.ts";
import { backendOfTeam } from "../../rank-class.ts";
import { teamBackend } from "../../team-backend.ts";
import type { PeerForm } from "../forms.ts";
import { ownShare, type Peers, peersOf, pieceOf, turnOf } from "./exchange-peers.ts";
import {
  addStream,
  type IterationStatements,
  type LoopContext,
  nextExpr,
  type TeamPositions,
  teamPositions,
} from "./loop-context.ts";
import { selectAt, type LoopSlice } from "./slicer.ts";

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
