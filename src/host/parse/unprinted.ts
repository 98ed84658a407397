/** What goes without saying in old dumps: words of later ones, meshes, allocations, and chunks that a loop works on. */
import {
  allocationSize,
  type IterDomain,
  type IterDomainId,
  type Tensor,
  type TensorId,
  withoutReductions,
} from "../../ir/domain.ts";
import { type Op, renamedOp } from "../../ir/ops/op.ts";
import { at, makeId } from "../../support/invariant.ts";
import type { Allocate, ForLoop, HostProgram, ShardByStream, Statement } from "../nodes.ts";
import type { DumpSource } from "../syntax/text/source.ts";
import type { SplitReading } from "../syntax/values/split-axes.ts";
import { isOp, walk, writesOf } from "../traverse.ts";

/** Before September 2024 (#2889) tensors have no dtype, and communications say `Input=` and `Output=`. */
export function inLaterWords(source: DumpSource): DumpSource {
  if (!/\bT\d+_[lg]\[/u.test(source.text)) return source;
  const text = source.text.replaceAll(/\b(?:Input|Output)=(?=T\d)/gu, (word) => word.toLowerCase());
  return { ...source, text };
}

/**
 * What goes without saying in such a dump: tensors without a mesh are on all devices that the others name, and
 * communications allocate their outputs.
 */
export function withUnprinted({ tensors, inputs, body, ...program }: HostProgram): HostProgram {
  const [mesh = null] = tensors
    .flatMap((tensor) => tensor.mesh ?? [])
    .toSorted((a, b) => b.devices.length - a.devices.length);
  const placed = tensors.map((tensor) => ({ ...tensor, mesh: tensor.mesh ?? mesh }));
  const bound = new Set(inputs);
  const allocations: Allocate[] = [];
  for (const statement of walk(body)) {
    const writes = writesOf(statement);
    const isPosted = statement.kind === "Communication";
    for (const tensor of isPosted ? writes.filter((each) => !bound.has(each)) : []) {
      allocations.push(allocationOf(at(placed, tensor)));
    }
    for (const tensor of writes) bound.add(tensor);
  }
  const allocated = new Set(allocations.map(({ tensor }) => tensor));
  return {
    ...program,
    tensors: placed.map((tensor) => (allocated.has(tensor.id) ? { ...tensor, memory: "global" } : tensor)),
    inputs,
    body: [...allocations, ...body],
  };
}

/**
 * Before nvFuser had ShardByStream (2025-11), an op in a loop read and wrote the chunks of the tensors that are cut by a
 * Stream axis, without a statement that says it. An output of the program that is written so is allocated before.
 */
export function withChunks(program: HostProgram, splits: SplitReading | null): HostProgram {
  if (splits === null || [...walk(program.body)].some(({ kind }) => kind === "ShardByStream")) return program;
  const tensors = [...program.tensors];
  const allocated: Allocate[] = [];
  let axes: number = program.iterDomainCount;
  const viewOf = (tensor: Tensor, cut: Cut, index: ForLoop["index"]): ShardByStream => {
    const renumbered = new Map<IterDomainId, IterDomain>();
    const own = (axis: IterDomain): IterDomain => {
      const known = renumbered.get(axis.id) ?? { ...axis, id: makeId<IterDomainId>(axes++) };
      renumbered.set(axis.id, known);
      return known;
    };
    const { logical, loop } = tensor.domain;
    const axis = withoutReductions(logical).findIndex(({ id }) => id === cut.whole);
    const chunk = withoutReductions(logical).map((each) => own(each.id === cut.whole ? cut.inner : each));
    const domain = { logical: chunk, loop: withoutReductions(loop).map(own), transforms: [], allocation: null };
    const output = makeId<TensorId>(tensors.length);
    tensors.push({ ...tensor, id: output, memory: "local", domain });
    return { kind: "ShardByStream", input: tensor.id, output, axis, parts: cut.outer.extent, index, swizzled: false };
  };
  const inChunks = (op: Op, index: ForLoop["index"]): readonly Statement[] => {
    const views = new Map<TensorId, ShardByStream>();
    for (const id of new Set([...op.inputs, op.output])) {
      const tensor = at(tensors, id);
      const cut = cutOf(tensor);
      if (cut === null) continue;
      views.set(id, viewOf(tensor, cut, index));
      if (id !== op.output || program.inputs.includes(id) || allocated.some((each) => each.tensor === id)) continue;
      allocated.push(allocationOf(tensor));
    }
    return [...views.values(), renamedOp(op, (id) => views.get(id)?.output ?? id)];
  };
  const body = program.body.map((statement): Statement => {
    if (statement.kind !== "ForLoop") return statement;
    const inside = statement.body.flatMap((each) => (isOp(each) ? inChunks(each, statement.index) : [each]));
    return { ...statement, body: inside };
  });
  if (tensors.length === program.tensors.length) return program;
  return { ...program, tensors, body: [...allocated, ...body], iterDomainCount: axes };
}

function allocationOf(tensor: Tensor): Allocate {
  const size = allocationSize(tensor);
  return { kind: "Allocate", tensor: tensor.id, memory: "global", size, zeroInit: false, fresh: false };
}

interface Cut {
  readonly whole: IterDomainId;
  readonly outer: IterDomain;
  readonly inner: IterDomain;
}

/** How a Stream axis cuts the tensor; null if none does. */
function cutOf({ domain: { loop, transforms } }: Tensor): Cut | null {
  for (const each of transforms) {
    const outer = each.kind === "split" ? loop.find(({ id }) => id === each.outer) : undefined;
    const inner = each.kind === "split" ? loop.find(({ id }) => id === each.inner) : undefined;
    if (each.kind !== "split" || outer?.parallelType !== "Stream" || inner === undefined) continue;
    return { whole: each.input, outer, inner };
  }
  return null;
}
