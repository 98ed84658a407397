/**
 * Moves GEMMs that no other rank waits for after those that another rank waits for. In a reduce-scatter, the own chunk
 * is then computed while the others are in flight.
 *
 *     own GEMM, GEMM 1, send 1, GEMM 2, send 2    ->    GEMM 1, send 1, GEMM 2, send 2, own GEMM
 */
import { isBlocking, isSignalling } from "../../commands/command.ts";
import { at } from "../../support/invariant.ts";
import { type Dependences, dependentsOf } from "../draft/order/dependences.ts";
import type { Draft, DraftNode } from "../draft/draft.ts";
import type { EditContext } from "../draft/edit-ranks.ts";
import { isGemm } from "../draft/gemm-axes.ts";
import { draftRewrite, type Rewrite } from "../rewrite.ts";

export const ownChunkLast: Rewrite<true> = draftRewrite("own-last", () => editDraft);

function editDraft(draft: Draft, context: EditContext): Draft {
  const { nodes } = draft;
  const dependences = context.dependences.of(nodes);
  const leads = leadsToSignal(nodes, dependences);
  const after = dependentsOf(dependences.before);
  const kernelOf = ({ command }: DraftNode): number | null =>
    command.kind === "launch" && isGemm(at(context.memory.kernels, command.kernel)) ? command.kernel : null;
  const lastSent = new Map<number, number>();
  for (const [position, node] of nodes.entries()) {
    const kernel = kernelOf(node);
    if (kernel !== null && leads.has(position)) lastSent.set(kernel, position);
  }
  const movedBehind = new Map<number, number>();
  for (const [position, node] of nodes.entries()) {
    const kernel = kernelOf(node);
    const target = kernel === null || leads.has(position) ? undefined : lastSent.get(kernel);
    if (target === undefined || target < position) continue;
    const moving = followers(position, target, after);
    if (moving.some((other) => isBlocking(at(nodes, other).command))) continue;
    for (const other of moving) movedBehind.set(other, target);
  }
  if (movedBehind.size === 0) return draft;
  const key = (position: number): number => (movedBehind.get(position) ?? position - 0.5) + 0.5;
  const order = nodes.map((_, position) => position).sort((a, b) => key(a) - key(b) || a - b);
  return { ...draft, nodes: order.map((position) => at(nodes, position)) };
}

/** Positions of nodes that a signal or a transfer depends on. */
function leadsToSignal(nodes: readonly DraftNode[], { before, sequence }: Dependences): ReadonlySet<number> {
  const leads = new Set<number>();
  for (const vertex of sequence.toReversed()) {
    const node = nodes[vertex];
    if (!leads.has(vertex) && (node === undefined || !isSignalling(node.command))) continue;
    for (const other of at(before, vertex)) leads.add(other);
  }
  return leads;
}

/**
 * The position, and the positions up to `last` that depend on it directly or indirectly. Only signals depend on joins
 * of kernels, and none on these.
 */
function followers(first: number, last: number, after: readonly (readonly number[])[]): readonly number[] {
  const found = new Set([first]);
  for (const position of found) for (const other of at(after, position)) if (other <= last) found.add(other);
  return [...found];
}
