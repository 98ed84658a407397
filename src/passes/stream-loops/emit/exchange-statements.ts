/**
 * One iteration of a point-to-point form as an exchange with peers, or a local copy in the iteration in which the peer is the rank
 * itself. NCCL coalesces send and receive. CUDA posts them in the order of the protocol and waits for the send at the end of the
 * iteration, behind what consumes the chunk. Source: nvFuser's StreamParallelType.
 */
import type { Op } from "../../../ir/ops/op.ts";
import type { P2PCommunication, Statement } from "../../../host/nodes.ts";
import { type Peers, peersOf } from "./exchange-peers.ts";
import type { IterationStatements, LoopContext } from "./loop-context.ts";
import { nextExpr } from "./loop-edit.ts";
import type { PointToPointForm } from "../point-to-point-form.ts";
import type { TeamPositions } from "./team-positions.ts";

/** One iteration of an op whose ranks send to and receive from one peer each. */
export function exchangeStatements(
  op: Op,
  form: PointToPointForm,
  positions: TeamPositions,
  context: LoopContext,
): IterationStatements {
  const { bindings, peers } = peersOf(op, form, positions, context);
  const { during, behind } = context.options.backend === "cuda" ? oneSided(peers, context) : coalesced(peers, context);
  const branch = (then: readonly Statement[], otherwise: readonly Statement[]): Statement => ({
    kind: "IfThenElse",
    predicate: peers.isOwn,
    then,
    else: otherwise,
  });
  return {
    body: [...bindings, branch(peers.copy, during)],
    epilogue: behind.length === 0 ? [] : [branch([], behind)],
  };
}

interface Posted {
  readonly during: readonly Statement[];
  /** Behind what reads the received chunk. */
  readonly behind: readonly Statement[];
}

function post(type: "send" | "recv", { sends, receives }: Peers, { edit, options }: LoopContext): P2PCommunication {
  const side = type === "send" ? sends : receives;
  return { kind: "P2PCommunication", id: nextExpr(edit), type, ...side, backend: options.backend };
}

/** One group: the order of its members does not matter, and both directions are used at once. */
function coalesced(peers: Peers, context: LoopContext): Posted {
  const recv = post("recv", peers, context);
  const send = post("send", peers, context);
  const end = nextExpr(context.edit);
  return {
    during: [
      { kind: "StartCoalescing" },
      recv,
      send,
      { kind: "EndCoalescing", id: end },
      { kind: "Wait", target: end },
    ],
    behind: [],
  };
}

/** The half that signals comes first: in the other order every rank would wait before it has signalled. */
function oneSided(peers: Peers, context: LoopContext): Posted {
  const recv = post("recv", peers, context);
  const send = post("send", peers, context);
  const order = context.options.protocol === "get" ? [send, recv] : [recv, send];
  return {
    during: [{ kind: "ShareMemHandles", communications: [recv, send] }, ...order, { kind: "Wait", target: recv.id }],
    behind: [{ kind: "Wait", target: send.id }],
  };
}
