/**
 * `record` walks one rank's host program once, for given sizes, and writes down everything it does: a flat list of commands with
 * exact operands. Loops are unrolled, branches taken, indices evaluated; what a library does on streams of its own is
 * spelled out. docs/commands.md says what the commands mean.
 */
import type { CommandList } from "../commands/command.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import type { HostProgram } from "../host/nodes.ts";
import { validateHostProgram } from "../host/validate.ts";
import type { TensorId } from "../ir/domain.ts";
import { emitCopy } from "./launch.ts";
import { addBuffer, bind, finishedBuffers } from "./memory.ts";
import { type RecordOptions, resolveRecordOptions } from "./options.ts";
import { recordScope } from "./record-statement.ts";
import { bufferRequest, createRecorder, findView, isHere, type Recorder, tensorOf } from "./recorder.ts";

/** Throws a DiagnosticError for a program that is not valid, or not for these sizes. */
export function record(program: HostProgram, options: RecordOptions): CommandList {
  const resolved = resolveRecordOptions(options);
  const findings = validateHostProgram(program);
  if (findings.length > 0) throw new DiagnosticError(findings);
  const recorder = createRecorder(program, resolved);
  bindArguments(recorder, "input", program.inputs);
  bindArguments(recorder, "output", program.outputs);
  recordScope(recorder, program.body);
  const { memory, streams, tape } = recorder;
  return {
    kind: "CommandList",
    rank: resolved.rank,
    streams: streams.infos,
    buffers: finishedBuffers(memory),
    kernels: tape.kernels,
    pairs: tape.pairs,
    eventCount: tape.eventCount,
    commands: tape.commands,
    origins: tape.origins,
  };
}

/**
 * A buffer for every input or output that this rank has a part of. A tensor that is both starts as a copy of the input and is the
 * output from then on.
 */
function bindArguments(recorder: Recorder, role: "input" | "output", ids: readonly TensorId[]): void {
  const { memory, streams } = recorder;
  ids.forEach((id, position) => {
    const tensor = tensorOf(recorder, id);
    if (!isHere(recorder, tensor)) return;
    const view = addBuffer(memory, bufferRequest(recorder, tensor), role, position);
    const input = findView(recorder, id);
    if (input !== null) emitCopy(recorder, input, view);
    bind(memory, id, { view, owns: true, aliasedBy: null }, streams.current);
  });
}
