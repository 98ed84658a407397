/**
 * The host program of one rank of a pipeline under construction: passes of stages, whose tensors get new numbers for each
 * micro-batch, one after the other.
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { outputsOf, renamedOp } from "../../ir/ops/op.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import type { ExprId, HostProgram, Statement } from "../../host/nodes.ts";
import { deallocate } from "../../passes/buffers/deallocate.ts";
import { addAxis, copyTensor, type TensorEdit } from "../../passes/edit/tensor-edit.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { validate } from "../../passes/pipeline.ts";
import { addCopy } from "../../passes/routes/layouts.ts";
import { at, invariant, getOrMake } from "../../support/invariant.ts";
import { lowerAfter } from "../lower-regions.ts";
import { resolveLoweringOptions } from "../lower.ts";
import type { PipelineStep } from "./orders.ts";
import type { PipelineStage } from "./stage-programs.ts";

interface RankPlace {
  readonly rank: number;
  /** The rank of the pipeline that has this device. */
  readonly owner: number;
  /** By stage. */
  readonly owners: readonly number[];
  readonly microBatches: number;
  /** See `PipelineRequest.transfers`. */
  readonly late: boolean;
}

export interface PipelinedRank extends RankPlace, TensorEdit {
  readonly stages: readonly PipelineStage[];
  readonly options: LoweringOptions;
  tensors: Tensor[];
  streams: HostProgram["streams"];
  units: HostProgram["units"];
  exprCount: number;
  readonly scalarCount: number;
  readonly body: Statement[];
  readonly inputs: readonly TensorId[];
  readonly outputs: readonly TensorId[];
  /** The tensors of the program's inputs and outputs, by stage and the number that the stage gives them. */
  readonly whole: ReadonlyMap<string, TensorId>;
  /** By stage and micro-batch: the tensors that passes share, by the number that the stage gives them. */
  readonly shared: Map<string, Map<TensorId, TensorId>>;
  /** The sums of weight gradients so far. */
  readonly sums: Map<string, { readonly tensor: TensorId; readonly count: number }>;
  /** The communications of receives that are posted, and of sends that nothing has waited for. */
  readonly posts: Map<string, ExprId>;
  readonly sends: Map<string, ExprId>;
  /** Tensors of other ranks that communications name. */
  readonly remote: Map<string, TensorId>;
}

export function beginRank(
  stages: readonly PipelineStage[],
  { lowering, ...place }: RankPlace & { readonly lowering: Partial<LoweringOptions> },
): PipelinedRank {
  const edit: TensorEdit = { tensors: [], iterDomainCount: 0 };
  const whole = new Map<string, TensorId>();
  const add = (stage: number, id: TensorId | null, isBatched: boolean): readonly TensorId[] => {
    if (id === null) return [];
    const made = addCopy(edit, at(stages, stage).tensorOf(id));
    whole.set(`${stage} ${id}`, made.id);
    if (isBatched) edit.tensors[made.id] = batched(edit, made, place.microBatches);
    return [made.id];
  };
  const end = stages.length - 1;
  const inputs = [
    ...add(0, at(stages, 0).x, true),
    ...add(end, at(stages, end).dy, true),
    ...stages.flatMap(({ weights }, stage) => weights.flatMap(({ weight }) => add(stage, weight, false))),
  ];
  const outputs = [
    ...add(end, at(stages, end).y, true),
    ...add(0, at(stages, 0).dx, true),
    ...stages.flatMap(({ weights }, stage) => weights.flatMap(({ gradient }) => add(stage, gradient, false))),
  ];
  return {
    ...place,
    ...edit,
    stages,
    options: resolveLoweringOptions(lowering),
    streams: [],
    units: [],
    exprCount: 0,
    scalarCount: Math.max(...stages.map(({ passes }) => passes.backward.fusion.scalarCount)),
    body: [],
    inputs,
    outputs,
    whole,
    shared: new Map(),
    sums: new Map(),
    posts: new Map(),
    sends: new Map(),
    remote: new Map(),
  };
}

/** The tensor with an axis of the micro-batches in front. */
function batched(edit: TensorEdit, tensor: Tensor, microBatches: number): Tensor {
  const axis = addAxis(edit, { extent: constant(microBatches), iterType: "iteration" });
  const { logical, transforms, loop, allocation } = tensor.domain;
  const order = allocation === null ? null : [axis, ...allocation];
  return { ...tensor, domain: { logical: [axis, ...logical], transforms, loop: [axis, ...loop], allocation: order } };
}

type Place = Pick<PipelineStep, "stage" | "microBatch">;

/**
 * The tensor that has, for a micro-batch, what passes of the stage call `id`: a weight of the program, a slice of an input
 * or output that has all micro-batches, or a new one.
 */
export function tensorFor(program: PipelinedRank, { stage, microBatch }: Place, id: TensorId): TensorId {
  const { stages, whole, shared, body } = program;
  const own = getOrMake(shared, `${stage} ${microBatch}`, () => new Map<TensorId, TensorId>());
  const known = own.get(id);
  if (known !== undefined) return known;
  const { x, y, dx, dy, weights, passes, tensorOf } = at(stages, stage);
  const given = whole.get(`${stage} ${id}`);
  if (given !== undefined && weights.some(({ weight }) => weight === id)) return given;
  const made = copyTensor(program, named(tensorOf(id), { x, y, dy, dx }, { stage, microBatch })).id;
  own.set(id, made);
  // A view takes the memory of its source, and is copied into its slice (see deliver).
  const isWritten = [passes.forward, passes.backward].every(({ fusion }) => !isViewIn(fusion, id));
  if (given !== undefined && (id === x || id === dy || ((id === y || id === dx) && isWritten)))
    body.push({ kind: "HirAliasSelect", input: given, output: made, axis: 0, index: constant(microBatch) });
  return made;
}

function isViewIn({ ops, inputs }: FusionData, id: TensorId): boolean {
  const op = ops.find((each) => outputsOf(each).includes(id));
  return op === undefined ? inputs.includes(id) : rowOf(op).isView || op.kind === "Set";
}

function named(tensor: Tensor, ends: Readonly<Record<string, TensorId | null>>, { stage, microBatch }: Place): Tensor {
  const words: Readonly<Record<string, string>> = { dx: "gradient of x", dy: "gradient of y" };
  const end = Object.keys(ends).find((each) => ends[each] === tensor.id);
  if (end === undefined) return tensor;
  const name = `${words[end] ?? end} of stage ${stage}, micro-batch ${microBatch}`;
  return { ...tensor, origin: { ...tensor.origin, name } };
}

/** Appends the statements of a pass for one micro-batch. */
export function appendPass(program: PipelinedRank, step: PipelineStep): void {
  const { rank, options, stages, body, scalarCount } = program;
  const { fusion, results } = at(stages, step.stage).passes[step.pass];
  const ends = new Map<TensorId, TensorId>();
  for (const id of fusion.inputs) ends.set(id, tensorFor(program, step, id));
  for (const [i, id] of results.entries()) ends.set(at(fusion.outputs, i), tensorFor(program, step, id));
  const idOf = (id: TensorId): TensorId => getOrMake(ends, id, () => copyTensor(program, at(fusion.tensors, id)).id);
  const ops = fusion.ops.map((op) => renamedOp(op, idOf));
  const [inputs, outputs] = [fusion.inputs.map(idOf), fusion.outputs.map(idOf)];
  const { tensors, iterDomainCount } = program;
  const own: FusionData = { kind: "Fusion", tensors, ops, inputs, outputs, iterDomainCount, scalarCount };
  const host = lowerAfter(program, own, { rank, options });
  program.tensors = [...host.tensors];
  program.iterDomainCount = host.iterDomainCount;
  program.streams = host.streams;
  program.units = host.units;
  program.exprCount = host.exprCount;
  body.push(...host.body);
}

/** The result becomes part of the output that has all micro-batches. */
export function deliver(program: PipelinedRank, step: PipelineStep, id: TensorId): void {
  const { whole, body, stages } = program;
  const made = tensorFor(program, step, id);
  if (body.some((each) => each.kind === "HirAliasSelect" && each.output === made)) return;
  const input = whole.get(`${step.stage} ${id}`);
  invariant(input !== undefined, "an output has all micro-batches", step);
  const output = addCopy(program, at(stages, step.stage).tensorOf(id)).id;
  body.push({ kind: "HirAliasSelect", input, output, axis: 0, index: constant(step.microBatch) });
  body.push({ kind: "Set", inputs: [made], output });
}

/** The next stage is on the same rank: its end is this result. */
export function hand(program: PipelinedRank, step: PipelineStep, id: TensorId, receiver: number): void {
  const { x, dy } = at(program.stages, receiver);
  const made = tensorFor(program, step, id);
  const key = `${receiver} ${step.microBatch}`;
  const own = program.shared.get(key) ?? new Map<TensorId, TensorId>();
  program.shared.set(key, own.set(receiver > step.stage ? x : dy, made));
}

/** Adds a weight's gradient to those of the micro-batches before. The last sum is the program's output. */
export function sumUp(program: PipelinedRank, step: PipelineStep, gradient: TensorId): void {
  const { sums, whole, microBatches, body, stages } = program;
  const key = `${step.stage} ${gradient}`;
  const term = tensorFor(program, step, gradient);
  const before = sums.get(key);
  const count = (before?.count ?? 0) + 1;
  const total = count < microBatches ? undefined : whole.get(key);
  if (before === undefined) {
    sums.set(key, { tensor: term, count });
    if (total !== undefined) body.push({ kind: "Set", inputs: [term], output: total });
    return;
  }
  const output = total ?? addCopy(program, at(stages, step.stage).tensorOf(gradient)).id;
  sums.set(key, { tensor: output, count });
  body.push({ kind: "Binary", op: "add", inputs: [before.tensor, term], output });
}

/** The program, which frees each tensor after its last use. Throws the findings of validation. */
export function finishRank(program: PipelinedRank): HostProgram {
  const { rank, options, tensors, inputs, outputs, streams, units, body, iterDomainCount, scalarCount, exprCount } =
    program;
  const tables = { tensors, inputs, outputs, streams, units, iterDomainCount, scalarCount, exprCount };
  const host = deallocate.run({ kind: "HostProgram", ...tables, body }, { rank, options });
  validate("communicating", host);
  return host;
}
