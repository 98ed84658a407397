/** Wait: the current stream waits for the latest post of a communication. */
import type { Wait } from "../../host/nodes.ts";
import { unreachable } from "../../support/unreachable.ts";
import type { Post } from "../posts.ts";
import { fail, type Recorder } from "../recorder.ts";
import { order, waitFor } from "../streams.ts";
import { emit } from "../tape.ts";

const awaited: Post = { kind: "awaited" };

/**
 * A library's transfer can be waited for once, as in nvFuser; a one-sided half on several streams. Throws `not-posted`,
 * `already-waited`.
 */
export function recordWait(recorder: Recorder, { target }: Wait): void {
  const { posts, streams, tape } = recorder;
  const post = posts.get(target);
  if (post === undefined) {
    return fail(recorder, {
      code: "not-posted",
      message: `communication ${target} has not been posted`,
      found: `Wait before any post of ${target} in this run`,
      expected: "a post before the Wait",
      help: "post the communication on the same path of branches and iterations, before the Wait",
    });
  }
  const { current } = streams;
  switch (post.kind) {
    case "awaited":
      return fail(recorder, {
        code: "already-waited",
        message: `communication ${target} is waited for twice`,
        found: `a second Wait since the latest post of ${target}`,
        expected: "one Wait per post",
        help: "remove the second Wait; another stream that needs the result synchronizes with the stream that waited",
      });
    case "nothing":
      posts.set(target, awaited);
      return;
    case "event":
      posts.set(target, awaited);
      return waitFor(tape, post.event, current);
    case "signals":
      if (post.stream !== null) order(streams, post.stream, current);
      for (const signal of post.signals) emit(tape, { ...signal, stream: current });
      // A signal can be taken once; a second Wait follows the stream that took it.
      posts.set(target, { kind: "stream", stream: current });
      return;
    case "stream":
      return order(streams, post.stream, current);
    default:
      return unreachable(post);
  }
}
