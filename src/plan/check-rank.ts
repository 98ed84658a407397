/** Checks that every number of a rank's document names something, and that every address lies in its space. */
import type { Address, Word } from "../backends/cuda/ops/address.ts";
import { scaleElements } from "../backends/cuda/matmul/gemm-layout.ts";
import { dtypes, type FloatDType } from "../numerics/dtype.ts";
import { at, unreachable, getOrMake } from "../support/invariant.ts";
import type { PlanDocument } from "./plan-document.ts";
import type { PlanOp, RankDocument } from "./rank-document.ts";

/** Throws a diagnostic. */
export type Refuse = (found: string, expected: string) => never;

/** An address and the bytes from it that an operation touches; where a kernel decides, 1 of words and 0 of tensors. */
interface Extent {
  readonly address: Address;
  readonly bytes: number;
}

export function checkRankDocument(own: RankDocument, plan: PlanDocument, rank: number, refuse: Refuse): void {
  const { world, memory, streams, ops, commands, statements } = own;
  if (own.rank !== rank || world !== plan.world) {
    refuse(`rank ${own.rank} of ${world}`, `rank ${rank} of ${plan.world}`);
  }
  const byRank = { symmetricBytes: memory.symmetricBytes, words: memory.words };
  for (const [name, list] of Object.entries(byRank)) {
    if (list.length !== world) refuse(`${list.length} entries of ${name}`, `${world}, one for each rank`);
  }
  const byStream = { scratchBytes: memory.scratchBytes, workspaceBytes: memory.workspaceBytes };
  for (const [name, list] of Object.entries(byStream)) {
    if (list.length !== streams.length)
      refuse(`${list.length} entries of ${name}`, `${streams.length}, one for each stream`);
  }
  if (streams.length === 0) refuse("no stream", "at least the caller's");
  const below = (what: string, number: number, count: number): void => {
    if (number >= count) refuse(`${what} ${number}`, count === 0 ? `no ${what}` : `one from 0 to ${count - 1}`);
  };
  for (const kernel of own.kernels) below("kernel", kernel, plan.kernels.length);
  for (const { fallback } of own.gemms) below("kernel", fallback.kernel, own.kernels.length);
  for (const { stream, statement } of commands) {
    below("stream", stream, streams.length);
    below("statement", statement, statements.length);
  }
  const bound = [...memory.in, ...memory.out, ...memory.copied];
  for (const { role, position, output, held, shape, strides, bytes, dtype } of bound) {
    const { inputs, outputs } = plan;
    below(role, position, (role === "input" ? inputs : outputs).length);
    if (output !== undefined) below("output", output, outputs.length);
    const whole = at(role === "input" ? inputs : outputs, position).shape;
    const isBox =
      [held, shape, strides].every(({ length }) => length === whole.length) &&
      held.every((runs, axis) => isHeld(runs, at(whole, axis), at(shape, axis)));
    if (!isBox) refuse(`${role} ${position} with the shape [${shape.join(", ")}]`, `a part of [${whole.join(", ")}]`);
    const needed = spanOf(shape, strides) * dtypes[dtype].bytes;
    if (needed > bytes) refuse(`${role} ${position} of ${bytes} bytes`, `at least ${needed}`);
  }
  const inside = ({ address, bytes }: Extent, what: string): void => {
    const end = offsetOf(address) + bytes;
    const size = sizeOf(address, own);
    if (end <= size) return;
    const space = `${address.space}${"tensor" in address ? ` ${address.tensor}` : ""}${"rank" in address ? ` of rank ${address.rank}` : ""}`;
    refuse(`${what}: bytes up to ${end} of ${space}`, size < 0 ? `a space that the plan has` : `at most ${size}`);
  };
  for (const [number, tensor] of bound.entries())
    inside({ address: tensor.place, bytes: tensor.bytes }, `tensor ${number}`);
  for (const [number, op] of ops.entries()) {
    below("stream", op.stream, streams.length);
    if (op.command >= 0) below("command", op.command, commands.length);
    for (const [what, index, count] of tablesOf(op, own)) below(what, index, count);
    if (op.kind === "gemm" && op.addend !== undefined && at(own.gemms, op.gemm).layout.accumulate !== true)
      refuse(`operation ${number}: a GEMM with an addend that does not accumulate`, "accumulate in its layout");
    for (const extent of extentsOf(op, own)) inside(extent, `operation ${number}, ${op.kind}`);
  }
  for (const run of own.waitRuns) {
    if (run.length === 0) refuse("a run of no waits", "the waits of a batch");
    for (const { word, command } of run) {
      below("command", command, commands.length);
      inside({ address: word, bytes: 4 }, "a wait");
    }
  }
}

/** Checks that as many signals are written to every word in a run as are waited for. */
export function checkSignals(ranks: readonly RankDocument[], refuse: Refuse): void {
  const words = new Map<string, { signals: number; waits: number }>();
  const entry = ({ rank, index }: Word): { signals: number; waits: number } => {
    const key = `word ${index} of rank ${rank}`;
    return getOrMake(words, key, () => ({ signals: 0, waits: 0 }));
  };
  for (const { ops } of ranks)
    for (const op of ops) {
      if (op.kind !== "batch") continue;
      for (const { kind, address, value } of op.operations) {
        if (address.space !== "word" || value === 0) continue;
        if (kind === "wait") entry(address).waits++;
        else entry(address).signals++;
      }
    }
  // Kernels signal and wait, too: a word that one of them has is theirs to count.
  const inKernels = new Set(
    ranks.flatMap(({ ops }) =>
      ops.flatMap((op) =>
        op.kind === "launch"
          ? op.parameters.flatMap((each) =>
              typeof each !== "number" && each.space === "word" ? [`word ${each.index} of rank ${each.rank}`] : [],
            )
          : [],
      ),
    ),
  );
  for (const [word, { signals, waits }] of words) {
    if (signals !== waits && !inKernels.has(word))
      refuse(`${word}: ${signals} signals, ${waits} waits`, "as many of both");
  }
}

function isHeld(runs: readonly (readonly [number, number])[], whole: number, local: number): boolean {
  let [end, count] = [0, 0];
  for (const [start, stop] of runs) {
    if (start < end || stop <= start || stop > whole) return false;
    end = stop;
    count += stop - start;
  }
  return count === local;
}

/** Elements from the first to the last, both included. */
function spanOf(shape: readonly number[], strides: readonly number[]): number {
  if (shape.includes(0)) return 0;
  return shape.reduce((span, extent, axis) => span + (extent - 1) * (strides[axis] ?? 0), 1);
}

function offsetOf(address: Address): number {
  if ("offset" in address) return address.offset;
  if (address.space === "word") return 4 * address.index;
  return address.space === "gate" ? 8 * address.index : 0;
}

/** The bytes of the address's space; -1 if there is no such space. */
function sizeOf(address: Address, { memory, streams }: RankDocument): number {
  switch (address.space) {
    case "in":
    case "out":
      return memory[address.space][address.tensor]?.bytes ?? -1;
    case "temporary":
      return memory.temporaryBytes;
    case "symmetric":
      return memory.symmetricBytes[address.rank] ?? -1;
    case "word":
      return 4 * (memory.words[address.rank] ?? -1);
    case "gate":
      return 8 * memory.gates;
    case "progress":
      return address.stream < streams.length ? 4 : -1;
    case "scratch":
      return memory.scratchBytes[address.stream] ?? -1;
    case "workspace":
      return address.stream < streams.length ? 1 : -1;
    default:
      return unreachable(address);
  }
}

/** What an operation names by number. */
function tablesOf(op: PlanOp, own: RankDocument): readonly (readonly [what: string, index: number, count: number])[] {
  switch (op.kind) {
    case "launch":
      return [["kernel", op.kernel, own.kernels.length]];
    case "gemm":
      return [["gemm", op.gemm, own.gemms.length]];
    case "attention":
      return [["attention", op.attention, own.attentions.length]];
    case "record":
    case "wait":
      return [["event", op.event, own.events]];
    case "copy":
    case "copy2d":
    case "batch":
      return [];
    default:
      return unreachable(op);
  }
}

function extentsOf(op: PlanOp, own: RankDocument): readonly Extent[] {
  switch (op.kind) {
    case "copy":
      return [op.to, op.from].map((address) => ({ address, bytes: op.bytes }));
    case "copy2d":
      return [
        { address: op.to, bytes: (op.height - 1) * op.toPitch + op.width },
        { address: op.from, bytes: (op.height - 1) * op.fromPitch + op.width },
      ];
    case "batch":
      return op.operations.map(({ address }) => ({ address, bytes: 4 }));
    case "launch":
      // A tensor may be empty.
      return op.parameters.flatMap((each) =>
        typeof each === "number" ? [] : [{ address: each, bytes: "offset" in each ? 0 : 1 }],
      );
    case "gemm":
      return gemmExtents(op, own);
    case "attention": {
      const { graph, scratchBytes } = at(own.attentions, op.attention);
      const operands = graph.tensors.flatMap(({ memory, type, dims, strides }): readonly Extent[] => {
        const address = memory.kind === "operand" ? op.operands[memory.position] : undefined;
        return address === undefined
          ? []
          : [{ address, bytes: spanOf(dims, strides) * dtypes[type === "int32" ? "int" : type].bytes }];
      });
      return scratchBytes === 0 ? operands : [...operands, { address: op.scratch, bytes: scratchBytes }];
    }
    case "record":
    case "wait":
      return [];
    default:
      return unreachable(op);
  }
}

function gemmExtents(
  { gemm, a, b, bias, addend, scales = [], c }: Extract<PlanOp, { kind: "gemm" }>,
  own: RankDocument,
): readonly Extent[] {
  const { layout } = at(own.gemms, gemm);
  const { scaled } = layout;
  const bytesOf = (dtype: FloatDType | undefined): number => dtypes[dtype ?? layout.dtype].bytes;
  const bytes = bytesOf(undefined);
  const [left, right] = layout.swapped ? [b, a] : [a, b];
  const [sideOfLeft, sideOfRight] = layout.swapped ? (["b", "a"] as const) : (["a", "b"] as const);
  const matrices = [
    [left, layout.left, sideOfLeft, bytesOf(scaled?.left)],
    [right, layout.right, sideOfRight, bytesOf(scaled?.right)],
    [c, layout.result, "c", bytes],
    ...(addend === undefined ? [] : [[addend, layout.result, "c", bytes] as const]),
  ] as const;
  return [
    ...matrices.map(([address, { rows, columns, leading, batchStride }, side, size]): Extent => {
      const first = layout.offsets.reduce((most, offset) => Math.max(most, offset[side]), 0);
      const span = rows + (columns - 1) * leading + (layout.batchCount - 1) * batchStride;
      return { address, bytes: (first + span) * size };
    }),
    ...(bias === null ? [] : [{ address: bias, bytes: layout.result.rows * bytes }]),
    ...scales.map((address, i): Extent => {
      const [ofLeft, ofRight] = scaleElements(layout);
      return { address, bytes: 4 * ((i === 0) === layout.swapped ? ofRight : ofLeft) };
    }),
  ];
}
