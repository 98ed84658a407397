/**
 * The thread that evaluates a program file for build-apart.ts. It loads only the API that builds programs and answers
 * with plain data. It is then ended, with whatever the file has left running.
 */
import process from "node:process";
import { workerData } from "node:worker_threads";
import { answerTo } from "./build-here.ts";
import type { BuildAnswer, BuildStart } from "./build-request.ts";

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
