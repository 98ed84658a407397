/**
 * One iteration of a point-to-point form as an exchange with one peer, or as a local copy if the peer is the rank
 * itself. NCCL coalesces send and receive. CUDA posts them in the order of the protocol, and waits for the send at the
 * end of the iteration, after the ops that consume the chunk. Source: nvFuser's StreamParallelType.
 */
import type { Op } from "../../../ir/ops/op.ts";
import type { P2PCommunication, Statement } from "../../../host/nodes.ts";
import type { CommunicatorBackend } from "../../../host/collectives.ts";
import { teamBackend } from "../../team-backend.ts";
import type { PeerForm } from "../forms.ts";
import { type Peers, peersOf } from "./exchange-peers.ts";
import { type IterationStatements, type LoopContext, nextExpr } from "./loop-context.ts";
import type { TeamPositions } from "./team-positions.ts";

export function exchangeStatements(
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
