/**
 * The pictures of docs/sharding.md: which device and which chunk holds which rows and columns, after propagation, and
 * what rank 0 runs.
 *
 *   x [4, 2]      digits are the devices that hold an element, * is every device; + after it: they add partial results
 *   a  0 0        letters before the rows, or above the columns, are the chunks of a Stream axis
 *   a  1 1
 *   b  0 0
 *   b  1 1
 */
import { type Fusion, type FusionData, lower, type TensorView } from "@braid-compiler/braid";
import type { HostProgram, Statement } from "../../src/host/nodes.ts";
import { isOp } from "../../src/host/traverse.ts";
import { heldRuns, onDevice, sizedCut } from "../../src/ir/parts.ts";
import { countIn, type Runs } from "../../src/ir/runs.ts";
import { type IterDomain, isDID, type Tensor, withoutReductions } from "../../src/ir/domain.ts";
import type { Op } from "../../src/ir/ops/op.ts";
import { constantValue } from "../../src/ir/scalar/fold.ts";
import { at } from "../../src/support/invariant.ts";

export interface Picture {
  /** The program, and the tensors to draw, in order, by the names that the page has for them. */
  readonly build: () => { readonly f: Fusion; readonly drawn: Readonly<Record<string, TensorView>> };
  /** Whether to say what rank 0 runs. */
  readonly runs: boolean;
}

export function picture(build: Picture["build"], { runs = true } = {}): Picture {
  return { build, runs };
}

const width = 72;

export function drawn({ build, runs }: Picture): string {
  const { f, drawn: tensors } = build();
  const after = propagated(f);
  const blocks = Object.entries(tensors).map(([name, view]) => block(name, at(after.tensors, view.id)));
  const lines = sideBySide(blocks);
  return [...lines, ...(runs ? ["", `rank 0: ${steps(lower(f, { rank: 0 }))}`] : [])].join("\n");
}

function propagated(f: Fusion): FusionData {
  let result = f.data();
  lower(f, {
    onPass: ({ pass, program }) => {
      if (pass === "propagate-shardings" && program.kind === "Fusion") result = program;
    },
  });
  return result;
}

function block(name: string, tensor: Tensor): readonly string[] {
  const axes = withoutReductions(tensor.domain.logical);
  const sizes = axes.map(({ extent }) => constantValue(extent) ?? 0);
  const [rows, columns] = axes.map((axis, i) => indicesOf(tensor, axis, at(sizes, i)));
  const one = { held: () => true, chunk: () => "" };
  const [row, column] = [rows ?? one, columns ?? one];
  const devices = tensor.mesh?.devices ?? [0];
  const isPartial = tensor.domain.loop.some((axis) => axis.iterType === "reduction" && isDID(axis.parallelType));
  const cell = (i: number, j: number): string => {
    const holders = devices.filter((device) => row.held(device, i) && column.held(device, j));
    if (holders.length === devices.length && devices.length > 1) return isPartial ? "+" : "*";
    return holders.join("") + (isPartial ? "+" : "");
  };
  const range = (size: number): readonly number[] => Array.from({ length: size }, (_, i) => i);
  const [height, across] = [sizes[0] ?? 1, sizes[1] ?? 1];
  const lines = range(height).map((i) => [row.chunk(i), ...range(across).map((j) => cell(i, j))].join(" "));
  const header = range(across).map((j) => column.chunk(j));
  const chunks = header.some((letter) => letter !== "") ? [[row.chunk(0) && " ", ...header].join(" ")] : [];
  return [`${name} [${sizes.join(", ")}]`, ...[...chunks, ...lines].map((line) => line.trimStart())];
}

interface Indices {
  readonly held: (device: number, index: number) => boolean;
  /** The letter of the chunk; empty on an axis without Stream. */
  readonly chunk: (index: number) => string;
}

function indicesOf({ domain, mesh }: Tensor, axis: IterDomain, size: number): Indices {
  const contains = (runs: Runs, index: number): boolean =>
    runs.some(({ start, stop }) => start <= index && index < stop);
  const ofChunk = (chunk: number): Runs =>
    heldRuns(sizedCut(domain, axis, size), (type) => (type === "Stream" ? chunk : null));
  const isCut = domain.loop.some(({ parallelType }) => parallelType === "Stream") && countIn(ofChunk(0)) < size;
  return {
    held: (device, index) =>
      mesh === null ||
      contains(
        heldRuns(
          sizedCut(domain, axis, size),
          onDevice((type) => mesh.coordinate(device, type)),
        ),
        index,
      ),
    chunk: (index) => {
      if (!isCut) return "";
      for (let chunk = 0; ; chunk++) if (contains(ofChunk(chunk), index)) return String.fromCodePoint(97 + chunk);
    },
  };
}

/** As many blocks in a line as fit. */
function sideBySide(blocks: readonly (readonly string[])[]): readonly string[] {
  const lines: string[] = [];
  let row: (readonly string[])[] = [];
  const widthOf = (block: readonly string[]): number => Math.max(...block.map(({ length }) => length));
  const flush = (): void => {
    if (row.length === 0) return;
    const height = Math.max(...row.map(({ length }) => length));
    if (lines.length > 0) lines.push("");
    for (let i = 0; i < height; i++) {
      lines.push(
        row
          .map((own) => (own[i] ?? "").padEnd(widthOf(own)))
          .join("   ")
          .trimEnd(),
      );
    }
    row = [];
  };
  for (const own of blocks) {
    if ([...row, own].reduce((sum, each) => sum + widthOf(each) + 3, -3) > width) flush();
    row.push(own);
  }
  flush();
  return lines;
}

/** What the program runs, in short: `4 x (Allgather, linear)`. */
function steps(host: HostProgram): string {
  const within = (body: readonly Statement[]): readonly string[] => body.flatMap((statement) => step(host, statement));
  return within(host.body).join(", ");
}

function step(host: HostProgram, statement: Statement): readonly string[] {
  const within = (body: readonly Statement[]): string => body.flatMap((each) => step(host, each)).join(", ");
  switch (statement.kind) {
    case "ForLoop": {
      const inner = within(statement.body);
      return inner === "" ? [] : [`${constantValue(statement.stop) ?? "n"} x (${inner})`];
    }
    case "IfThenElse":
      return [`(own chunk: ${within(statement.then)}; others: ${within(statement.else)})`];
    case "Communication":
    case "P2PCommunication":
      return [statement.type];
    case "PostOnStream":
      return [at(host.units, statement.unit).fusion.ops.map(wordOf).join(" + ")];
    default:
      return isOp(statement) ? [wordOf(statement)] : [];
  }
}

function wordOf(op: Op): string {
  if (op.kind === "Set") return "copy";
  return "op" in op ? op.op : op.kind.toLowerCase();
}
