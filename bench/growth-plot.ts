/**
 * Draws how time and memory grow: for each axis a panel of seconds by stage over sizes, and one of megabytes below it,
 * all logarithmic. SVG as text.
 */
export const stages = ["lower", "record", "link", "rewrite", "verify", "simulate"] as const;
export type Stage = (typeof stages)[number];

/** Seconds of CPU time by stage, and the most memory of the process; NaN for what was left out. */
export type Point = Readonly<Record<Stage, number>> & { readonly megabytes: number };

export interface Curve {
  readonly axis: string;
  readonly sizes: readonly number[];
  /** One for each size that was measured: the first ones. */
  readonly points: readonly Point[];
}

interface Line {
  readonly name: string;
  readonly color: string;
  readonly of: (point: Point) => number;
}

interface Panel {
  readonly top: number;
  readonly height: number;
  /** Powers of ten at the lower and upper edge. */
  readonly range: readonly [number, number];
  readonly marks: readonly (readonly [value: number, text: string])[];
  readonly lines: readonly Line[];
}

const colors = ["#4269d0", "#c98a00", "#e0533f", "#3a9c8c", "#2f7d37", "#8a4fd0"] as const;
const [width, left, right] = [330, 52, 14] as const;

const panels: readonly Panel[] = [
  {
    top: 40,
    height: 220,
    range: [-4, 2],
    marks: [
      [1e-4, "0.1 ms"],
      [1e-3, "1 ms"],
      [1e-2, "10 ms"],
      [1e-1, "0.1 s"],
      [1, "1 s"],
      [10, "10 s"],
      [100, "100 s"],
    ],
    lines: stages.map((name, i) => ({ name, color: colors[i] ?? "#000", of: (point) => point[name] })),
  },
  {
    top: 290,
    height: 80,
    range: [1.7, 3.7],
    marks: [
      [100, "100 MB"],
      [1000, "1 GB"],
    ],
    lines: [{ name: "memory", color: "#444", of: ({ megabytes }) => megabytes }],
  },
];

export function plotGrowth(curves: readonly Curve[]): string {
  const legend = stages.map(
    (stage, i) => `<text x="${left + 60 * i}" y="16" font-weight="bold" fill="${colors[i]}">${stage}</text>`,
  );
  const drawn = curves.flatMap((curve, column) => panels.map((panel) => drawPanel(curve, panel, column * width)));
  const size = `width="${curves.length * width}" height="410"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="10">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    ...legend,
    ...drawn,
    "</svg>\n",
  ].join("\n");
}

function drawPanel({ axis, sizes, points }: Curve, { top, height, range, marks, lines }: Panel, start: number): string {
  const [least, most] = [sizes[0] ?? 1, sizes.at(-1) ?? 1];
  const inner = width - left - right;
  const x = (size: number): number => start + left + (inner * Math.log(size / least)) / Math.log(most / least || 2);
  const y = (value: number): number => {
    const place = (Math.log10(Math.max(value, 10 ** range[0])) - range[0]) / (range[1] - range[0]);
    return top + height * (1 - Math.min(1, place));
  };
  const grid = marks.map(
    ([value, text]) =>
      `<path d="M${start + left} ${y(value).toFixed(1)}h${inner}" stroke="#ddd"/>` +
      `<text x="${start + left - 5}" y="${(y(value) + 3).toFixed(1)}" text-anchor="end">${text}</text>`,
  );
  const curves = lines.map(({ color, of }) => {
    const path = points
      .flatMap((point, i) =>
        Number.isNaN(of(point)) ? [] : [`${x(sizes[i] ?? 1).toFixed(1)} ${y(of(point)).toFixed(1)}`],
      )
      .join("L");
    return `<path d="M${path}" fill="none" stroke="${color}" stroke-width="1.8"/>`;
  });
  const ticks = sizes.map(
    (size) => `<text x="${x(size).toFixed(1)}" y="${top + height + 13}" text-anchor="middle">${short(size)}</text>`,
  );
  const title = `<text x="${start + left + inner / 2}" y="${top + height + 26}" text-anchor="middle">${axis}</text>`;
  return [...grid, ...curves, ...ticks, title].join("\n");
}

function short(size: number): string {
  return size >= 10_000 ? `${size / 1000}k` : String(size);
}
