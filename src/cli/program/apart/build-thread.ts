/**
 * The thread that evaluates a program file for build-apart.ts. It loads only the API that builds programs and answers
 * with plain data. It is then ended, with whatever the file has left running.
 */
import process from "node:process";
import { workerData } from "node:worker_threads";
import { DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { UnreadableError } from "../user-code.ts";
import { buildHere } from "./build-here.ts";
import type { BuildAnswer, BuildStart, ThreadRequest } from "./build-request.ts";

async function answerTo(request: ThreadRequest): Promise<BuildAnswer> {
  try {
    return { kind: "built", built: await buildHere(request) };
  } catch (error) {
    if (error instanceof DiagnosticError) return { kind: "refused", diagnostics: error.diagnostics };
    if (error instanceof UnreadableError) return unreadable(request.file);
    return { kind: "failed", stack: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

function unreadable(file: string): BuildAnswer {
  const diagnostic = {
    code: "program-threw",
    message: "the program file threw something that cannot be read",
    place: { kind: "file", path: file },
    found: "a value whose text or whose stack is an error itself, or a method of the language that it replaced",
    expected: "code that runs without an error",
    help: 'throw new Error("what is wrong")',
  } as const;
  return { kind: "refused", diagnostics: [diagnostic] };
}

/** Structured clone refuses no data of Braid's, only a host program that the file wrote by hand. */
function unsendable(file: string, error: unknown): BuildAnswer {
  const diagnostic = {
    code: "program-invalid",
    message: "the program holds more than data",
    place: { kind: "file", path: file },
    found: error instanceof Error ? error.message : String(error),
    expected: "a HostProgram as HostProgramBuilder or parse makes it",
    help: "build the host program with HostProgramBuilder",
  } as const;
  return { kind: "refused", diagnostics: [diagnostic] };
}

/** The thread ends as soon as it has answered. Output that is still in its buffer would be lost. */
async function written(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0) return;
  await new Promise<void>((resolve) => {
    stream.write("", () => {
      resolve();
    });
  });
}

// oxlint-disable-next-line typescript/no-unsafe-assignment -- workerData is any; build-apart.ts gives a BuildStart
const { port, ...request }: BuildStart = workerData;
const answer = await answerTo(request);
await Promise.all([written(process.stdout), written(process.stderr)]);
try {
  port.postMessage(answer);
} catch (error) {
  port.postMessage(unsendable(request.file, error));
}
