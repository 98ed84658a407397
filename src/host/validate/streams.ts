/**
 * A stream without an index exists from the GetCurrentStream that binds it or, if there is none, from the first
 * SetCurrentStream that makes it current. Used earlier, it holds nothing to wait for, or becomes another stream later:
 *
 *   Synchronize Stream 0                 refused: the next line binds Stream 0
 *   GetCurrentStream into Stream 0
 *
 * As for tensors, every path that may run counts: a use is reported where no path makes the stream.
 */
import { at } from "../../support/invariant.ts";
import type { HostStream, Statement, StreamId } from "../nodes.ts";
import type { Fault, Report } from "./fault.ts";

export function checkStreams(statements: readonly Statement[], streams: readonly HostStream[], report: Report): void {
  const bound = new Set<StreamId>();
  for (const each of statements) if (each.kind === "GetCurrentStream") bound.add(each.stream);
  const known = new Set<StreamId>();
  for (const statement of statements) {
    if (statement.kind === "GetCurrentStream") known.add(statement.stream);
    else if (statement.kind === "SetCurrentStream" || statement.kind === "Synchronize") {
      const { kind, stream } = statement;
      const own = kind === "SetCurrentStream" && !bound.has(stream);
      if (at(streams, stream).index === null && !known.has(stream) && !own) {
        report(statement, unknownFault(stream, bound.has(stream)));
      }
      // Each stream is reported once.
      known.add(stream);
    }
  }
}

function unknownFault(stream: StreamId, later: boolean): Fault {
  return {
    message: `Stream ${stream} is used before it exists`,
    found: later
      ? `the GetCurrentStream into Stream ${stream} comes later`
      : `nothing has made Stream ${stream} current`,
    expected: "a stream that an earlier GetCurrentStream binds or SetCurrentStream makes current",
    help: later ? "move the GetCurrentStream before its first use" : "synchronize with a stream that has work",
  };
}
