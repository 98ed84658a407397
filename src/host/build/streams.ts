/** Streams of a HostProgramBuilder, and the statements that switch between them. */
import { call } from "../../ir/ops/call.ts";
import { makeId } from "../../support/ids.ts";
import { append, type BuilderState, requireRow, type ScalarLike, toScalar } from "./state.ts";
import type { HostStream, StreamId } from "../nodes.ts";

export function addStream({ streams }: BuilderState, index: ScalarLike | undefined): HostStream {
  const stream: HostStream = {
    id: makeId<StreamId>(streams.length),
    index: index === undefined ? null : toScalar(index),
  };
  streams.push(stream);
  return stream;
}

/** The methods and their statements. */
const kinds = {
  getCurrentStream: "GetCurrentStream",
  setCurrentStream: "SetCurrentStream",
  synchronize: "Synchronize",
} as const;

export function addStreamStatement(state: BuilderState, method: keyof typeof kinds, stream: HostStream): void {
  requireRow(state.streams, stream, "stream", call(method));
  append(state, { kind: kinds[method], stream: stream.id });
}
