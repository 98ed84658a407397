/**
 * Where a thread runs that does not answer: its inspector pauses it, even in a loop without an end, and reads its
 * stack. The thread does not go on, so it is ended afterwards.
 */
import { type NodeWorker, Session } from "node:inspector";
import { fileURLToPath } from "node:url";
import { type InferOutput, array, is, literal, number, object, string } from "valibot";
import { originalPosition, type Position } from "../source-maps.ts";
import { isUsers } from "../user-code.ts";

export interface Paused extends Position {
  readonly path: string;
}

/** Milliseconds. A thread that only waits for something runs no line. */
const patience = 1000;

/** The url of a frame is empty, that of its script is not. */
const scriptMessage = object({
  method: literal("Debugger.scriptParsed"),
  params: object({ scriptId: string(), url: string() }),
});

const location = object({ scriptId: string(), lineNumber: number(), columnNumber: number() });

const pausedMessage = object({
  method: literal("Debugger.paused"),
  params: object({ callFrames: array(object({ location })) }),
});

const sourceMessage = object({ id: number(), result: object({ scriptSource: string() }) });

type Location = InferOutput<typeof location>;

/** The innermost line of the user's code. Null if the thread runs none soon. `url` ends in the name of its file. */
export function pausedAt(url: string): Promise<Paused | null> {
  return new Promise((resolve) => {
    const session = new Session();
    session.connect();
    const timer = setTimeout(() => {
      end(null);
    }, patience);
    const end = (place: Paused | null): void => {
      clearTimeout(timer);
      // A thread that stays paused cannot be ended.
      send("Debugger.resume");
      session.disconnect();
      resolve(place);
    };
    let thread: string | null = null;
    let frame: { readonly path: string; readonly location: Location } | null = null;
    const paths = new Map<string, string>();
    const send = (method: string, params: object = {}): void => {
      if (thread === null) return;
      session.post("NodeWorker.sendMessageToWorker", {
        sessionId: thread,
        message: JSON.stringify({ id: 1, method, params }),
      });
    };
    session.on("NodeWorker.attachedToWorker", ({ params: { sessionId, workerInfo } }) => {
      if (!workerInfo.url.endsWith(url)) return;
      thread = sessionId;
      send("Debugger.enable");
      send("Debugger.pause");
    });
    session.on("NodeWorker.receivedMessageFromWorker", ({ params: { sessionId, message } }) => {
      if (sessionId !== thread) return;
      const received: unknown = JSON.parse(message);
      if (is(scriptMessage, received)) {
        const { scriptId, url: script } = received.params;
        paths.set(scriptId, script.startsWith("file:") ? fileURLToPath(script) : script);
      } else if (is(pausedMessage, received)) {
        const frames = received.params.callFrames.map((each) => ({
          path: paths.get(each.location.scriptId) ?? "",
          location: each.location,
        }));
        frame = frames.find(({ path }) => isUsers(path)) ?? null;
        if (frame === null) end(null);
        else send("Debugger.getScriptSource", { scriptId: frame.location.scriptId });
      } else if (frame !== null && is(sourceMessage, received)) {
        const generated = { line: frame.location.lineNumber + 1, column: frame.location.columnNumber + 1 };
        end({ path: frame.path, ...originalPosition(received.result.scriptSource, generated) });
      }
    });
    const enable: NodeWorker.EnableParameterType = { waitForDebuggerOnStart: false };
    session.post("NodeWorker.enable", enable);
  });
}
