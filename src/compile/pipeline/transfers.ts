/** Sends and receives between the stages of a pipeline. A send is waited for before its memory is used again. */
import { constant } from "../../ir/scalar/scalar.ts";
import { allocationSize, type TensorId } from "../../ir/domain.ts";
import type { ExprId, P2PCommunication } from "../../host/nodes.ts";
import { addCopy } from "../../passes/routes/layouts.ts";
import { makeId, at, invariant } from "../../support/invariant.ts";
import type { PipelineStep } from "./orders.ts";
import { type StageTransfer, transferName } from "./place-transfers.ts";
import { type PipelinedRank, tensorFor } from "./rank-program.ts";

export function receive(program: PipelinedRank, transfer: StageTransfer): void {
  const { stages, body, posts } = program;
  const { x, dy } = at(stages, transfer.stage);
  const buffer = tensorFor(program, transfer, transfer.kind === "forward" ? x : dy);
  const size = allocationSize(at(program.tensors, buffer));
  body.push({ kind: "Allocate", tensor: buffer, memory: "global", size, zeroInit: false, fresh: false });
  posts.set(transferName(transfer), post(program, transfer, "recv", buffer));
}

/** Does nothing if the step takes nothing from another rank. */
export function waitForReceived(program: PipelinedRank, { stage, microBatch, pass }: PipelineStep): void {
  if (pass === "weightGradient") return;
  const kind = pass === "forward" ? "forward" : "backward";
  waitFor(program, program.posts.get(transferName({ kind, stage, microBatch })));
}

export function send(program: PipelinedRank, transfer: StageTransfer): void {
  const { stages, sends } = program;
  const stage = transfer.kind === "forward" ? transfer.stage - 1 : transfer.stage + 1;
  const { y, dx } = at(stages, stage);
  const result = transfer.kind === "forward" ? y : dx;
  invariant(result !== null, "only the first stage has no gradient of its input", transfer);
  const buffer = tensorFor(program, { stage, microBatch: transfer.microBatch }, result);
  sends.set(transferName(transfer), post(program, transfer, "send", buffer));
}

/** Does nothing if it is waited for already, or was not sent. */
export function waitForSent(program: PipelinedRank, name: string): void {
  waitFor(program, program.sends.get(name));
  program.sends.delete(name);
}

function waitFor({ body }: PipelinedRank, target: ExprId | undefined): void {
  if (target !== undefined) body.push({ kind: "Wait", target });
}

/** Each device sends to its counterpart, the one at its place in the other mesh. */
function post(
  program: PipelinedRank,
  transfer: StageTransfer,
  type: P2PCommunication["type"],
  buffer: TensorId,
): ExprId {
  const { rank, stages, remote, body, late } = program;
  const sender = transfer.kind === "forward" ? transfer.stage - 1 : transfer.stage + 1;
  const [from, to] = [at(stages, sender), at(stages, transfer.stage)];
  const position = (type === "send" ? from : to).mesh.devices.indexOf(rank);
  const [root, receiver] = [at(from.mesh.devices, position), at(to.mesh.devices, position)];
  const id = makeId<ExprId>(program.exprCount++);
  if (late) {
    const peer = constant(type === "send" ? receiver : root);
    body.push({ kind: "P2PCommunication", id, type, buffer, peer, backend: "nccl" });
    return id;
  }
  // The other side's tensor, which this rank does not have.
  const side = type === "send" ? to : from;
  const key = `${transfer.kind} ${transfer.stage} ${type}`;
  const theirs =
    transfer.kind === "forward" ? (type === "send" ? side.x : side.y) : type === "send" ? side.dy : side.dx;
  const other = remote.get(key) ?? addCopy(program, side.tensorOf(theirs ?? side.x)).id;
  remote.set(key, other);
  const [input, output] = type === "send" ? [buffer, other] : [other, buffer];
  const team = [root, receiver];
  const ends = { input, output, team, root: constant(0) };
  body.push({ kind: "Communication", id, type: "SendRecv", ...ends, reduceOp: null, backend: "nccl" });
  return id;
}
