/** A tensor as a rectangle of two axes, in which each device has a color and each chunk a frame. */
import type { JSX } from "preact";
import type { ShardCell, TensorPicture } from "../../compiler/parts.ts";

const [width, height, margin] = [168, 112, 16];

export function ShardingPicture({ tensor }: { readonly tensor: TensorPicture }): JSX.Element {
  const { rows, columns, cells, rowAxis, columnAxis } = tensor;
  const deviceCount = new Set(cells.flatMap(({ devices }) => devices)).size;
  return (
    <svg
      class="sharding"
      viewBox={`0 0 ${width + margin} ${height + margin}`}
      role="img"
      aria-label={descriptionOf(tensor, deviceCount)}
    >
      <text class="axis-name" x={margin + width / 2} y={11} text-anchor="middle">
        {columnAxis === "" ? rowAxis : columnAxis}
      </text>
      {columnAxis !== "" && (
        <text class="axis-name" transform={`translate(11 ${margin + height / 2}) rotate(-90)`} text-anchor="middle">
          {rowAxis}
        </text>
      )}
      {cells.map((cell) => (
        <Cell
          key={`${cell.rows.join()} ${cell.columns.join()} ${cell.chunk}`}
          cell={cell}
          isWhole={cell.devices.length === deviceCount && deviceCount > 1}
          box={
            columnAxis === "" ? boxOf(cell.columns, 1, cell.rows, rows) : boxOf(cell.rows, rows, cell.columns, columns)
          }
        />
      ))}
    </svg>
  );
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function boxOf(
  rows: readonly [number, number],
  rowCount: number,
  columns: readonly [number, number],
  columnCount: number,
): Box {
  return {
    x: margin + (width * columns[0]) / columnCount,
    y: margin + (height * rows[0]) / rowCount,
    width: (width * (columns[1] - columns[0])) / columnCount,
    height: (height * (rows[1] - rows[0])) / rowCount,
  };
}

interface CellProps {
  readonly cell: ShardCell;
  readonly isWhole: boolean;
  readonly box: Box;
}

function Cell({ cell: { devices, chunk }, isWhole, box }: CellProps): JSX.Element {
  const [first] = devices;
  const color = isWhole || first === undefined ? "whole" : `device-${first % 8}`;
  const shade = chunk === null ? "" : chunk % 2 === 0 ? "even" : "odd";
  const holders = isWhole ? "all devices" : devices.length === 0 ? "no mesh" : `device ${devices.join(", ")}`;
  return (
    <g>
      <title>{chunk === null ? holders : `chunk ${chunk}, ${holders}`}</title>
      <rect class={`cell ${color} ${shade}`} {...box} />
      {box.height >= 11 && box.width >= 16 && (chunk !== null || (!isWhole && first !== undefined)) && (
        <text class="cell-text" x={box.x + box.width / 2} y={box.y + box.height / 2 + 3} text-anchor="middle">
          {[chunk === null ? null : `c${chunk}`, isWhole ? null : devices.join()]
            .filter((part) => part !== null)
            .join(" · ")}
        </text>
      )}
    </g>
  );
}

function descriptionOf({ name, rows, columns, cells }: TensorPicture, deviceCount: number): string {
  const chunks = new Set(cells.map(({ chunk }) => chunk)).size;
  const cut = chunks > 1 ? `, in ${chunks} chunks` : "";
  return `${name}: ${rows} by ${columns} on ${deviceCount === 0 ? "no mesh" : `${deviceCount} devices`}${cut}`;
}
