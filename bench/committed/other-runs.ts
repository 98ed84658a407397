/** The MLPs that the loops of scripts/gpu/form-times.ts were, and the norms of scripts/gpu/norms.ts. */
import { readFileSync } from "node:fs";
import * as v from "valibot";
import { compile } from "../../src/compile/compile.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { invariant } from "../../src/support/invariant.ts";
import { mlp, schedules } from "../../scripts/gpu/mlp-forms.ts";
import { norms } from "../../scripts/gpu/speed-cases.ts";
import { median } from "../harness/figures.ts";
import { type CommittedRun, resultsFile } from "./committed-run.ts";

const mlpResults = v.object({
  shape: v.object({ rows: v.number(), hidden: v.number(), ffn: v.number() }),
  found: v.array(v.object({ name: v.string(), milliseconds: v.array(v.number()) })),
});

export function mlpRuns(): readonly CommittedRun[] {
  const source = "fused-mlp-2xH200.json";
  const { shape, found } = v.parse(mlpResults, JSON.parse(readFileSync(resultsFile(source), "utf8")));
  return found.map(({ name, milliseconds }) => {
    const [, form, chunks, schedule = ""] = /^(one loop|two loops), (\d+) chunks, (.*)$/.exec(name) ?? [];
    const options = schedules[schedule];
    invariant(options !== undefined, "a committed MLP has a known schedule", { name });
    const f = mlp(shape, 2, Number(chunks), form === "one loop");
    const { program } = compile(f, { ...options(Number(chunks)), devices: 2, on: "cuda", verify: "off" });
    const shared = { source, text: name, kind: "MLPs", machine: "2 x H200", profile: "2xH200" } as const;
    return { ...shared, program, graph: true, measured: median(milliseconds), isRun: true };
  });
}

const normResults = v.object({
  found: v.array(v.object({ op: v.string(), rows: v.number(), columns: v.number(), us: v.number() })),
});

export function normRuns(): readonly CommittedRun[] {
  const source = "norms-H200.json";
  const { found } = v.parse(normResults, JSON.parse(readFileSync(resultsFile(source), "utf8")));
  return found.map(({ op, rows, columns, us }) => {
    const norm = norms[op];
    invariant(norm !== undefined, "a committed norm is known", { op });
    const f = new Fusion();
    const x = f.input([rows, columns], "bfloat16");
    f.output(norm(x, () => f.input([columns], "bfloat16")));
    const { program } = compile(f, { devices: 1, on: "cuda", verify: "off" });
    const text = `${op} ${rows} x ${columns}`;
    const shared = { source, text, kind: "kernels alone", machine: "2 x H200", profile: "2xH200" } as const;
    return { ...shared, program, graph: true, measured: us / 1000, isRun: false };
  });
}
