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
import type { Tensor } from "../../ir/domain.ts";
import { layout, layoutOf, sameLayout } from "../../ir/layout.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import type { HostProgram } from "../../host/nodes.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { at } from "../../support/invariant.ts";
import type { SavePolicy } from "../split-backward.ts";
import { placeTransfers, transferName } from "./place-transfers.ts";
import { beginRank, deliver, finishRank, hand, type PipelinedRank, appendPass, sumUp } from "./rank-program.ts";
import type { PipelineOrder, PipelineStep } from "./orders.ts";
import { requireOrder } from "./require-order.ts";
import { type PipelineStage, stagePrograms } from "./stage-programs.ts";
import { receive, send, waitForReceived, waitForSent } from "./transfers.ts";

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
