/** Measured runs are explained by the code that explains predicted ones, with a profile, without one, and from a file. */
import { describe, expect, it } from "vitest";
import { compile, DeviceMesh, explain, Fusion, linear } from "@braid-compiler/braid";
import type { Program } from "../../src/commands/program.ts";
import { explainCompiled } from "../../src/explain/explain.ts";
import { explainRun } from "../../src/explain/explain-run.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { chromeTraceText } from "../../src/trace/chrome/chrome-trace.ts";
import { readChromeTrace } from "../../src/trace/chrome/read-trace.ts";
import type { TraceEvent } from "../../src/trace/event-table.ts";
import { machine, perMegabyte, transfersAt } from "./machine.ts";

/** A gather of rows before a linear. */
function gathering(): Fusion {
  const f = new Fusion();
  const [x, w] = [f.input([4, 256, 512], "bfloat16"), f.input([512, 512], "bfloat16")];
  const y = linear(x, w);
  f.output(y);
  for (const tensor of [x, w, y]) tensor.setDeviceMesh(DeviceMesh.range(4));
  x.axis(0).parallelize("DIDx");
  return f;
}

const options = { devices: 4, on: "cuda", backend: "nccl", overlap: false } as const;
const profile = machine({ transfers: transfersAt(perMegabyte(20)) });

function predicted(): {
  readonly program: Program;
  readonly trace: readonly TraceEvent[];
  readonly milliseconds: number;
} {
  const { program } = compile(gathering(), options);
  return { program, ...simulate(program, profile, { graph: true }) };
}

function sumOf(causes: readonly { readonly milliseconds: number }[]): number {
  return causes.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
}

describe("a measured run", () => {
  it("has the causes of the prediction where it ran as predicted", () => {
    const { trace, milliseconds } = predicted();
    const compiled = { compilation: compile(gathering(), options), choice: null, layers: null };
    const found = explainCompiled(gathering(), compiled, { ...options, profile, measured: { trace, milliseconds } });
    const expected = explain(gathering(), options, profile);
    const run = { ...expected.run, idleOf: expect.any(Function) as unknown };
    expect(found).toMatchObject({ isMeasured: true, run, predicted: run });
    for (let rank = 0; rank < 4; rank++) expect(found.run.idleOf(rank)).toEqual(expected.run.idleOf(rank));
    expect(expected).toMatchObject({ isMeasured: false, predicted: expected.run });
  });

  it("is explained without a profile by its idle time", () => {
    const run = predicted();
    const { causes, exposed, floor, idle } = explainRun(run, null, { serial: null, graph: true });
    expect(causes[0]).toMatchObject({ cause: "notInLoop" });
    expect(sumOf(causes)).toBeCloseTo(exposed, 9);
    expect(sumOf(idle.map(({ start, end }) => ({ milliseconds: end - start })))).toBeCloseTo(exposed, 9);
    expect(floor.milliseconds).toBeLessThanOrEqual(run.milliseconds + 1e-9);
    expect(floor.communication).toBeCloseTo(exposed, 6);
  });

  it("does not end before its last event", () => {
    const { trace, program } = predicted();
    const compilation = { ...compile(gathering(), options), program };
    const measured = { trace, milliseconds: 0 };
    const compiled = { compilation, choice: null, layers: null };
    const { run } = explainCompiled(gathering(), compiled, { ...options, profile: null, measured });
    expect(run.milliseconds).toBe(Math.max(...trace.map(({ end }) => end)));
    expect(sumOf(run.causes)).toBeCloseTo(run.exposed, 9);
  });

  it("is read back from the trace that shows it", () => {
    const { program, trace, milliseconds } = predicted();
    const run = { program: "p", devices: 4, on: "cuda", milliseconds, options: { "--devices": "4" } } as const;
    const read = readChromeTrace([...chromeTraceText(program, trace, [], run)].join(""), "trace.json");
    expect(read.run).toEqual(run);
    const key = ({ rank, command }: Pick<TraceEvent, "rank" | "command">): string => `${rank} ${command}`;
    const spans = new Map(read.spans.map((span) => [key(span), span]));
    expect(spans.size).toBe(trace.length);
    for (const event of trace) {
      expect(Math.abs((spans.get(key(event))?.start ?? NaN) - event.start)).toBeLessThan(1e-5);
      expect(Math.abs((spans.get(key(event))?.end ?? NaN) - event.end)).toBeLessThan(1e-5);
    }
  });

  it.each([
    ["{", "JSON"],
    ["[]", "no description of a run"],
    ['{"displayTimeUnit":"ns","traceEvents":[]}', "no description of a run"],
  ])("is not read from %s", (text, found) => {
    expect(() => readChromeTrace(text, "trace.json")).toThrow(found);
  });
});
