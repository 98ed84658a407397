/** What the part `speed` of scripts/gpu/self-test.ts printed on two and on four GPUs: kernels, and pipelines. */
import { readFileSync } from "node:fs";
import { compile } from "../../src/compile/compile.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { oneGemm, pipelineProgram, type PipelineShape, variants } from "../../scripts/gpu/pipeline-programs.ts";
import { kernelCases } from "../../scripts/gpu/speed-cases.ts";
import { type CommittedRun, resultsFile } from "./committed-run.ts";

const files = [
  {
    source: "gpu-speed-2xH200.txt",
    machine: "2 x H200",
    profile: "2xH200",
    devices: 2,
    rows: /^ok {3}(.+?): ([^:]*)$/gm,
  },
  {
    source: "gpu-tests-4xH200.json",
    machine: "4 x H200",
    profile: "4xH200",
    devices: 4,
    rows: /"name": "([^"]+)",\s+"ok": true,\s+"text": "([^"]*)"/g,
  },
] as const;

export function speedRuns(): readonly CommittedRun[] {
  return files.flatMap(({ source, machine, profile, devices, rows }) =>
    [...readFileSync(resultsFile(source), "utf8").matchAll(rows)].flatMap(([, name = "", result = ""]) => {
      const [, time] = /([\d.]+) ms, /.exec(result) ?? [];
      const measured = Number(time);
      const run = time === undefined ? null : (kernelRun(name) ?? pipelineRun(name, devices));
      return run === null ? [] : [{ source, text: name, machine, profile, measured, ...run }];
    }),
  );
}

type Ran = Pick<CommittedRun, "kind" | "program" | "graph" | "isRun">;

function kernelRun(name: string): Ran | null {
  const found = kernelCases.find((each) => each.name === name);
  if (found === undefined) return null;
  const f = new Fusion();
  f.output(found.build(f));
  const { program } = compile(f, { devices: 1, on: "cuda", verify: "off" });
  return { kind: "kernels alone", program, graph: true, isRun: false };
}

function pipelineRun(name: string, devices: number): Ran | null {
  const [, m, k, n, form] = /^m (\d+) k (\d+) n (\d+): (.*)$/.exec(name) ?? [];
  const shape: PipelineShape = { m: Number(m), k: Number(k), n: Number(n) };
  const kind = "pipelines of the self-test";
  if (form === oneGemm.name) {
    return { kind, program: pipelineProgram(shape, 1, oneGemm).program, graph: false, isRun: true };
  }
  const variant = variants.find((each) => each.name === form);
  if (variant === undefined) return null;
  return {
    kind,
    program: pipelineProgram(shape, devices, variant).program,
    graph: variant.graph === "on",
    isRun: true,
  };
}
