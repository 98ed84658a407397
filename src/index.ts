/** The public API of `@braid-compiler/braid`, what programs and their users call: runs in Node and in a browser. */
export { DiagnosticError, renderDiagnostic, type Diagnostic, type Place } from "./diagnostics/diagnostic.ts";
export { diagnosticCodes, type DiagnosticCode } from "./diagnostics/codes.ts";
export type { DType } from "./numerics/dtype.ts";
export { Tensor } from "./numerics/tensor/host-tensor.ts";
export { DeviceMesh } from "./ir/device-mesh.ts";
export type { Alias, FusionData } from "./ir/fusion-data.ts";
export { Fusion, type OutputOptions } from "./ir/api/fusion.ts";
export type { TensorView } from "./ir/api/tensor-view.ts";
export type { IterDomain } from "./ir/api/iter-domain.ts";
export * from "./ir/api/ops.ts";
export { type GradientRequest, gradients } from "./ir/api/gradients.ts";
export { importModel } from "./import/import-model.ts";
export { program } from "./host/program-file.ts";
export type { HostProgram, Statement } from "./host/nodes.ts";
export { HostProgramBuilder } from "./host/build/builder.ts";
export { parse, type ParseOptions } from "./host/parse/parse.ts";
export { print, type PrintOptions } from "./host/print/print.ts";
export { pipeline, type PipelineRequest } from "./compile/pipeline/build-pipeline.ts";
export {
  type OrderRequest,
  type PipelineOrder,
  pipelineOrders,
  type PipelinePass,
  type PipelineStep,
} from "./compile/pipeline/orders.ts";
export { type SavedTensor, type SavePolicy, splitBackward, type SplitPrograms } from "./compile/split-backward.ts";
export { lower, type LowerOptions } from "./compile/lower.ts";
export { record } from "./compile/record.ts";
export type { RecordOptions } from "./compile/record.ts";
export type { CommandList } from "./commands/command-list.ts";
export { link } from "./commands/link/link.ts";
export type { Program } from "./commands/program.ts";
export { type AnyCompilation, compile, type Compilation, type CompileOptions, type Target } from "./compile/compile.ts";
export type { Lowered, ProgramSource, Signature } from "./compile/lower-all.ts";
export { choose } from "./tune/choose/choose.ts";
export type { ChooseOptions } from "./tune/choose/consider.ts";
export type { Considered } from "./tune/choose/decide.ts";
export { explain, type Explanation, type ExplainOptions } from "./explain/explain.ts";
export type { Cause } from "./explain/causes.ts";
export type { ExplainedRun } from "./explain/explain-run.ts";
export type { PredictedInterval } from "./explain/interval.ts";
export type { Assumption } from "./simulate/assumption.ts";
export type { ByClass, CommandClass } from "./simulate/command-class.ts";
export type { RegionChoice, ScheduleChoice } from "./tune/choose/schedule-choice.ts";
export { verify, type VerifyOptions, type VerifyReport } from "./verify/verify.ts";
export type { CommandPlace, Finding, OrderEdge, SharedMemory } from "./verify/finding.ts";
export { simulate, type SimulateOptions, type Simulation } from "./simulate/simulate.ts";
export type {
  FixedCosts,
  MachineProfile,
  AttentionRates,
  GemmGrid,
  BetweenHosts,
  ReductionTimings,
  Residuals,
  Sustained,
  Timing,
  TransferTimings,
} from "./simulate/machine-profile.ts";
export { parseProfile } from "./simulate/parse-profile.ts";
export type { Backend, Group, Prepared, RunReport } from "./backends/backend.ts";
export type { TraceEvent, TraceOrigin } from "./trace/event-table.ts";
export type { ExecutorOptions, ExecutorReport, RunOptions } from "./executor/executor-options.ts";
export type { ExecutorMemory } from "./executor/prepared-entries.ts";
export { MultiDeviceExecutor } from "./executor/multi-device-executor.ts";
export type { InputArgument, Shards, TensorArgument } from "./executor/tensor-arguments.ts";
export type * from "./types.ts";
