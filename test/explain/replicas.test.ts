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
import { trainedMlp } from "../support/trained-mlp.ts";
import { at } from "../../src/support/invariant.ts";
import { choose } from "../../src/tune/choose/choose.ts";
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

function explained(of: Program, beside: Program | null) {
  const simulated = simulate(of, profile, { graph: true });
  const { milliseconds, causes, floor, path, regions, exposed } = explainRun({ program: of, ...simulated }, profile, {
    serial: beside,
    graph: true,
  });
  return { milliseconds, causes, floor, path, regions, exposed, assumptions: simulated.assumptions };
}

it.each(["nccl", "cuda"] as const)("hosts that exchange nothing are one host, %s", (backend) => {
  const { program } = compile(gathers("DIDx"), { ...options, backend });
  const { program: part } = compile(gathers("DIDx"), { ...options, backend, oneReplica: true });
  expect(part.ranks).toHaveLength(backend === "cuda" ? 4 : 1);
  const serial = serialOf(gathers("DIDx"), options, part.ranks.length);
  expect(serial?.ranks).toHaveLength(part.ranks.length);
  expect(explained(part, serial)).toEqual(explained(program, serialOf(gathers("DIDx"), options)));
});

it.each<readonly ["nccl" | "cuda", number | undefined, number]>([
  ["nccl", undefined, 1],
  ["nccl", 4, 1],
  ["cuda", 4, 4],
])("replicas that sum gradients take as long as all, %s, %s devices on a host", (backend, devicesPerHost, size) => {
  const fusion = trainedMlp(DeviceMesh.ofShape([2, 4]));
  const hosts = devicesPerHost === undefined ? {} : { devicesPerHost };
  const given: CompileOptions = { devices: 8, backend, on: "cuda", verify: "off", ...hosts };
  const part = compile(fusion, { ...given, oneReplica: true }).program;
  expect(part.ranks).toHaveLength(size);
  expect(explained(part, null)).toEqual(explained(compile(fusion, given).program, null));
});

it("the serial form has as many ranks as it is compared with", () => {
  for (const ranks of [4, 12]) {
    expect(serialOf(gathers("DIDx"), { ...options, oneReplica: true }, ranks)?.ranks).toHaveLength(ranks);
  }
  // It sums over all devices of a host, one by one; loops over the devices exchange within each host.
  const given: CompileOptions = { devices: 8, devicesPerHost: 4 };
  expect(serialOf(trainedMlp(DeviceMesh.ofShape([2, 4])), given, 4)?.ranks).toHaveLength(4);
});

it("schedules are chosen as for all ranks", () => {
  const fusion = trainedMlp(DeviceMesh.ofShape([2, 4]));
  const given = { devices: 8, devicesPerHost: 4, on: "cuda", verify: "off" } as const;
  const choices = [false, true].map((oneReplica) => {
    const { considered, milliseconds, regions } = choose(fusion, { ...given, oneReplica }, profile);
    return { considered, milliseconds, regions };
  });
  expect(at(choices, 1)).toEqual(at(choices, 0));
  expect(at(choices, 0).regions.length).toBeGreaterThan(1);
});
