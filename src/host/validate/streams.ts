/**
 * Streams without an index: each is what GetCurrentStream bound to it, or a stream of its own from the first SetCurrentStream on. One
 * that neither has brought into being holds nothing to wait for, and one that is bound later would become another stream midway.
 *
 *   Synchronize Stream 0                 refused: Stream 0 is bound one line below
 *   GetCurrentStream into Stream 0
 *
 * As for tensors, every path that may run counts: a use is reported where no path brings the stream into being.
 */
import { at } from "../../support/invariant.ts";
import type { Fault } from "./fault.ts";
import type { HostProgram, Statement, StreamId } from "../nodes.ts";
import { walk } from "../traverse.ts";

export function checkStreams(
  { body, streams }: HostProgram,
  report: (statement: Statement, fault: Fault) => void,
): void {
  const statements = walk(body);
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
      // Reported once.
      known.add(stream);
    }
  }
}

function unknownFault(stream: StreamId, later: boolean): Fault {
  return {
    message: `Stream ${stream} is used before it exists`,
    found: later
      ? `the GetCurrentStream into Stream ${stream} stands later`
      : `nothing has made Stream ${stream} current`,
    expected: "a stream that an earlier GetCurrentStream binds or SetCurrentStream makes current",
    help: later ? "move the GetCurrentStream before its first use" : "synchronize with a stream that holds work",
  };
}
