/** Everything that the snapshot takes from the code base. If something moves or is renamed, only this file changes. */
export * as braid from "../../src/index.ts";
export * as internals from "../../src/internals.ts";
export * as braidCpu from "../../src/cpu.ts";
export * as braidCuda from "../../src/cuda.ts";
export { runCli } from "../../src/cli/cli.ts";
export { parseImplementations } from "../../bench/compare/implementation.ts";
export { planOwn } from "../../bench/compare/braid/plan-own.ts";
export type { Kernel, Operand } from "../../src/commands/kernel.ts";
export { copyKernel, kernelSteps } from "../../src/backends/cuda/kernels/plan/kernel-steps.ts";
export { linkKernel } from "../../src/backends/cuda/ops/device-ops.ts";
export { noBarriers } from "../../src/backends/cuda/kernels/text/barrier-text.ts";
export { gemmKernel } from "../../src/backends/cuda/kernels/gemm-kernel.ts";
export type { KernelSource } from "../../src/backends/cuda/kernels/kernel-source.ts";
export { createKernelLibrary } from "../../src/kernels/kernel-library.ts";
export { splitKernel } from "../../src/kernels/nests/split-kernel.ts";
export { createWasmMemory } from "../../src/support/webassembly.ts";
export { sampleKernels } from "../../test/backends/cuda/sample-kernels.ts";

export { verifyLists } from "../../test/support/verify-lists.ts";

export const folders = {
  examples: "examples",
  passFixtures: "test/fixtures",
  dumps: ["test/fixtures/dumps", "test/fixtures/dumps/written"],
  findings: "test/fixtures/findings",
} as const;

/** Modules of tests that export programs; they are loaded with the running Braid as `braid`. */
export const programModules = {
  hostIrs: "test/conformance/host-ir-programs.ts",
  multiDevice: "test/conformance/multi-device-programs.ts",
  overlap: "test/conformance/overlap-programs.ts",
  rings: "test/conformance/ring-programs.ts",
  bad: "test/host/bad-programs.ts",
  refused: "test/passes/refused-programs.ts",
  fusions: "test/support/random-fusion.ts",
  reshardings: "test/support/random-resharding.ts",
  pointToPoint: "test/support/random-point-to-point.ts",
} as const;

export const profileName = "4xH200";

/** Flags by meaning. Pages show the meaning, so a renamed flag changes only help texts and diagnostics. */
export const flags = {
  copyLane: "--schedule=copyStream",
  inPlace: "--schedule=inPlace",
  ownLast: "--schedule=ownLast",
  splitChunks: "--schedule=splitChunks",
  computeStreams: "--schedule=computeStreams",
  batchSignals: "--schedule=batchSignals",
  smMargin: "--schedule=smMargin",
  streams: "--schedule=streams",
  /** Of `run`: the order of steps. */
  order: "--interleaving",
  choice: "--schedule",
  backend: "--backend",
  p2p: "--schedule=p2p",
  protocol: "--schedule=protocol",
  noOverlap: "--schedule=overlap=false",
  interStreamSync: "--schedule=interStreamSync",
  reshardingAfter: "--schedule=insertReshardingAfter",
  accumulate: "--schedule=accumulate",
  noDeallocate: "--schedule=deallocate=false",
  noShrink: "--schedule=shrink=false",
} as const;

/** Options of the API that may be renamed. */
export const apiNames = {
  copyLane: "copyStream",
  schedule: "schedule",
  inPlace: "inPlace",
  ownLast: "ownLast",
  splitChunks: "splitChunks",
  computeStreams: "computeStreams",
  batchSignals: "batchSignals",
  smMargin: "smMargin",
} as const;
