/**
 * `record` walks one rank's host program once, for given sizes, and writes a flat list of commands with exact operands.
 * It unrolls loops, takes branches and evaluates indices. Work that a library does on its own streams becomes explicit
 * commands. docs/commands.md defines the commands.
 */
import type { CommandList } from "../commands/command-list.ts";
import type { View } from "../commands/view.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import type { HostProgram } from "../host/nodes.ts";
import { validateHostProgram } from "../host/validate/validate.ts";
import { isChunk, type TensorId } from "../ir/domain.ts";
import { withOrigins } from "../ir/origin.ts";
import { differs, type RankRules } from "../host/alike/rank-rules.ts";
import { type Alike, createAlike } from "./alike/alike.ts";
import { type AlikeRecording, alikeRecording } from "./alike/alike-lists.ts";
import { contiguousTemporary, emitCopy, release } from "./launch.ts";
import { addBuffer, bind, dropAll, dropMemory, finishedBuffers } from "./memory.ts";
import { recordScope } from "./statements/statement.ts";
import { createRecorder, type Recorder, type RecorderOptions } from "./recorder.ts";
import { bufferRequest, findView, isHere, tensorOf } from "./tensors.ts";
import { createCommon, type Common } from "./common.ts";
import { sameElements } from "./views.ts";

/**
 * The commands of one rank. Throws a DiagnosticError if the program is invalid, in general or for these sizes. Pass
 * the same `common` for all ranks.
 */
export function recordHost(program: HostProgram, options: RecorderOptions, common = createCommon()): CommandList {
  const list = withOrigins(program.tensors, () => recorded(program, options, common, null));
  return { ...list, rank: options.rank };
}

/**
 * Records several ranks of a class at once; null if recording fails on one of them. Their lists are equal to those of
 * `recordHost`. Throws UnlikeError if the ranks differ in more than `rules` and the recording can note.
 */
export function recordAlike(
  program: HostProgram,
  rules: RankRules,
  ranks: readonly number[],
  options: Omit<RecorderOptions, "rank">,
  common: Common,
): AlikeRecording | null {
  const alike = createAlike(ranks, differs(rules) ? rules : null);
  const before = common.latest;
  try {
    return withOrigins(program.tensors, () => {
      const list = recorded(program, { ...options, rank: null }, common, alike);
      return alikeRecording(alike, list, common.statements(program));
    });
  } catch (error) {
    common.latest = before;
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

function recorded(
  program: HostProgram,
  options: Recorder["options"],
  common: Common,
  alike: Alike | null,
): Omit<CommandList, "rank"> {
  requireValid(program, common);
  const recorder = createRecorder(program, options, common, alike);
  bindArguments(recorder, "input", program.inputs);
  const outputs = bindArguments(recorder, "output", program.outputs);
  recordScope(recorder, program.body);
  copyRebound(recorder, outputs);
  if (options.allocator === "pytorch") dropAll(recorder.memory, recorder.streams.caller);
  else dropChunks(recorder);
  const { memory, streams, tape } = recorder;
  common.latest = tape;
  return {
    kind: "CommandList",
    streams: streams.infos,
    buffers: finishedBuffers(memory),
    kernels: tape.kernels,
    pairs: tape.pairs,
    peerCollectives: tape.peerCollectives,
    eventCount: tape.eventCount,
    commands: tape.commands,
    origins: tape.origins,
  };
}

function requireValid(program: HostProgram, { valid }: Common): void {
  if (valid.has(program)) return;
  const findings = validateHostProgram(program);
  if (findings.length > 0) throw new DiagnosticError(findings);
  valid.add(program);
}

function dropChunks(recorder: Recorder): void {
  const { memory, streams } = recorder;
  for (const id of memory.bindings.keys()) {
    if (isChunk(tensorOf(recorder, id))) dropMemory(memory, id, streams.current);
  }
}

/**
 * Makes a buffer for every input and output with data on this rank. If a tensor is both, a second buffer holds a copy
 * of the input, which is the output from then on. An output over an input has the input's buffer.
 */
function bindArguments(
  recorder: Recorder,
  role: "input" | "output",
  ids: readonly TensorId[],
): ReadonlyMap<TensorId, View> {
  const { memory, streams } = recorder;
  const { outputs, aliases = [] } = recorder.program;
  const over = new Set(aliases.map(({ input }) => input));
  const views = new Map<TensorId, View>();
  ids.forEach((id, position) => {
    const tensor = tensorOf(recorder, id);
    if (!isHere(recorder, tensor)) return;
    const input = findView(recorder, id);
    if (input !== null && over.has(id)) return views.set(id, input);
    const output = role === "input" && over.has(id) ? outputs.indexOf(id) : -1;
    const view = addBuffer(memory, bufferRequest(recorder, tensor), role, position, output < 0 ? {} : { output });
    if (input !== null) emitCopy(recorder, input, view);
    bind(memory, id, { view, owns: true, aliasedBy: null }, streams.current);
    views.set(id, view);
  });
  return views;
}

/** Copies outputs that end up bound to other memory, such as a slice, to the buffers that the caller reads. */
function copyRebound(recorder: Recorder, outputs: ReadonlyMap<TensorId, View>): void {
  const { tape } = recorder;
  tape.statement = null;
  tape.origin = null;
  tape.path.push(recorder.program.body.length);
  const rebound = [...outputs].flatMap(([id, own]) => {
    const view = findView(recorder, id);
    return view === null || sameElements(view, own) ? [] : [{ view, own }];
  });
  const overwritten = new Set(rebound.map(({ own }) => own.buffer));
  // Save the contents of rebound outputs before any output is overwritten.
  const copies = rebound.map(({ view, own }) => {
    if (!overwritten.has(view.buffer)) return { from: view, own, temporary: null };
    const temporary = contiguousTemporary(recorder, view);
    emitCopy(recorder, view, temporary);
    return { from: temporary, own, temporary };
  });
  for (const { from, own, temporary } of copies) {
    emitCopy(recorder, from, own);
    if (temporary !== null) release(recorder, temporary);
  }
}
