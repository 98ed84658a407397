/**
 * nvFuser's hand-written programs, and the patterns of sends and receives, have the bits of one process however their
 * ranks are divided over processes. What they compute: test/conformance.
 */
import { describe, expect, it } from "vitest";
import { type HostProgram, link, type Program, record } from "@braid-compiler/braid";
import { sizesFromMeshes } from "../../src/ir/sizes.ts";
import { multiDevicePrograms } from "../conformance/multi-device-programs.ts";
import { overlapPrograms } from "../conformance/overlap-programs.ts";
import { ringPrograms } from "../conformance/ring-programs.ts";
import { outputsOf } from "./outputs-of.ts";

const devices = 4;

function linked(hosts: readonly HostProgram[], protocol: "get" | "put" = "get"): Program {
  return link(
    hosts.map((host, rank) => record(host, { rank, sizes: sizesFromMeshes(host.tensors), streams: 4, protocol })),
  );
}

function onRanks(build: (rank: number) => HostProgram): readonly HostProgram[] {
  return Array.from({ length: devices }, (_, rank) => build(rank));
}

const proven = multiDevicePrograms.filter(
  ({ devices: counts, findings = [] }) => counts.includes(devices) && findings.length === 0,
);
const joined = [...overlapPrograms, ...ringPrograms].filter(({ devices: counts }) => counts.includes(devices));

describe.each([2, 4])("on %d processes", (processes) => {
  it.each(proven)("$name", async ({ build, protocol }) => {
    const program = linked(
      onRanks((rank) => build(devices, rank)),
      protocol,
    );
    expect(await outputsOf(program, processes)).toEqual(await outputsOf(program, 0));
  });

  it.each(joined)("$name", async ({ build }) => {
    const program = linked(onRanks(() => build(devices, "joined")));
    expect(await outputsOf(program, processes)).toEqual(await outputsOf(program, 0));
  });
});
