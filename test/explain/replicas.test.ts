/** Of ranks that are replicas, one replica is compiled: it takes as long as all, for the same reasons. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import {
  compile,
  type CompileOptions,
  DeviceMesh,
  Fusion,
  matmul,
  type ParallelType,
  type Program,
} from "@braid-compiler/braid";
import { serialOf } from "../../src/explain/serial-program.ts";
import { explainRun } from "../../src/explain/explain-run.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { simulate } from "../../src/simulate/simulate.ts";

const file = "profiles/8xH100.json";
const profile = parseProfile(readFileSync(file, "utf8"), file);
const options: CompileOptions = { devices: 12, devicesPerHost: 4, verify: "off" };

/** Rows that are cut along `type` are gathered and multiplied, in chunks. */
function gathers(type: ParallelType): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.ofShape([3, 4]);
  const [a, b] = [f.input([2, mesh.size(type), 64, 256], "float"), f.input([256, 128], "float")];
  const c = matmul(a, b);
  f.output(c);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(mesh);
  a.axis(1).parallelize(type);
  c.axis(0).parallelize("Stream");
  return f;
}

it.each(["nccl", "cuda"] as const)("hosts that exchange nothing are one host, %s", (backend) => {
  const { program } = compile(gathers("DIDx"), { ...options, backend });
  const { program: part } = compile(gathers("DIDx"), { ...options, backend, oneReplica: "apart" });
  expect(part.ranks).toHaveLength(4);
  const serial = serialOf(gathers("DIDx"), options, part.ranks.length);
  expect(serial?.ranks).toHaveLength(part.ranks.length);
  const explained = (of: Program, beside: Program | null) => {
    const { milliseconds, causes, floor, path, regions, exposed } = explainRun(
      { program: of, ...simulate(of, profile, { graph: true }) },
      profile,
      { serial: beside, graph: true },
    );
    return { milliseconds, causes, floor, path, regions, exposed };
  };
  expect(explained(part, serial)).toEqual(explained(program, serialOf(gathers("DIDx"), options)));
});

it("the serial form has as many ranks as it is compared with", () => {
  expect(serialOf(gathers("DIDx"), { ...options, oneReplica: "apart" }, 8)?.ranks).toHaveLength(8);
});
