/** Probes run among the devices of every host, or among hosts, never across both. */
import { expect, it } from "vitest";
import { compile } from "@braid-compiler/braid";
import { collectiveProbes } from "../../../src/tune/calibrate/probe-fusions.ts";
import { onHosts, type ProbeScope } from "../../../src/tune/calibrate/probe.ts";

const machine = { devices: 3, hosts: 2 };

function teams(scope: ProbeScope): readonly string[] {
  const size = scope === "within" ? machine.devices : machine.hosts;
  const fusion = onHosts(collectiveProbes.Allgather(size, 1024), machine, scope);
  const { program } = compile(fusion, { devices: 6, devicesPerHost: 3 });
  return program.transfers.map(({ participants }) => participants.map(({ rank }) => rank).join(" "));
}

it.each([
  { scope: "within", expected: ["0 1 2", "3 4 5"] },
  { scope: "between", expected: ["0 3", "1 4", "2 5"] },
] as const)("$scope", ({ scope, expected }) => {
  expect(teams(scope)).toEqual(expected);
});

it("stay as they are on one host", () => {
  const fusion = collectiveProbes.Allgather(3, 1024);
  expect(onHosts(fusion, { devices: 3, hosts: 1 }, "within")).toBe(fusion);
});
