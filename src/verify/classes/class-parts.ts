/**
 * The memory accesses of the representatives' commands, moved into the buffers of representatives. If a command of
 * representative r touches a buffer of another rank q, and the symmetry g takes representative p to q, the access is
 * recorded as one of rank g⁻¹(r) to p's buffer. A node has one part for each rank as which it is recorded.
 */
import { accesses, type Accesses } from "../../commands/accesses.ts";
import type { Region } from "../../commands/region.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { boundBuffers } from "../check/blocks.ts";
import { createTableRows, type RegionTable, touchesMemory, wholeBuffer } from "../check/region-table.ts";
import { createIntList } from "../order/growable.ts";
import type { RankGroup } from "./rank-group.ts";

export interface RepresentativeNodes {
  readonly program: Program;
  readonly group: RankGroup;
  readonly representatives: readonly number[];
  readonly nodeCount: number;
  readonly kind: Uint8Array;
  /** The event (counted over all representatives), the slot of `frame`, the participant, or the buffer; else -1. */
  readonly argument: Int32Array;
}

export interface Parts {
  /** Parts start[n] to start[n + 1] - 1 are those of node n. */
  readonly start: Int32Array;
  /** By part: the element that takes the representative to the rank that it is noted as. */
  readonly element: Int32Array;
  /** The kind and argument of the node, by part. */
  readonly kind: Uint8Array;
  readonly argument: Int32Array;
  /** By part, of regions in the representatives' buffers. */
  readonly table: RegionTable;
}

export function createParts({
  program,
  group,
  representatives,
  nodeCount,
  kind,
  argument,
}: RepresentativeNodes): Parts {
  const { inputs, outputs } = boundBuffers(program.buffers, program.ranks.length);
  const start = new Int32Array(nodeCount + 1);
  const element = createIntList();
  const nodeOf = createIntList();
  const pieces: { readonly reads: readonly Region[]; readonly writes: readonly Region[] }[] = [];
  const { elements, inverse, elementTo } = group;
  const ownerOf = (buffer: number): number => at(program.buffers, buffer).rank;
  const isOfRepresentative = ({ buffer }: Region): boolean => at(elementTo, ownerOf(buffer)) === 0;
  let node = 0;
  const add = (as: number, piece: Accesses): void => {
    pieces.push(piece);
    element.push(as);
    nodeOf.push(node);
  };
  const close = (): void => {
    start[++node] = pieces.length;
  };
  for (const rank of representatives) {
    add(0, { reads: [], writes: at(inputs, rank).map(wholeBuffer) });
    close();
    for (const [index, command] of at(program.ranks, rank).commands.entries()) {
      if (touchesMemory(command.kind)) {
        const own = accesses(program, rank, index);
        const touched = [...own.reads, ...own.writes];
        for (const as of new Set(touched.map(({ buffer }) => at(inverse, at(elementTo, ownerOf(buffer)))))) {
          const { reads, writes } = as === 0 ? own : accesses(program, at(at(elements, as), rank), index);
          add(as, { reads: reads.filter(isOfRepresentative), writes: writes.filter(isOfRepresentative) });
        }
      }
      close();
    }
    add(0, { reads: at(outputs, rank).map(wholeBuffer), writes: [] });
    close();
  }
  const rows = createTableRows(program, pieces.length);
  for (const { reads, writes } of pieces) {
    for (const region of reads) rows.read(region);
    for (const region of writes) rows.write(region);
    rows.close();
  }
  const nodes = nodeOf.toArray();
  return {
    start,
    element: element.toArray(),
    kind: Uint8Array.from(nodes, (each) => at(kind, each)),
    argument: Int32Array.from(nodes, (each) => at(argument, each)),
    table: rows.finish(({ rank }) => at(elementTo, rank) === 0),
  };
}
