/** The public API of `braid`: runs in Node and in a browser. */
export { DiagnosticError, renderDiagnostic, type Diagnostic, type Place } from "./diagnostics/diagnostic.ts";
export { diagnosticCodes, type DiagnosticCode } from "./diagnostics/codes.ts";
export type { DType } from "./numerics/dtype.ts";
export { DeviceMesh } from "./ir/device-mesh.ts";
export type { FusionData } from "./ir/fusion-data.ts";
export { Fusion, isFusion } from "./ir/api/fusion.ts";
export type { TensorView } from "./ir/api/tensor-view.ts";
export type { IterDomain } from "./ir/api/iter-domain.ts";
export * from "./ir/api/ops.ts";
export { isProgram, program } from "./ir/api/program.ts";
export type { HostProgram, Statement } from "./host/nodes.ts";
export { print, printFusion, printProgramOfStage, type PrintOptions } from "./host/print.ts";
export { lower, type LowerOptions, runPass } from "./passes/lower.ts";
export { passes } from "./passes/pipeline.ts";
