/**
 * Gives an intermediate of a single Stream loop one slot per worker stream instead of one slice per iteration.
 *
 *   T1[istreamIdx{64}, M] = ALLOCATE(...)
 *   FOR streamIdx: ...; T2 = HirAliasSelect( T1, axis = istreamIdx{64}, index = streamIdx ); T2 = matmul(...); ...
 * becomes
 *   T1[iS{min(numberOfStreams, 64)}, M] = ALLOCATE(...)
 *   FOR streamIdx: ...; T2 = HirAliasSelect( T1, ..., index = ( streamIdx % numberOfStreams ) ); T2 = matmul(...); ...
 *
 * iteration-buffers.ts finds these buffers and explains why no Wait is needed. nvFuser has no such pass (#5525).
 */
import {
  allocationSize,
  type IterDomain,
  type IterDomainId,
  type Tensor,
  type TensorDomain,
  type TensorId,
} from "../../ir/domain.ts";
import { binary, named, type Scalar } from "../../ir/scalar/scalar.ts";
import { isConstant, sameScalar } from "../../ir/scalar/fold.ts";
import type { ForLoop, HirAliasSelect, HostProgram, Statement } from "../../host/nodes.ts";
import { accessesOf, walk } from "../../host/traverse.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import { iterationBuffers, slotIndex, tensorsWithMemory } from "./iteration-buffers.ts";
import type { Pass } from "../pass.ts";

export const shrinkStreamBuffers: Pass<"communicating", "communicating"> = {
  name: "shrink-stream-buffers",
  from: "communicating",
  to: "communicating",
  run: (program, { options }) => {
    if (!options.shrink) return program;
    const tensors = [...program.tensors];
    const slots = new Map<HirAliasSelect, Scalar>();
    let { iterDomainCount } = program;
    const shrunk = new Set<TensorId>();
    const withMemory = tensorsWithMemory(program);
    for (const [loop, candidates] of candidatesOf(program)) {
      for (const { tensor, axis, slices } of iterationBuffers(program, loop, candidates, withMemory)) {
        const whole = at(tensors, tensor);
        const changed = withSlots(whole, axis, loop, makeId<IterDomainId>(iterDomainCount));
        if (changed === null) continue;
        iterDomainCount++;
        tensors[tensor] = changed;
        shrunk.add(tensor);
        for (const slice of slices) slots.set(slice, slotIndex(loop));
      }
    }
    if (shrunk.size === 0) return program;
    const body = program.body.map((statement) => rewrite(statement, slots, shrunk, tensors));
    return { ...program, tensors, iterDomainCount, body } satisfies HostProgram;
  },
};

/**
 * For each loop, the tensors that are allocated at top level and used only in that loop. Inputs and outputs are
 * excluded. Outside the loop, only a Deallocate may name them or their slices.
 */
function candidatesOf(program: HostProgram): ReadonlyMap<ForLoop, ReadonlySet<TensorId>> {
  const allocated = new Set<TensorId>();
  const users = new Map<TensorId, Set<Statement>>();
  const sliceOf = new Map<TensorId, TensorId>();
  for (const statement of program.body) {
    if (statement.kind === "Allocate" && !statement.zeroInit) allocated.add(statement.tensor);
    if (statement.kind === "Allocate" || statement.kind === "Deallocate") continue;
    const use = (tensor: TensorId): void => {
      const known = users.get(tensor);
      if (known === undefined) users.set(tensor, new Set([statement]));
      else known.add(statement);
    };
    for (const inner of walk([statement])) {
      if (inner.kind === "HirAliasSelect") sliceOf.set(inner.output, inner.input);
      const { reads, writes } = accessesOf(inner);
      reads.forEach(use);
      writes.forEach(use);
    }
  }
  for (const [slice, statements] of users) {
    for (let owner = sliceOf.get(slice); owner !== undefined; owner = sliceOf.get(owner)) {
      statements.forEach((statement) => users.get(owner)?.add(statement));
    }
  }
  const bound = new Set<TensorId>([...program.inputs, ...program.outputs]);
  const candidates = new Map<ForLoop, Set<TensorId>>();
  for (const tensor of allocated) {
    const [user, other] = users.get(tensor) ?? [];
    if (user?.kind !== "ForLoop" || other !== undefined || bound.has(tensor)) continue;
    candidates.set(user, (candidates.get(user) ?? new Set()).add(tensor));
  }
  return candidates;
}

/** The tensor with slots along `axis`; null if it has no slice per iteration, or if the axis is split or merged. */
function withSlots(tensor: Tensor, axis: number, loop: ForLoop, id: IterDomainId): Tensor | null {
  const { logical, loop: loopDomain, allocation, transforms } = tensor.domain;
  const sliced = at(logical, axis);
  const perIteration = isConstant(loop.start, 0) && isConstant(loop.step, 1) && sameScalar(sliced.extent, loop.stop);
  const domains = [loopDomain, ...(allocation === null ? [] : [allocation])];
  const isWhole = domains.every((axes) => axes.some((each) => each.id === sliced.id));
  if (!perIteration || !isWhole || sliced.iterType !== "iteration" || isConstant(sliced.extent, 1)) return null;
  const extent = binary("min", named("numberOfStreams"), sliced.extent);
  const slotAxis: IterDomain = { ...sliced, id, extent, parallelType: "Serial" };
  const replaced = (axes: readonly IterDomain[]): IterDomain[] =>
    axes.map((each) => (each.id === sliced.id ? slotAxis : each));
  const domain: TensorDomain = {
    logical: replaced(logical),
    transforms,
    loop: replaced(loopDomain),
    allocation: allocation === null ? null : replaced(allocation),
  };
  return { ...tensor, domain };
}

function rewrite(
  statement: Statement,
  slots: ReadonlyMap<HirAliasSelect, Scalar>,
  shrunk: ReadonlySet<TensorId>,
  tensors: readonly Tensor[],
): Statement {
  const inside = (body: readonly Statement[]): Statement[] =>
    body.map((inner) => rewrite(inner, slots, shrunk, tensors));
  switch (statement.kind) {
    case "Allocate":
      return shrunk.has(statement.tensor)
        ? { ...statement, size: allocationSize(at(tensors, statement.tensor)) }
        : statement;
    case "HirAliasSelect": {
      const index = slots.get(statement);
      return index === undefined ? statement : { ...statement, index };
    }
    case "ForLoop":
      return { ...statement, body: inside(statement.body) };
    case "IfThenElse":
      return { ...statement, then: inside(statement.then), else: inside(statement.else) };
    default:
      return statement;
  }
}
