/** A line chart by uPlot, which the page loads when it is first shown. */
import UPlot from "uplot";

export interface ChartData {
  readonly axis: string;
  readonly x: readonly number[];
  /** Milliseconds. */
  readonly y: readonly (number | null)[];
}

export interface Chart {
  readonly destroy: () => void;
}

const [height, margin] = [320, 32];

export function createChart(holder: HTMLElement, { axis, x, y }: ChartData): Chart {
  const styles = getComputedStyle(holder);
  const color = (name: string): string => styles.getPropertyValue(name).trim();
  const axisColors = {
    stroke: color("--muted"),
    grid: { stroke: color("--border"), width: 1 },
    ticks: { stroke: color("--border"), width: 1 },
  };
  const plot = new UPlot(
    {
      width: Math.max(320, holder.clientWidth - margin),
      height,
      legend: { show: false },
      scales: { x: { time: false, distr: 3, log: 2 }, y: { range: (_, __, most) => [0, most * 1.1] } },
      axes: [
        { ...axisColors, label: axis, splits: () => [...x], values: (_, splits) => splits.map(String) },
        { ...axisColors, label: "milliseconds", size: 64 },
      ],
      series: [
        {},
        {
          label: "predicted",
          stroke: color("--accent"),
          width: 2,
          points: { show: true, size: 8, fill: color("--accent") },
        },
      ],
    },
    [[...x], [...y]],
    holder,
  );
  const resized = new ResizeObserver(() => {
    plot.setSize({ width: Math.max(320, holder.clientWidth - margin), height });
  });
  resized.observe(holder);
  return {
    destroy: () => {
      resized.disconnect();
      plot.destroy();
    },
  };
}
