/**
 * Evaluates a program file in a thread, so that nothing in it can end, block or keep the command. The thread has a time
 * limit and its own output, and answers with plain data. The command's own modules load meanwhile.
 */
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { packageFile } from "../../../backends/package-file.ts";
import { hostCount } from "../../../compile/host-count.ts";
import type { Options } from "../../../compile/options.ts";
import { type Diagnostic, DiagnosticError, type Place } from "../../../diagnostics/diagnostic.ts";
import type { BuiltData } from "../../../compile/program/revive.ts";
import type { BuildAnswer, BuildStart, ThreadRequest } from "./build-request.ts";
import { fileToBuild } from "../dump-file.ts";

const threadFile = "dist/cli/program/apart/build-thread.js";

type ThreadFlags = Options<"devices" | "devicesPerHost" | "set" | "timeout" | "reference">;

export interface ApartBuilding {
  /** As structured clone leaves it. Throws what `buildHere` throws, and `program-threw` if the file does not finish. */
  readonly result: () => Promise<BuiltData>;
  /** Prints beside the command's output. */
  readonly print: (text: string) => void;
}

/**
 * The result of `work`, while the program file is built, or a dump's reference; `work` gets null if there is none. What
 * the file prints goes to `print`, because the command's output is its result.
 */
export async function whileBuilding<T>(
  given: string,
  flags: ThreadFlags,
  print: (text: string) => void,
  work: (building: ApartBuilding | null) => Promise<T>,
): Promise<T> {
  const file = fileToBuild(given, flags);
  if (file === null) return work(null);
  const { devices, devicesPerHost, set, timeout } = flags;
  const thread = startThread({ file, devices, hosts: hostCount(devices, devicesPerHost), set }, print);
  const timer = setTimeout(() => {
    void place().then((where) => {
      thread.end(outOfTime(file, timeout, where));
    });
  }, timeout * 1000);
  try {
    return await work({
      result: async () => {
        const answer = await thread.answer;
        clearTimeout(timer);
        return builtOf(answer);
      },
      print,
    });
  } finally {
    clearTimeout(timer);
    thread.end(outOfTime(file, 0, null));
  }
}

/** Node's, of a thread that has nothing left to do while its module still awaits something. */
const unsettledStatus = 13;

interface BuildThread {
  readonly answer: Promise<BuildAnswer>;
  /** With this answer if it has none yet. */
  readonly end: (answer: BuildAnswer) => void;
}

function startThread(request: ThreadRequest, print: (text: string) => void): BuildThread {
  const { port1: port, port2 } = new MessageChannel();
  const worker = new Worker(packageFile(threadFile), {
    workerData: { ...request, port: port2 } satisfies BuildStart,
    transferList: [port2],
    execArgv: [],
    stdout: true,
    stderr: true,
  });
  for (const stream of [worker.stdout, worker.stderr]) stream.setEncoding("utf8").on("data", print);
  let resolve: (answer: BuildAnswer) => void = () => {};
  const answer = new Promise<BuildAnswer>((settle) => {
    resolve = settle;
  });
  const end = (given: BuildAnswer): void => {
    resolve(given);
    port.close();
    void worker.terminate();
  };
  port.on("message", end);
  worker.on("message", () => {
    end(unfinished(request.file, "a message of its own to the command", "return the program, and send nothing"));
  });
  worker.on("error", (error) => {
    // The thread ends by itself. To terminate it while Node handles its error may abort the process (Node 20).
    resolve(lost(request.file, error));
  });
  worker.on("exit", (status) => {
    // The answer may come after the end of the thread that has sent it.
    const last: { readonly message: BuildAnswer } | undefined = receiveMessageOnPort(port);
    const help = "remove process.exit, or throw an error to refuse parameters";
    end(
      last?.message ??
        (status === unsettledStatus
          ? unfinished(request.file, "an await that does not settle", "remove the await")
          : unfinished(request.file, `it ended its process with status ${status}`, help)),
    );
  });
  return { answer, end };
}

/** A thread answers with its own errors, so only the file can end it by one. */
function lost(file: string, error: Error): BuildAnswer {
  const isMemory = "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
  const help = isMemory ? "make the program from fewer or smaller arrays" : "catch the error, or correct the program";
  return unfinished(file, error.message.split("\n")[0] ?? "", help);
}

/** The line that the thread runs; null if it runs none. */
async function place(): Promise<FilePlace | null> {
  const { pausedAt } = await import("./paused-at.ts");
  const { displayPath } = await import("../user-code.ts");
  const paused = await pausedAt(threadFile);
  return paused === null ? null : { ...paused, path: displayPath(paused.path) };
}

type FilePlace = Omit<Extract<Place, { readonly kind: "file" }>, "kind">;

function outOfTime(file: string, seconds: number, where: FilePlace | null): BuildAnswer {
  const help = `end the loop that does not end, or allow more time with --timeout ${2 * seconds}`;
  return unfinished(file, `it still runs after ${seconds} s`, help, where ?? undefined);
}

function unfinished(file: string, found: string, help: string, where: FilePlace = { path: file }): BuildAnswer {
  const diagnostic: Diagnostic = {
    code: "program-threw",
    message: "the program file does not finish",
    place: { kind: "file", ...where },
    found,
    expected: "a file that builds its program and returns it",
    help,
  };
  return { kind: "refused", diagnostics: [diagnostic] };
}

function builtOf(answer: BuildAnswer): BuiltData {
  switch (answer.kind) {
    case "built":
      return answer.built;
    case "refused":
      throw new DiagnosticError(answer.diagnostics);
    case "failed": {
      const error = new Error("the thread of the program file failed");
      error.stack = answer.stack;
      throw error;
    }
  }
}
