/**
 * Takes from a worker what a user's program has no use for, before it is evaluated: messages, other workers, storage and
 * the network. The page's Content-Security-Policy forbids the network too; this is for clear errors and against spam.
 */

export interface Sandbox {
  /** Sends the one answer. */
  readonly send: (message: unknown) => void;
  readonly evaluate: (code: string) => unknown;
}

const removed = [
  "postMessage",
  "close",
  "importScripts",
  "fetch",
  "XMLHttpRequest",
  "WebSocket",
  "WebTransport",
  "EventSource",
  "Worker",
  "SharedWorker",
  "BroadcastChannel",
  "MessageChannel",
  "indexedDB",
  "caches",
  "navigator",
  "setTimeout",
  "setInterval",
];

export function closeSandbox(): Sandbox {
  const send = postMessage.bind(globalThis);
  for (const name of removed) {
    for (let owner: object | null = globalThis; owner !== null; owner = Reflect.getPrototypeOf(owner)) {
      Reflect.deleteProperty(owner, name);
    }
  }
  // As a script of its own: in the global scope, strict or not as the text says.
  // oxlint-disable-next-line no-eval -- a worker whose whole purpose is to run the user's program
  return { send, evaluate: (code): unknown => globalThis.eval(code) };
}
