/** nvFuser's multi-device tests by file, and Braid's own. */
import { annotatedCases } from "./annotated-cases.ts";
import { loweredCommunicationCases } from "./lowered-communication-cases.ts";
import { communicationCases, hostIrCases, overlapCases } from "./host-program-cases.ts";
import { peerMemoryCases } from "./peer-memory-cases.ts";
import type { ReferenceCase } from "./reference-case.ts";
import { routeCases } from "./route-cases.ts";
import { streamParallelCases } from "./stream-parallel-cases.ts";

export const referenceCases: Readonly<Record<string, readonly ReferenceCase[]>> = {
  stream_parallel_type: streamParallelCases,
  host_ir: [...hostIrCases, ...peerMemoryCases],
  host_ir_overlap: overlapCases,
  communications: communicationCases,
  lower_communication: loweredCommunicationCases,
  annotated: annotatedCases,
  routes: routeCases,
};
