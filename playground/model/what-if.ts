/** Factors on the rates of the machine, kept as the text of `--what-if`: `gemm=2x,link=0.5x`. */
export const rates = ["gemm", "link"] as const;
export type Rate = (typeof rates)[number];

/** Sliders go from a quarter to four times, by steps of a quarter of a doubling. */
export const mostSteps = 8;

/** 0: as measured, or a rate in other units. */
export function stepOf(text: string | undefined, rate: Rate): number {
  const [, factor = "1"] = /^([\d.]+)x$/u.exec(assignmentsOf(text).get(rate) ?? "") ?? [];
  return Math.min(mostSteps, Math.max(-mostSteps, Math.round(4 * Math.log2(Number(factor)))));
}

export function factorOf(step: number): number {
  return Number((2 ** (step / 4)).toPrecision(3));
}

/** Empty if nothing is changed. */
export function withStep(text: string | undefined, rate: Rate, step: number): string {
  const all = new Map(assignmentsOf(text));
  all.delete(rate);
  if (step !== 0) all.set(rate, `${factorOf(step)}x`);
  return [...all].map((entry) => entry.join("=")).join(",");
}

function assignmentsOf(text: string | undefined): ReadonlyMap<string, string> {
  return new Map(
    (text ?? "").split(",").flatMap((part) => {
      const [name = "", value] = part.split("=");
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
