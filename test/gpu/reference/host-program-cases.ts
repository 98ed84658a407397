/**
 * Host programs written by hand: test_multidevice_host_ir.cpp, test_multidevice_host_ir_overlap.cpp and
 * test_multidevice_communications.cpp. Those of test/conformance, which are proven right there, and what they leave to
 * machines with peers' memory. A program whose collectives go through NCCL runs through peer memory as well.
 */
import type { HostProgram, Statement } from "../../../src/host/nodes.ts";
import { walk } from "../../../src/host/traverse.ts";
import type { LoweringOptions } from "../../../src/passes/options.ts";
import { multiDevicePrograms } from "../../conformance/multi-device-programs.ts";
import { overlapPrograms } from "../../conformance/overlap-programs.ts";
import { rawCommunications, rawProgram, rawReference } from "../../conformance/raw-communications.ts";
import { ringPrograms } from "../../conformance/ring-programs.ts";
import { type Reference, referenceOf } from "../../support/reference.ts";
import { expectationsFrom } from "../expectation.ts";
import { cuda, get, nccl, put, type ReferenceCase } from "./reference-case.ts";

interface HandWritten {
  readonly name: string;
  readonly devices: readonly number[];
  readonly build: (devices: number, rank: number) => HostProgram;
  readonly reference: (devices: number) => Reference;
  readonly protocol?: "get" | "put";
  readonly runs?: number;
}

/** nvFuser's overlap tests run four times. */
const usualRuns = 4;

/** Each expectation is one of three sets of inputs. */
const inputSets = 3;

function handWrittenCase({
  name,
  devices: counts,
  build,
  reference,
  protocol,
  runs = usualRuns,
}: HandWritten): ReferenceCase {
  return {
    name,
    runsOn: (devices) => counts.includes(devices),
    lowerings: loweringsOf(build(2, 0), protocol),
    source: (devices, lowering) => (rank) => {
      const host = build(devices, rank);
      return lowering === cuda ? throughPeerMemory(host) : host;
    },
    expectations: (devices) => expectationsFrom(reference(devices)),
    repeat: Math.ceil(runs / inputSets),
  };
}

function loweringsOf(host: HostProgram, protocol: "get" | "put" = "get"): readonly Partial<LoweringOptions>[] {
  const statements = walk(host.body);
  if (statements.some(({ kind }) => kind === "ShareMemHandles")) return [protocol === "get" ? get : put];
  return statements.some(({ kind }) => kind === "Communication") ? [nccl, cuda] : [nccl];
}

/** The same program with its collectives posted to the CUDA back end. */
function throughPeerMemory(host: HostProgram): HostProgram {
  const moved = (statements: readonly Statement[]): readonly Statement[] =>
    statements.map((statement) => {
      if (statement.kind === "Communication") return { ...statement, backend: "cuda" };
      if (statement.kind === "ForLoop") return { ...statement, body: moved(statement.body) };
      if (statement.kind !== "IfThenElse") return statement;
      return { ...statement, then: moved(statement.then), else: moved(statement.else) };
    });
  return { ...host, body: moved(host.body) };
}

export const hostIrCases: readonly ReferenceCase[] = multiDevicePrograms
  // What is proven wrong as it was written has a twin that is right.
  .filter(({ findings }) => findings === undefined)
  .map((program) => handWrittenCase(program));

export const overlapCases: readonly ReferenceCase[] = [...overlapPrograms, ...ringPrograms].map(
  ({ name, devices, build, reference }) =>
    handWrittenCase({
      name,
      devices,
      build: (count) => build(count, "joined"),
      reference: (count) => referenceOf(reference(count)),
    }),
);

const elements = 1024;

export const communicationCases: readonly ReferenceCase[] = rawCommunications.map((raw) => ({
  name: raw.name,
  runsOn: (devices) => devices > 1,
  lowerings: [nccl, cuda],
  source: (devices, { backend = "nccl" }) => rawProgram(raw, devices, backend, elements),
  expectations: (devices) => expectationsFrom(rawReference(raw, devices, elements)),
  repeat: 2,
}));
