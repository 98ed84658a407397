/**
 * The host program of a rank of a pipeline: the passes of micro-batches in the order of its list, with sends and receives
 * between the stages. Lists of ranks that wait for each other make a deadlock, which the verifier finds.
 *
 *   forward 3 of stage 1     receive its input, run, send the output to stage 2
 *   backward 3 of stage 1    receive the gradient of the output, run, send that of the input to stage 0; add those of the
 *                            weights to the sums of earlier micro-batches
 */
import { call, reject } from "../../ir/ops/call.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { DeviceMesh } from "../../ir/device-mesh.ts";
import { type Tensor, allocationSize, type TensorId } from "../../ir/domain.ts";
import { layout, layoutOf, sameLayout } from "../../ir/layout.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import type { HostProgram, ExprId, P2PCommunication } from "../../host/nodes.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { at, makeId, invariant } from "../../support/invariant.ts";
import type { SavePolicy } from "../split-backward.ts";
import { placeTransfers, transferName, type StageTransfer } from "./place-transfers.ts";
import {
  beginRank,
  deliver,
  finishRank,
  hand,
  type PipelinedRank,
  appendPass,
  sumUp,
  tensorFor,
} from "./rank-program.ts";
import type { PipelineOrder, PipelineStep } from "./orders.ts";
import { type PipelineStage, stagePrograms } from "./stage-programs.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { addCopy } from "../../passes/routes/layouts.ts";

export interface PipelineRequest {
  readonly devices: number;
  /** The device whose host program is built. */
  readonly rank: number;
  /** As many lists as the pipeline has ranks. Each rank has `devices / order.length` devices, which share its stages. */
  readonly order: PipelineOrder;
  /**
   * A stage for one micro-batch on its mesh. The first input and the output are activations, alike in all stages that
   * send to each other; the other inputs are weights.
   */
  readonly stage: (place: { readonly stage: number; readonly mesh: DeviceMesh }) => Fusion;
  /** What the forward pass saves for the backward pass; "all" if omitted. */
  readonly save?: SavePolicy;
  /**
   * "early": receives are posted in the order in which data is made, on a communicator for each direction of two ranks.
   * "late": a receive is posted where it is needed, on one communicator of all ranks, after the sends and receives before
   * it, as PyTorch's schedules do. "early" if omitted.
   */
  readonly transfers?: "early" | "late";
  readonly lowering?: Partial<LoweringOptions>;
}

/**
 * Inputs of the program: the micro-batches [count, ..] of the first stage's input, those of the gradient of the last
 * stage's output, and the weights of all stages. Outputs: the micro-batches of the last stage's output, those of the
 * gradient of the first input, unless that has indices, and the gradients of all weights, summed over the micro-batches.
 * Throws `bad-argument`, and what `lower` and `gradients` throw.
 */
export function pipeline(request: PipelineRequest): HostProgram {
  const { devices, rank, order, stage, transfers = "early", save, lowering = {} } = request;
  const { owners, microBatches } = requireOrder(order);
  const width = devices / order.length;
  if (!Number.isInteger(width)) {
    reject(call("pipeline", { code: `{ devices: ${devices} }` }), {
      code: "bad-argument",
      message: "the ranks of the pipeline do not divide the devices",
      found: `${devices} devices for ${order.length} lists`,
      expected: "as many devices for each list",
      help: `run on a multiple of ${order.length} devices`,
    });
  }
  const stages = owners.map((owner, number): PipelineStage => {
    const mesh = new DeviceMesh(Array.from({ length: width }, (_, i) => owner * width + i));
    return stagePrograms(stage({ stage: number, mesh }), mesh, { ...(save === undefined ? {} : { save }), lowering });
  });
  stages.slice(1).forEach((each, i) => {
    requireFitting(at(stages, i), each, i);
  });
  const owner = Math.floor(rank / width);
  const late = transfers === "late";
  const program = beginRank(stages, { rank, owner, owners, microBatches, late, lowering });
  for (const placed of placeTransfers(order, owners, late)[owner] ?? []) {
    if (placed.kind === "step") runStep(program, placed.step);
    else if (placed.kind === "recv") receive(program, placed.transfer);
    else send(program, placed.transfer);
  }
  for (const sent of program.sends.keys()) waitForSent(program, sent);
  return finishRank(program);
}

function runStep(program: PipelinedRank, step: PipelineStep): void {
  const { stages, owners, owner } = program;
  const { stage, microBatch, pass } = step;
  const { y, dx, weights, passes } = at(stages, stage);
  waitForReceived(program, step);
  if (pass === "backward" || pass === "inputGradient") {
    // Of memory that may be used again: the next stage has used the output, and the one before an earlier gradient.
    waitForSent(program, transferName({ kind: "forward", stage: stage + 1, microBatch }));
    for (const sent of earlierGradients(program, stage)) waitForSent(program, sent);
  }
  appendPass(program, step);
  const [result, receiver] = pass === "forward" ? [y, stage + 1] : [pass === "weightGradient" ? null : dx, stage - 1];
  if (result !== null && owners[receiver] === undefined) deliver(program, step, result);
  else if (result !== null && owners[receiver] === owner) hand(program, step, result, receiver);
  for (const { gradient } of weights) {
    if (gradient !== null && passes[pass].results.includes(gradient)) sumUp(program, step, gradient);
  }
}

/** All gradients that the stage has sent and nothing has waited for, but the last one. */
function earlierGradients({ sends }: PipelinedRank, stage: number): readonly string[] {
  return [...sends.keys()].filter((name) => name.startsWith(`backward ${stage - 1} `)).slice(0, -1);
}

/** Throws `bad-argument`: what one stage sends is what the next one takes, in the same parts. */
function requireFitting(before: PipelineStage, after: PipelineStage, number: number): void {
  for (const [sent, taken] of [
    [before.tensorOf(before.y), after.tensorOf(after.x)],
    ...(after.dx === null ? [] : [[after.tensorOf(after.dx), before.tensorOf(before.dy)] as const]),
  ] as const) {
    if (areAlike(sent, taken)) continue;
    reject(call("pipeline", { code: "{ stage }" }), "bad-argument", `stages ${number} and ${number + 1} do not fit`, {
      found: `${printTensor(sent)} goes into ${printTensor(taken)}`,
      expected: "activations of one shape and dtype, cut alike among the devices of both stages",
      help: "annotate the output of each stage like the input of the next one",
    });
  }
}

function areAlike(sent: Tensor, taken: Tensor): boolean {
  const [from, to] = [layoutOf(sent), layoutOf(taken)];
  if (from === null || to === null || sent.dtype !== taken.dtype || from.axes.length !== to.axes.length) return false;
  const isSized = from.axes.every(({ extent }, axis) => sameScalar(extent, at(to.axes, axis).extent));
  return isSized && sameLayout(layout(to.mesh, from.axes, from.pending), to);
}

// What must hold of a pipeline's order before host programs can be built. Whether ranks wait for each other is not it.

function stepText({ stage, microBatch, pass }: PipelineStep): string {
  return `${pass} of micro-batch ${microBatch} in stage ${stage}`;
}

/**
 * The rank of each stage, and the number of micro-batches. Each stage is on one rank, and has a forward pass and then a
 * backward pass, or its two parts in turn, of each micro-batch. Throws `bad-argument`.
 */
function requireOrder(order: PipelineOrder): {
  readonly owners: readonly number[];
  readonly microBatches: number;
} {
  const steps = order.flatMap((list, rank) => list.map((step, position) => ({ ...step, rank, position })));
  const count = (numbers: readonly number[]): number => Math.max(0, ...numbers.map((each) => each + 1));
  const stages = count(steps.map(({ stage }) => stage));
  const microBatches = count(steps.map(({ microBatch }) => microBatch));
  const owners = new Map(steps.map(({ stage, rank }) => [stage, rank]));
  const seen = new Map<string, string[]>();
  for (const step of steps) {
    const { stage, microBatch, pass, rank, position } = step;
    const key = `${stage} ${microBatch}`;
    const before = [...(seen.get(key) ?? []), pass].join(", ");
    seen.set(key, before.split(", "));
    const isNext = ["forward", "forward, backward", "forward, inputGradient", "forward, inputGradient, weightGradient"];
    if (owners.get(stage) === rank && isNext.includes(before)) continue;
    const other = owners.get(stage) === rank ? null : owners.get(stage);
    refuse(
      `rank ${rank}, step ${position}: ${stepText(step)}`,
      other === null ? `${before} of this micro-batch` : `steps of stage ${stage} on rank ${other}, too`,
    );
  }
  for (let stage = 0; stage < stages; stage++) {
    for (let microBatch = 0; microBatch < microBatches; microBatch++) {
      const own = seen.get(`${stage} ${microBatch}`) ?? [];
      if (own.includes("backward") || own.includes("weightGradient")) continue;
      const where = owners.get(stage);
      const missing = own.length === 0 ? "forward" : own.includes("inputGradient") ? "weightGradient" : "backward";
      refuse(
        `${where === undefined ? "" : `rank ${where}: `}${stepText({ stage, microBatch, pass: missing })}`,
        "no such step",
      );
    }
  }
  if (stages === 0) refuse("the lists", "no steps");
  return { owners: Array.from({ length: stages }, (_, stage) => at([owners.get(stage) ?? 0], 0)), microBatches };
}

function refuse(where: string, found: string): never {
  reject(call("pipeline", { code: "{ order }" }), "bad-argument", `the order of the pipeline is not one at ${where}`, {
    found,
    expected:
      "each stage on one rank: forward, then backward, or inputGradient and weightGradient, of each micro-batch",
    help: "correct the list of the rank, or take one of pipelineOrders",
  });
}

// Sends and receives between the stages of a pipeline. A send is waited for before its memory is used again.

function receive(program: PipelinedRank, transfer: StageTransfer): void {
  const { stages, body, posts } = program;
  const { x, dy } = at(stages, transfer.stage);
  const buffer = tensorFor(program, transfer, transfer.kind === "forward" ? x : dy);
  const size = allocationSize(at(program.tensors, buffer));
  body.push({ kind: "Allocate", tensor: buffer, memory: "global", size, zeroInit: false, fresh: false });
  posts.set(transferName(transfer), post(program, transfer, "recv", buffer));
}

/** Does nothing if the step takes nothing from another rank. */
function waitForReceived(program: PipelinedRank, { stage, microBatch, pass }: PipelineStep): void {
  if (pass === "weightGradient") return;
  const kind = pass === "forward" ? "forward" : "backward";
  waitFor(program, program.posts.get(transferName({ kind, stage, microBatch })));
}

function send(program: PipelinedRank, transfer: StageTransfer): void {
  const { stages, sends } = program;
  const stage = transfer.kind === "forward" ? transfer.stage - 1 : transfer.stage + 1;
  const { y, dx } = at(stages, stage);
  const result = transfer.kind === "forward" ? y : dx;
  invariant(result !== null, "only the first stage has no gradient of its input", transfer);
  const buffer = tensorFor(program, { stage, microBatch: transfer.microBatch }, result);
  sends.set(transferName(transfer), post(program, transfer, "send", buffer));
}

/** Does nothing if it is waited for already, or was not sent. */
function waitForSent(program: PipelinedRank, name: string): void {
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
