/**
 * `@braid-compiler/braid/internals`: single stages and what they print. Braid's own tests, benchmarks and pages call
 * them. A new version may change them without notice.
 */
export { isFusion } from "./ir/api/fusion.ts";
export { isProgramFile } from "./host/program-file.ts";
export { validateHostProgram } from "./host/validate/validate.ts";
export { parseContainers, type ParsedContainer } from "./host/parse/parse.ts";
export { printFusion, printProgramOfStage } from "./host/print/print.ts";
export { runPass } from "./compile/lower.ts";
export { passes } from "./passes/pipeline.ts";
export { convertOpToCommunication } from "./passes/communicate/convert-op-to-communication.ts";
export { deallocate } from "./passes/buffers/deallocate.ts";
export { shrinkStreamBuffers } from "./passes/buffers/shrink-stream-buffers.ts";
export { streamParallelType } from "./passes/stream-loops/stream-parallel-type.ts";
export { requireVerified } from "./compile/compile.ts";
export { annotationWarnings } from "./compile/annotation-warnings.ts";
export { reshardings, type ReshardingsOptions } from "./compile/reshardings.ts";
export type { Resharding } from "./passes/moves/list-reshardings.ts";
export { printProgram } from "./commands/print-program.ts";
export { alignmentError, alignTraces } from "./trace/align-traces.ts";
export { type ChromeTrace, chromeTrace, chromeTraceText } from "./trace/chrome/chrome-trace.ts";
export { overlapOf, type RankOverlap } from "./trace/overlap.ts";
