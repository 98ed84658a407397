/**
 * Merges GEMMs whose operands and results are adjacent in memory and that share their other operands: the chunks of one
 * matmul. A larger GEMM computes at a higher rate, but starts only when its last chunk has arrived.
 *
 *     wait 1, a1 b -> c1; wait 2, a2 b -> c2        ->        wait 1, wait 2, [a1; a2] b -> [c1; c2]
 *
 * Groups follow the order of arrival: "1-3-4" merges the first alone, then three, then four, and then always four.
 * Chunks of a group that are not adjacent (a rotation that wraps around) make one GEMM per adjacent run. A group of all
 * chunks of a loop is one GEMM: order-slots.ts makes them adjacent.
 */
import type { Launch } from "../../commands/command.ts";
import { at, invariant } from "../../support/invariant.ts";
import { type Draft, type DraftNode, renameSync } from "../draft/draft.ts";
import { type Grouping, grouped } from "../draft/grouping.ts";
import { joinGemms, type GemmNode } from "../draft/join-gemms.ts";
import type { Memory } from "../draft/memory/memory.ts";
import { conflict } from "../draft/memory/touch.ts";
import { isGemm } from "../draft/gemm-axes.ts";
import { idFinder } from "../draft/order/pasts.ts";
import { draftRewrite, type Rewrite } from "../rewrite.ts";
import { orderSlots } from "./order-slots.ts";

export const mergeGemms: Rewrite<Grouping> = draftRewrite(
  "merge-gemms",
  (grouping) =>
    (draft, { memory }) =>
      mergeInDraft(draft, memory, grouping),
  (program, grouping) => orderSlots(program, at(grouping, 0)),
);

function mergeInDraft(draft: Draft, memory: Memory, grouping: Grouping): Draft {
  const merging = createMerging(draft.nodes, memory);
  for (const family of families(draft.nodes, memory)) {
    for (const group of grouped(family, grouping)) {
      for (const joined of joinGemms(group, memory)) placeJoined(merging, joined.parts, joined.command);
    }
  }
  const { ids, nodes } = merging;
  if (ids.size === 0) return draft;
  return {
    ...draft,
    nodes: renameSync(
      nodes.flatMap((node) => node ?? []),
      ids,
    ),
  };
}

/** The nodes, edited in place: a merged GEMM is one of its parts' positions, and the others are null. */
interface Merging {
  readonly nodes: (DraftNode | null)[];
  readonly positionOf: ReadonlyMap<number, number>;
  /** The node that now stands for a part. */
  readonly ids: Map<number, readonly number[]>;
  readonly mayCross: (a: DraftNode, b: DraftNode) => boolean;
}

function createMerging(nodes: readonly DraftNode[], memory: Memory): Merging {
  const hasId = idFinder();
  const relies = ({ sync, pasts }: DraftNode, { id }: DraftNode): boolean =>
    sync.includes(id) || pasts.some((past) => hasId(past, id));
  return {
    nodes: [...nodes],
    positionOf: new Map(nodes.map(({ id }, position) => [id, position])),
    ids: new Map(),
    mayCross: (a, b) =>
      !relies(a, b) && !relies(b, a) && !conflict(memory.touches(a.command), memory.touches(b.command)),
  };
}

/**
 * GEMMs of one kernel, in list order, that may be chunks of one matmul: they write one buffer, or read the same two.
 */
function families(nodes: readonly DraftNode[], memory: Memory): Iterable<readonly GemmNode[]> {
  const found = new Map<string, GemmNode[]>();
  for (const node of nodes) {
    const { command } = node;
    if (command.kind !== "launch" || !isGemm(at(memory.kernels, command.kernel))) continue;
    const { kernel, inputs, outputs } = command;
    const keys = [
      `${kernel} to ${at(outputs, 0).buffer}`,
      `${kernel} of ${inputs.map(({ buffer }) => buffer).join(" ")}`,
    ];
    const family = keys.map((key) => found.get(key)).find((known) => known !== undefined) ?? [];
    for (const key of keys) if (!found.has(key)) found.set(key, family);
    family.push({ ...node, command });
  }
  return new Set(found.values());
}

/**
 * Puts one node in place of `parts`: at the first one's position if the others can move there, else at the last one's.
 * Changes nothing if neither works. The list stays in an order that completes on one queue.
 */
function placeJoined({ nodes, positionOf, ids, mayCross }: Merging, parts: readonly GemmNode[], command: Launch): void {
  const own = new Set(parts.map(({ id }) => id));
  const positions = parts.map(({ id }) => {
    const position = positionOf.get(id);
    invariant(position !== undefined, "a merged GEMM is in the draft", { id });
    return position;
  });
  const [first, last] = [Math.min(...positions), Math.max(...positions)];
  const isFree = (from: number, to: number, part: GemmNode): boolean => {
    for (let position = from; position < to; position++) {
      const other = nodes[position];
      if (other !== null && other !== undefined && !own.has(other.id) && !mayCross(part, other)) return false;
    }
    return true;
  };
  const goUp = parts.every((part, i) => isFree(first, at(positions, i), part));
  if (!goUp && !parts.every((part, i) => isFree(at(positions, i), last, part))) return;
  const place = goUp ? first : last;
  const kept = nodes[place];
  invariant(kept !== null && kept !== undefined, "a GEMM is merged once", { place });
  for (const position of positions) nodes[position] = null;
  nodes[place] = {
    ...kept,
    command: { ...command, stream: kept.command.stream },
    sources: parts.flatMap(({ sources }) => sources),
    sync: [...new Set(parts.flatMap(({ sync }) => sync))],
    pasts: [...new Set(parts.flatMap(({ pasts }) => pasts))],
  };
  for (const part of own) ids.set(part, [kept.id]);
}
