/** Communications of a HostProgramBuilder. */
import { requireTensor } from "../../ir/api/handle.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { call, type Call, reject } from "../../ir/ops/call.ts";
import { makeId } from "../../support/ids.ts";
import { isOneOf } from "../../support/is-one-of.ts";
import { keysOf } from "../../support/keys-of.ts";
import { append, type Awaitable, type BuilderState, ownId, requireRow, type ScalarLike, toScalar } from "./state.ts";
import {
  backendNames,
  collectives,
  reduceOpNames,
  type CommunicationType,
  type CommunicatorBackend,
  type ReduceOpType,
} from "../collectives.ts";
import type { Communication, EndCoalescing, ExprId, P2PCommunication } from "../nodes.ts";

export interface CommunicationOptions {
  readonly input: TensorView;
  readonly output: TensorView;
  /** Device ids in team order; the devices of the input's mesh if not given. */
  readonly team?: readonly number[];
  /** For the rooted types: a position in the team. */
  readonly root?: ScalarLike;
  /** For the reducing types; "sum" if not given. */
  readonly reduceOp?: ReduceOpType;
  /** "nccl" if not given. */
  readonly backend?: CommunicatorBackend;
}

export interface PeerOptions {
  /** A device id. */
  readonly peer: ScalarLike;
  /** "nccl" if not given. */
  readonly backend?: CommunicatorBackend;
}

/** One side of a one-sided transfer whose handles are shared. */
export interface SharedPeer {
  readonly type: "send" | "recv";
  readonly buffer: TensorView;
  readonly peer: ScalarLike;
}

export function addCommunication(
  state: BuilderState,
  type: CommunicationType,
  { input, output, team, root, reduceOp, backend = "nccl" }: CommunicationOptions,
): Communication {
  for (const [operand, tensor] of [input, output].entries()) requireTensor(tensor, "communication", operand);
  const place = call("communication", type, { tensor: input.id }, { tensor: output.id });
  requireName(keysOf(collectives), type, "a type of communication", place);
  if (reduceOp !== undefined) requireName(keysOf(reduceOpNames), reduceOp, "a reduction op", place);
  requireName(keysOf(backendNames), backend, "a communicator backend", place);
  const communication: Communication = {
    kind: "Communication",
    id: nextId(state),
    type,
    team: team ?? input.mesh?.devices ?? [],
    root: root === undefined ? null : toScalar(root),
    reduceOp: reduceOp ?? (collectives[type].reduces ? "sum" : null),
    input: ownId(state, input, place),
    output: ownId(state, output, place),
    backend,
  };
  state.awaitables.push(communication);
  append(state, communication);
  return communication;
}

/** A send or receive that is not posted yet. */
export function makePeer(
  state: BuilderState,
  type: "send" | "recv",
  buffer: TensorView,
  { peer, backend = "nccl" }: PeerOptions,
): P2PCommunication {
  requireTensor(buffer, type, 0);
  const place = call(type, { tensor: buffer.id });
  requireName(["send", "recv"], type, "a type of point-to-point communication", place);
  requireName(keysOf(backendNames), backend, "a communicator backend", place);
  const made: P2PCommunication = {
    kind: "P2PCommunication",
    id: nextId(state),
    type,
    buffer: ownId(state, buffer, place),
    peer: toScalar(peer),
    backend,
  };
  state.awaitables.push(made);
  return made;
}

/** One-sided halves with their handles shared, none of them posted yet. */
export function shareHandles(state: BuilderState, peers: readonly SharedPeer[]): readonly P2PCommunication[] {
  const communications = peers.map(({ type, buffer, peer }) =>
    makePeer(state, type, buffer, { peer, backend: "cuda" }),
  );
  append(state, { kind: "ShareMemHandles", communications });
  return communications;
}

export function addPost<C extends Communication | P2PCommunication>(state: BuilderState, communication: C): C {
  requireRow<Awaitable>(state.awaitables, communication, "communication", call("post"));
  append(state, communication);
  return communication;
}

export function addWait(state: BuilderState, posted: Awaitable): void {
  requireRow<Awaitable>(state.awaitables, posted, "communication", call("wait"));
  append(state, { kind: "Wait", target: posted.id });
}

export function addEndCoalescing(state: BuilderState): EndCoalescing {
  const end: EndCoalescing = { kind: "EndCoalescing", id: nextId(state) };
  state.awaitables.push(end);
  append(state, end);
  return end;
}

/** Programs may be written without types. Throws `bad-argument`. */
function requireName(names: readonly string[], name: string, what: string, place: Call): void {
  if (isOneOf(names, name)) return;
  reject(place, {
    code: "bad-argument",
    message: `${what} does not exist`,
    found: String(name),
    expected: names.join(", "),
    help: "use one of these names",
  });
}

function nextId({ awaitables }: BuilderState): ExprId {
  return makeId<ExprId>(awaitables.length);
}
