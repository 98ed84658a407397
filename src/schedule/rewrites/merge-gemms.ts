/**
 * Merges GEMMs whose operands and results are adjacent in memory and that share their other operands: the chunks of one
 * matmul. A larger GEMM computes at a higher rate, but starts only when its last chunk has arrived.
 *
 *     wait 1, a1 b -> c1; wait 2, a2 b -> c2        ->        wait 1, wait 2, [a1; a2] b -> [c1; c2]
 *
 * Groups follow the order of arrival: "1-3-4" merges the first alone, then three, then four, and then always four.
 * Chunks of a group that are not adjacent (a rotation that wraps around) make one GEMM per adjacent run.
 */
import type { Launch } from "../../commands/command.ts";
import { at } from "../../support/invariant.ts";
import { type Draft, type DraftNode, renameSync } from "../draft/draft.ts";
import { editRanks } from "../draft/edit-ranks.ts";
import { type Grouping, grouped } from "../draft/grouping.ts";
import { joinGemms, type GemmNode } from "../draft/join-gemms.ts";
import { conflict, type Memory } from "../draft/memory.ts";
import { isGemm } from "../draft/gemm-axes.ts";
import type { Rewrite } from "../rewrite.ts";

export const mergeGemms: Rewrite<Grouping> = {
  name: "merge-gemms",
  run: (program, grouping) => editRanks(program, (draft, { memory }) => mergeInDraft(draft, memory, grouping)),
};

function mergeInDraft(draft: Draft, memory: Memory, grouping: Grouping): Draft {
  let nodes = draft.nodes;
  for (const family of families(nodes, memory)) {
    for (const group of grouped(family, grouping)) {
      for (const joined of joinGemms(group, memory)) nodes = placeJoined(nodes, joined.parts, joined.command, memory);
    }
  }
  return nodes === draft.nodes ? draft : { ...draft, nodes };
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
 * The nodes with one in place of `parts`: at the first one's position if the others can move there, else at the last
 * one's; unchanged if neither works. The list stays in an order that completes on one queue.
 */
function placeJoined(
  nodes: readonly DraftNode[],
  parts: readonly GemmNode[],
  command: Launch,
  memory: Memory,
): readonly DraftNode[] {
  const ids = new Set(parts.map(({ id }) => id));
  const positions = parts.map((part) => nodes.findIndex(({ id }) => id === part.id));
  const [first, last] = [Math.min(...positions), Math.max(...positions)];
  const isFree = (from: number, to: number, part: GemmNode): boolean =>
    nodes.slice(from, to).every((other) => ids.has(other.id) || mayCross(part, other, memory));
  const goUp = parts.every((part, i) => isFree(first, at(positions, i), part));
  if (!goUp && !parts.every((part, i) => isFree(at(positions, i), last, part))) return nodes;
  const place = goUp ? first : last;
  const { id } = at(nodes, place);
  const joined: DraftNode = {
    ...at(nodes, place),
    command: { ...command, stream: at(nodes, place).command.stream },
    sources: parts.flatMap(({ sources }) => sources),
    sync: [...new Set(parts.flatMap(({ sync }) => sync))],
  };
  return renameSync(
    nodes.flatMap((node) => (node.id === id ? [joined] : ids.has(node.id) ? [] : [node])),
    new Map([...ids].map((part) => [part, [id]])),
  );
}

function mayCross(a: DraftNode, b: DraftNode, memory: Memory): boolean {
  if (a.sync.includes(b.id) || b.sync.includes(a.id)) return false;
  return !conflict(memory.touches(a.command), memory.touches(b.command));
}
