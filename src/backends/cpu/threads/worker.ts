/** The entry point of a worker thread: keeps the prepared Programs and takes part in their runs. */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { invariant } from "../../../support/invariant.ts";
import { type FromWorker, isIdentity, type ToWorker, type WorkerIdentity } from "./messages.ts";
import { createWorkerProgram, failureOf, type WorkerProgram } from "./worker-program.ts";

function serve(port: MessagePort, worker: WorkerIdentity): void {
  const programs = new Map<number, WorkerProgram>();
  const answer = (message: ToWorker): FromWorker | null => {
    switch (message.kind) {
      case "prepare":
        try {
          programs.set(message.id, createWorkerProgram(message.shared, worker));
          return { kind: "prepared", id: message.id, failure: null };
        } catch (error) {
          return { kind: "prepared", id: message.id, failure: failureOf(error).text };
        }
      case "run": {
        const program = programs.get(message.id);
        invariant(program !== undefined, "a Program is prepared before it runs", { id: message.id });
        return { kind: "ran", id: message.id, failure: program.run(message.traced) };
      }
      case "release":
        programs.delete(message.id);
        return null;
    }
  };
  port.on("message", (message: ToWorker) => {
    const reply = answer(message);
    if (reply !== null) port.postMessage(reply);
  });
}

invariant(parentPort !== null, "this file is a worker thread's");
const identity: unknown = workerData;
invariant(isIdentity(identity), "a worker has its identity", { identity });
serve(parentPort, identity);
