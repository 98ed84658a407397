/**
 * The types that public signatures mention: data of Fusions, host programs, command lists and Programs, and options.
 * Names that the API has a class for end in `Data` here.
 */
export type * from "./host/nodes.ts";
export type { ByteSource } from "./import/byte-source.ts";
export type { ImportedGradients, ImportedInput, ImportedModel, ImportedSize, ImportOptions } from "./import/model.ts";
export type {
  CollectiveType,
  CommunicationType,
  StepType,
  CommunicatorBackend,
  OneSidedProtocol,
  ReduceOpType,
} from "./host/collectives.ts";
export type {
  BuildContext,
  BuildRequest,
  Built,
  Parameters,
  ParametersLike,
  ParameterValue,
  ProgramFile,
  ProgramOptions,
} from "./host/program-file.ts";
export type {
  AxisSpec,
  Awaitable,
  CommunicationOptions,
  ContractionOptions,
  LoopIndex,
  LoopRange,
  LoopSteps,
  OutputOption,
  PeerOptions,
  ScalarLike,
  SharedPeer,
  TensorOptions,
} from "./host/build/options.ts";
export type { ScalarArithmetic } from "./host/build/builder.ts";
export type { RootMeaning } from "./host/parse/container.ts";
export type { CotangentUse } from "./ir/fusion-data.ts";
export type { NestedDevices } from "./ir/device-mesh.ts";
export type { IterDomain as IterDomainData, IterDomainId, IterType, MemoryType, TensorId } from "./ir/domain.ts";
export type { Tensor as TensorData, TensorDomain, Transform } from "./ir/domain.ts";
export type { Extent } from "./ir/api/extent.ts";
export type { RandomOptions } from "./ir/api/ops/random.ts";
export type { IotaOptions } from "./ir/api/ops/creation.ts";
export type { SplitOptions } from "./ir/api/tensor-view.ts";
export type { TensorHandle } from "./ir/api/handle.ts";
export type * from "./ir/ops/op.ts";
export type { CausalMask } from "./ir/ops/kinds/attention/attention.ts";
export type { PadWidth } from "./ir/ops/kinds/views/pad.ts";
export type { DIDType, DimensionName, ParallelType } from "./ir/parallel-type.ts";
export type { Scalar, ScalarOp } from "./ir/scalar/scalar.ts";
export type { Sizes } from "./ir/sizes.ts";
export type { TensorOf } from "./numerics/tensor/host-tensor.ts";
export type { NestedValues } from "./numerics/tensor/host-tensor.ts";
export type { Value } from "./numerics/tensor/host-tensor.ts";
export type * from "./passes/pass.ts";
export type { LoweringOptions } from "./passes/options.ts";
export type { HostPass, PassObserver } from "./passes/pipeline.ts";
export type { Id } from "./support/invariant.ts";
export type { HasFusionData } from "./compile/lower.ts";
export type { OptionValue } from "./compile/options.ts";
export type { RegionOptions } from "./compile/compile.ts";
export type { NamedNumbers } from "./compile/record.ts";
export type { HostClass } from "./compile/lowering-class.ts";
export type { RankRules, ScalarRule } from "./host/alike/rank-rules.ts";
export type * from "./commands/buffer.ts";
export type * from "./commands/command-list.ts";
export type * from "./commands/command.ts";
export type * from "./commands/kernel.ts";
export type * from "./commands/program.ts";
export type { View } from "./commands/view.ts";
export type { PrintProgramOptions } from "./commands/print-program.ts";
export type { Schedule } from "./compile/options/schedule.ts";
export type { CopyStream } from "./schedule/rewrites/copy-stream.ts";
export type { ScheduleOptions } from "./schedule/schedule.ts";
export type { ScheduleCandidate } from "./tune/choose/candidates.ts";
export type { MarginGrid } from "./simulate/machine-profile.ts";
export type { WantedNotes } from "./verify/explain/notes.ts";
export type { LineOf } from "./verify/order/graph.ts";
export type { ProgramSize } from "./verify/verify.ts";
export type { ChromeEvent, Complete, Counter, FlowEnd, FlowStart, Metadata } from "./trace/chrome/chrome-trace.ts";
export type { Unplaced } from "./executor/multi-device-executor.ts";
export type { ExecuteOptions, OpenOptions } from "./backends/backend.ts";
export type { MentionedTensor } from "./diagnostics/diagnostic.ts";
export type { Annotation, Relation, TensorOrigin } from "./ir/domain.ts";
export type { Derivation } from "./ir/fusion-data.ts";
export type { Float8Recipe, Marker, MarkerName } from "./ir/fusion-data.ts";
export type { NumberOperand } from "./ir/ops/number-operand.ts";
export type { CallSite } from "./support/call-site.ts";
export type { OnProgress } from "./support/progress.ts";
export type { TracedRunInfo } from "./trace/chrome/chrome-trace.ts";
export type { Alternative, ChangedOptions, LeftOutForm } from "./explain/alternatives.ts";
export type { Judge } from "./passes/moves/annotation-conflicts.ts";
export type { LoopRefusal } from "./passes/stream-loops/loop-refusals.ts";
export type { LoopRule } from "./passes/stream-loops/loop-refusals.ts";
export type { FusionObstacle } from "./passes/stream-loops/group/group-loops.ts";
export type { ExplainedLayers } from "./explain/explain.ts";
export type { ExplainedCause } from "./explain/explain-run.ts";
export type { CompiledFewer, CompiledLayers, Layered } from "./tune/regions/fewer-layers.ts";
export type { Floor } from "./explain/floor.ts";
export type { IdlePart } from "./explain/idle/idle-time.ts";
export type { RegionLoad } from "./explain/idle/region-loads.ts";
export type { RegionRow } from "./explain/region-rows.ts";
