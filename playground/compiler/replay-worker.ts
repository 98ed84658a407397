/** The worker that replays a counterexample. It has what a run needs, which the first load of the page does not. */
import { analyse } from "./analyse.ts";
import type { ReplayAnswer, ReplayRequest } from "./messages.ts";
import { replayOf } from "./replay.ts";

addEventListener("message", ({ data }: MessageEvent<ReplayRequest>) => {
  void answerTo(data).then((answer) => {
    postMessage(answer);
  });
});

async function answerTo(request: ReplayRequest): Promise<ReplayAnswer> {
  try {
    const analysed = analyse(request.compile, () => {}, { repairs: false });
    return { kind: "replayed", replay: analysed === null ? null : await replayOf(analysed, request) };
  } catch (error) {
    return { kind: "failed", stack: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
