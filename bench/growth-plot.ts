/** Draws the growth of each stage: a panel of seconds over sizes for each axis, both logarithmic. SVG as text. */

export const stages = ["lower", "record", "link", "rewrite", "verify", "simulate"] as const;
export type Stage = (typeof stages)[number];

/** Seconds of CPU time by stage, and the most memory of the process. */
export type Point = Readonly<Record<Stage, number>> & { readonly megabytes: number };

export interface Curve {
  readonly axis: string;
  readonly sizes: readonly number[];
  readonly points: readonly Point[];
}

const colors = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2"] as const;

export function plotGrowth(curves: readonly Curve[]): string {
  const [width, height, margin] = [320, 260, 44];
  const panels = curves.map(({ axis, sizes, points }, panel) => {
    const most = Math.max(2, ...sizes);
    const least = Math.min(...sizes);
    const x = (size: number): number =>
      panel * width + margin + ((width - 2 * margin) * Math.log(size / least)) / Math.log(most / least || 2);
    // 0.1 ms to 1,000 s.
    const y = (seconds: number): number =>
      height - margin - ((height - 2 * margin) * (Math.log10(Math.max(seconds, 1e-4)) + 4)) / 7;
    const grid = [1e-4, 1e-2, 1, 100].map(
      (seconds) =>
        `<text x="${panel * width + margin - 6}" y="${y(seconds) + 4}" text-anchor="end">${seconds} s</text>` +
        `<path d="M${panel * width + margin} ${y(seconds)}H${(panel + 1) * width - margin}" stroke="#ddd"/>`,
    );
    const lines = stages.map((stage, i) => {
      const path = sizes.map((size, at) => `${x(size).toFixed(1)} ${y(points[at]?.[stage] ?? 0).toFixed(1)}`).join("L");
      return (
        `<path d="M${path}" fill="none" stroke="${colors[i]}" stroke-width="2"/>` +
        `<text x="${(panel + 1) * width - margin + 2}" y="${60 + 16 * i}" fill="${colors[i]}">${stage}</text>`
      );
    });
    const marks = sizes.map((size) => `<text x="${x(size)}" y="${height - 24}" text-anchor="middle">${size}</text>`);
    const title = `<text x="${panel * width + width / 2}" y="${height - 6}" text-anchor="middle">${axis}</text>`;
    return [...grid, ...lines, ...marks, title].join("\n");
  });
  const size = `width="${curves.length * width + 20}" height="${height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="10">\n${panels.join("\n")}\n</svg>\n`;
}
