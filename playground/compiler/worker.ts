/** The worker of both kinds: it evaluates one user's program and is then ended, or it compiles one program after another. */
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { analyse, predictedTime } from "./analyse.ts";
import { buildProgram } from "./build-program.ts";
import type { WorkAnswer, WorkerLoaded, WorkerRequest, WorkPart, WorkRequest } from "./messages.ts";
import { otherOptions } from "./other-options.ts";
import { closeSandbox } from "./sandbox.ts";

addEventListener("message", ({ data }: MessageEvent<WorkerRequest>) => {
  if (data.kind === "build") {
    const { send, evaluate } = closeSandbox();
    send(buildProgram(data, evaluate));
  } else work(data);
});

const loaded: WorkerLoaded = { kind: "loaded" };
postMessage(loaded);

function work(request: WorkRequest): void {
  const start = performance.now();
  const answer = (part: WorkPart): void => {
    const message: WorkAnswer = { id: request.id, answer: part };
    postMessage(message);
  };
  try {
    run(request, answer);
  } catch (error) {
    if (error instanceof DiagnosticError) answer({ kind: "refused", diagnostics: error.diagnostics });
    else answer({ kind: "failed", stack: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
  answer({ kind: "done", milliseconds: performance.now() - start });
}

function run(request: WorkRequest, answer: (part: WorkPart) => void): void {
  switch (request.kind) {
    case "compile":
      analyse(request, answer);
      return;
    case "options":
      answer({ kind: "options", found: otherOptions(request.compile) });
      return;
    case "curve": {
      const { points, options, profile } = request;
      const milliseconds = points.map((point) =>
        point === null ? null : predictedTime(point.source, point.devices, options, profile),
      );
      answer({ kind: "curve", milliseconds });
      return;
    }
  }
}
