/** Pictures of how tensors lie on devices and in chunks: two axes of each tensor, cut where a device or chunk begins. */
import { type CoordinateOf, heldRuns, loopAxesOf, sizedCut } from "../../src/ir/parts.ts";
import type { Runs } from "../../src/ir/runs.ts";
import { isDID, type IterDomain, type Tensor, withoutReductions } from "../../src/ir/domain.ts";
import type { FusionData } from "../../src/ir/fusion-data.ts";
import { nameOf } from "../../src/ir/origin.ts";
import { printIterDomain, printTensor } from "../../src/ir/print-tensor.ts";
import { evaluateScalar, type Scalar } from "../../src/ir/scalar/scalar.ts";
import type { Sizes } from "../../src/ir/sizes.ts";
import type { AxisPicture, ShardCell, TensorPicture } from "./parts.ts";

/** Above it, cuts into chunks are left out. */
const mostCells = 4096;

export function pictures(fusion: FusionData, sizes: Sizes): readonly TensorPicture[] {
  return fusion.tensors.map((tensor) => pictureOf(fusion, tensor, sizes));
}

function pictureOf({ inputs, outputs }: FusionData, tensor: Tensor, sizes: Sizes): TensorPicture {
  const { domain, origin } = tensor;
  const axes = withoutReductions(domain.logical);
  const [rowAxis, columnAxis] = shownAxes(tensor, axes);
  const sizeOf = (axis: IterDomain | null): number => (axis === null ? 1 : (sizeOfScalar(axis.extent, sizes) ?? 1));
  const cut = cellsOf(tensor, rowAxis, columnAxis, sizeOf, true);
  const name = nameOf(tensor);
  return {
    id: tensor.id,
    name: name === null ? `T${tensor.id}` : `T${tensor.id} ${name}`,
    dtype: tensor.dtype,
    role: inputs.includes(tensor.id) ? "input" : outputs.includes(tensor.id) ? "output" : "temporary",
    logical: domain.logical.map((axis) => axisPicture(axis, sizes)),
    loop: domain.loop.map((axis) => axisPicture(axis, sizes)),
    rows: sizeOf(rowAxis),
    columns: sizeOf(columnAxis),
    rowAxis: rowAxis === null ? "" : axisName(domain.logical, rowAxis),
    columnAxis: columnAxis === null ? "" : axisName(domain.logical, columnAxis),
    cells: cut.length <= mostCells ? cut : cellsOf(tensor, rowAxis, columnAxis, sizeOf, false),
    source: origin?.source?.line ?? 0,
    text: printTensor(tensor),
  };
}

function axisName(logical: readonly IterDomain[], axis: IterDomain): string {
  return `axis ${logical.indexOf(axis)}`;
}

function axisPicture(axis: IterDomain, sizes: Sizes): AxisPicture {
  return {
    name: printIterDomain(axis),
    extent: sizeOfScalar(axis.extent, sizes),
    type: axis.iterType === "reduction" ? "reduced" : axis.parallelType,
  };
}

function sizeOfScalar(extent: Scalar, sizes: Sizes): number | null {
  return evaluateScalar(extent, (name) => sizes.get(name)) ?? null;
}

/** Axes that are cut, before others; the outer one is drawn as rows. */
function shownAxes({ domain }: Tensor, axes: readonly IterDomain[]): readonly [IterDomain | null, IterDomain | null] {
  const isCut = (axis: IterDomain): boolean => loopAxesOf(domain, axis).some(({ type }) => type !== "Serial");
  const wanted = [...axes.filter(isCut), ...axes.filter((axis) => !isCut(axis)).reverse()].slice(0, 2);
  const [first = null, second = null] = axes.filter((axis) => wanted.includes(axis));
  return [first, second];
}

interface Holder {
  readonly device: number | null;
  readonly chunk: number | null;
  readonly rows: Runs;
  readonly columns: Runs;
}

function cellsOf(
  tensor: Tensor,
  rowAxis: IterDomain | null,
  columnAxis: IterDomain | null,
  sizeOf: (axis: IterDomain | null) => number,
  chunked: boolean,
): readonly ShardCell[] {
  const { domain, mesh } = tensor;
  const chunks = chunked ? chunksOf(tensor) : null;
  const runsOf = (axis: IterDomain | null, coordinate: CoordinateOf): Runs =>
    axis === null ? [{ start: 0, stop: 1 }] : heldRuns(sizedCut(domain, axis, sizeOf(axis)), coordinate);
  const devices = mesh?.devices ?? [null];
  const holders = devices.flatMap((device) =>
    Array.from({ length: chunks ?? 1 }, (_, index): Holder => {
      const chunk = chunks === null ? null : index;
      const coordinate: CoordinateOf = (type) => {
        if (type === "Stream") return chunk;
        if (!isDID(type) || mesh === null || device === null) return null;
        return mesh.hasAxis(type) ? mesh.coordinate(device, type) : null;
      };
      return { device, chunk, rows: runsOf(rowAxis, coordinate), columns: runsOf(columnAxis, coordinate) };
    }),
  );
  const cells = new Map<string, { readonly cell: ShardCell; readonly devices: number[] }>();
  for (const { device, chunk, rows, columns } of holders) {
    for (const row of rows) {
      for (const column of columns) {
        const key = `${row.start} ${row.stop} ${column.start} ${column.stop} ${chunk}`;
        const found = cells.get(key);
        if (found !== undefined) {
          if (device !== null) found.devices.push(device);
          continue;
        }
        const held: number[] = device === null ? [] : [device];
        const [from, to] = [row.start, row.stop];
        const cell = { rows: [from, to], columns: [column.start, column.stop], devices: held, chunk } as const;
        cells.set(key, { cell, devices: held });
      }
    }
  }
  return [...cells.values()].map(({ cell }) => cell);
}

/** The extent of the tensor's Stream axis; null without one. */
function chunksOf({ domain }: Tensor): number | null {
  const stream = domain.loop.find(({ parallelType }) => parallelType === "Stream");
  return stream === undefined ? null : (sizeOfScalar(stream.extent, new Map()) ?? null);
}
