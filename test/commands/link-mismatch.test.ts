/** A mismatch between ranks is a diagnostic that names both statements. All mismatches are reported at once. */
import { describe, expect, test } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import type { View } from "../../src/commands/view.ts";
import { type Diagnostic, DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { at } from "../../src/support/invariant.ts";
import { buildLists, type CollectiveParts, type ListBuilder } from "../machine/list-builder.ts";

function problemsOf(world: number, build: (list: ListBuilder, rank: number) => void): readonly Diagnostic[] {
  try {
    link(buildLists(world, build));
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    expect(error.diagnostics.map(({ code }) => code)).toEqual(error.diagnostics.map(() => "transfer-mismatch"));
    return error.diagnostics;
  }
  throw new Error("the lists were linked");
}

function onlyProblem(world: number, build: (list: ListBuilder, rank: number) => void): Diagnostic {
  const problems = problemsOf(world, build);
  expect(problems).toHaveLength(1);
  return at(problems, 0);
}

const team = [0, 1];
const half = (view: View): View => ({ ...view, dtype: "half" });

describe("collectives", () => {
  /** An Allreduce of two ranks, rank 1's changed. */
  const changed = (change: (parts: CollectiveParts) => CollectiveParts): Diagnostic =>
    onlyProblem(2, (list, rank) => {
      const parts = { team, reduceOp: "sum", input: list.input([8]), output: list.output([8]) } as const;
      list.statement(`Communication ${rank}`);
      list.collective(0, "Allreduce", rank === 1 ? change(parts) : parts);
    });

  test("of different types name both statements", () => {
    const problem = onlyProblem(2, (list, rank) => {
      list.statement(`Communication ${rank}`);
      const parts = { team, input: list.input([8]) };
      if (rank === 0) list.collective(0, "Allgather", { ...parts, output: list.output([2, 8]) });
      else list.collective(0, "Allreduce", { ...parts, reduceOp: "sum", output: list.output([8]) });
    });
    expect(problem).toEqual({
      code: "transfer-mismatch",
      message: "ranks 0 and 1 do not agree on the type of a collective",
      place: { kind: "command", rank: 1, stream: 0, text: "Communication 1" },
      found: "type Allreduce on rank 1, Allgather on rank 0",
      expected: "the same type on every rank of the team",
      help: "post the same collectives on a communicator in the same order on all ranks",
      notes: ["on rank 0: Communication 0"],
    });
  });

  test("with different reductions", () => {
    const { message, found } = changed((parts) => ({ ...parts, reduceOp: "amax" }));
    expect(message).toBe("ranks 0 and 1 do not agree on the reduction of a collective");
    expect(found).toBe("reduction amax on rank 1, sum on rank 0");
  });

  test("with different dtypes", () => {
    const { message, found, notes } = changed((parts) => ({ ...parts, output: parts.output && half(parts.output) }));
    expect(message).toBe("the views of an Allreduce differ in dtype");
    expect(found).toBe("half in the output of rank 1");
    expect(notes).toEqual(["on rank 0: Communication 0"]);
  });

  test("with different sizes", () => {
    const { message, found, expected } = changed((parts) => ({
      ...parts,
      input: parts.input && { ...parts.input, shape: [4] },
    }));
    expect(message).toBe("the views of an Allreduce differ in size");
    expect(found).toBe("4 elements in the input of rank 1");
    expect(expected).toBe("8 elements, as in the input of rank 0");
  });

  test("with shapes that have no common order", () => {
    const { message, found } = onlyProblem(2, (list, rank) => {
      const box = (view: View, shape: readonly number[]): View => ({ ...view, shape, strides: [4, 1] });
      const [input, output] = [list.input([12]), list.output([12])];
      const shape = rank === 0 ? [3, 2] : [2, 3];
      list.collective(0, "Allreduce", { team, reduceOp: "sum", input: box(input, shape), output: box(output, shape) });
    });
    expect(message).toBe("the views of an Allreduce differ in shape");
    expect(found).toBe("shape [2, 3] with strides [4, 1] in the output of rank 1");
  });

  test("without one part per rank", () => {
    const { message, found, expected } = onlyProblem(2, (list) => {
      list.collective(0, "Allgather", { team, input: list.input([8]), output: list.output([3, 8]) });
    });
    expect(message).toBe("the output of an Allgather on rank 0 does not have one slice per rank");
    expect(found).toBe("3 slices along axis 0");
    expect(expected).toBe("2 slices, one per rank on the other side");
  });

  test("that one rank never posts", () => {
    const problem = onlyProblem(3, (list, rank) => {
      const post = (name: string): void => {
        list.statement(`${name} of ${rank}`);
        list.collective(0, "Allgather", { team: [2, 0], input: list.input([8]), output: list.output([2, 8]) });
      };
      if (rank !== 1) post("first");
      if (rank === 0) post("second");
    });
    expect(problem.message).toBe("rank 2 does not take part in a collective of its team");
    expect(problem.place).toEqual({ kind: "command", rank: 0, stream: 0, text: "second of 0" });
    expect(problem.found).toBe("1 collective of rank 2 on nccl:2,0");
    expect(problem.expected).toBe("2, as on rank 0");
    expect(problem.notes).toEqual(["on rank 2: first of 2"]);
  });

  test("of a rank that is not there", () => {
    const { message } = onlyProblem(1, (list) => {
      list.collective(0, "Allgather", { team: [0, 7], input: list.input([8]), output: list.output([2, 8]) });
    });
    expect(message).toBe("a team names rank 7, which the run does not have");
  });

  test("of a team without the rank that posts", () => {
    const { message, place } = onlyProblem(3, (list, rank) => {
      const parts = { team, input: list.input([8]), output: list.output([2, 8]) };
      list.statement(`Communication ${rank}`).collective(0, "Allgather", parts);
    });
    expect(message).toBe("rank 2 posts a collective of a team that it is not in");
    expect(place).toEqual({ kind: "command", rank: 2, stream: 0, text: "Communication 2" });
  });

  test("with different roots", () => {
    const { message, found } = onlyProblem(2, (list, rank) => {
      const view = list.input([8]);
      list.collective(0, "Broadcast", { team, root: rank, input: view, output: view });
    });
    expect(message).toBe("ranks 0 and 1 do not agree on the root of a collective");
    expect(found).toBe("root 1 on rank 1, 0 on rank 0");
  });

  test.each([
    ["no root", "Broadcast", {}, "a Broadcast needs a root in its team"],
    ["a root outside the team", "Broadcast", { root: 2 }, "a Broadcast needs a root in its team"],
    ["a root that it does not take", "Allgather", { root: 0 }, "an Allgather has no root"],
    ["no reduction", "Allreduce", {}, "an Allreduce needs a reduction"],
    ["a reduction that it does not take", "Broadcast", { root: 0, reduceOp: "sum" }, "a Broadcast has no reduction"],
  ] as const)("with %s", (_, type, parts, message) => {
    const problem = onlyProblem(2, (list) => {
      list.collective(0, type, { team, ...parts, input: list.input([8]), output: list.output([8]) });
    });
    expect(problem.message).toBe(message);
  });

  test("with a side too many or too few", () => {
    const extra = onlyProblem(2, (list) => {
      list.collective(0, "Reduce", {
        team,
        root: 0,
        reduceOp: "sum",
        input: list.input([8]),
        output: list.output([8]),
      });
    });
    expect(extra.message).toBe("rank 1 gives an output to a Reduce that takes none from it");
    const missing = onlyProblem(2, (list, rank) => {
      list.collective(0, "Broadcast", { team, root: 0, input: rank === 0 ? list.input([8]) : null, output: null });
    });
    expect(missing.message).toBe("rank 1 gives no output to a Broadcast");
  });
});

describe("groups", () => {
  test("with a send that no rank receives", () => {
    const problem = onlyProblem(2, (list, rank) => {
      const view = list.input([8]);
      list.statement(`first of ${rank}`).group(0, [{ type: rank === 0 ? "send" : "recv", peer: 1 - rank, view }]);
      if (rank === 0) list.statement("second of 0").group(0, [{ type: "send", peer: 1, view }]);
    });
    expect(problem).toEqual({
      code: "transfer-mismatch",
      message: "rank 0 sends to rank 1, which does not receive it",
      place: { kind: "command", rank: 0, stream: 0, text: "second of 0" },
      found: "2 sends on rank 0 and 1 recv on rank 1 over nccl:world",
      expected: "as many sends as recvs",
      help: "post the recv on rank 1, or remove the send",
      notes: ["on rank 1: first of 1"],
    });
  });

  test("with a recv that no rank sends", () => {
    const { message, help } = onlyProblem(2, (list, rank) => {
      if (rank === 1) list.group(0, [{ type: "recv", peer: 0, view: list.output([8]) }]);
    });
    expect(message).toBe("rank 1 receives from rank 0, which does not send it");
    expect(help).toBe("post the send on rank 0, or remove the recv");
  });

  test("on different communicators do not meet", () => {
    const problems = problemsOf(2, (list, rank) => {
      list.group(0, [{ type: rank === 0 ? "send" : "recv", peer: 1 - rank, view: list.input([8]) }], `nccl:${rank}`);
    });
    expect(problems.map(({ message }) => message)).toEqual([
      "rank 0 sends to rank 1, which does not receive it",
      "rank 1 receives from rank 0, which does not send it",
    ]);
  });

  test.each([
    ["size", (view: View): View => ({ ...view, shape: [4] }), "4 elements received", "8 elements, as sent"],
    ["dtype", half, "half received", "float, as sent"],
  ] as const)("with ends that differ in %s", (what, change, found, expected) => {
    const problem = onlyProblem(2, (list, rank) => {
      const view = list.input([8]);
      list.statement(`exchange of ${rank}`);
      if (rank === 0) list.group(0, [{ type: "send", peer: 1, view }]);
      else list.group(0, [{ type: "recv", peer: 0, view: change(view) }]);
    });
    expect(problem.message).toBe(`a send from rank 0 and its recv on rank 1 differ in ${what}`);
    expect([problem.found, problem.expected]).toEqual([found, expected]);
    expect(problem.place).toEqual({ kind: "command", rank: 1, stream: 0, text: "exchange of 1" });
    expect(problem.notes).toEqual(["on rank 0: exchange of 0"]);
  });
});

describe("one-sided pairs", () => {
  const oneHalf = (list: ListBuilder, rank: number, protocol: "get" | "put", shape: readonly number[]): void => {
    const pair = list.pair(protocol, rank === 0 ? "send" : "recv", 1 - rank, list.temporary(shape));
    list.statement(`P2PCommunication of ${rank}`).signalPeer(0, pair, "ready");
  };

  test("without a peer", () => {
    const { message, place } = onlyProblem(2, (list, rank) => {
      if (rank === 0) oneHalf(list, rank, "get", [8]);
    });
    expect(message).toBe("rank 0 sends to rank 1, which does not receive it");
    expect(place).toEqual({ kind: "command", rank: 0, stream: 0, text: "P2PCommunication of 0" });
  });

  test("by different protocols", () => {
    const { message, notes } = onlyProblem(2, (list, rank) => oneHalf(list, rank, rank === 0 ? "get" : "put", [8]));
    expect(message).toBe("rank 0 sends to rank 1 with a protocol that the receiver does not use");
    expect(notes).toEqual(["on rank 0: P2PCommunication of 0"]);
  });

  test("of different sizes", () => {
    const { message } = onlyProblem(2, (list, rank) => oneHalf(list, rank, "put", [8 - rank]));
    expect(message).toBe("a send from rank 0 and its recv on rank 1 differ in size");
  });
});

test("all problems are reported at once: one per communicator, and every pair that does not fit", () => {
  const problems = problemsOf(4, (list, rank) => {
    const view = list.temporary([8]);
    const low = rank < 2;
    for (const _ of [0, 1]) {
      list.collective(0, "Allreduce", {
        team: low ? [0, 1] : [2, 3],
        reduceOp: rank % 2 === 0 ? "sum" : "prod",
        input: view,
        output: view,
      });
    }
    if (rank === 0) list.group(0, [{ type: "send", peer: 3, view }]);
    list.pair("get", low ? "send" : "recv", (rank + 2) % 4, { ...view, shape: low ? [8] : [4] });
  });
  expect(problems.map(({ message }) => message)).toEqual([
    "ranks 0 and 1 do not agree on the reduction of a collective",
    "ranks 2 and 3 do not agree on the reduction of a collective",
    "rank 0 sends to rank 3, which does not receive it",
    "a send from rank 0 and its recv on rank 2 differ in size",
    "a send from rank 1 and its recv on rank 3 differ in size",
  ]);
});

test("a message says the iteration of the loops around a statement", () => {
  const lists = buildLists(2, (list, rank) => {
    if (rank === 0) list.statement("P2P").group(0, [{ type: "send", peer: 1, view: list.input([8]) }]);
  });
  const inLoop = lists.map((list) => ({
    ...list,
    origins: list.origins.map((origin) => ({ ...origin, iteration: [2, 5] })),
  }));
  expect(() => link(inLoop)).toThrow("rank 0, stream 0: P2P (iteration 2, 5)");
});

test.each([1, 5])("a peer that is no rank has its own channel, with %i sends of each rank", (times) => {
  // Sends of rank 0 to 2 are not what rank 0 receives from 1, whatever the channels' numbers.
  const problems = problemsOf(2, (list, rank) => {
    const view = list.input([8]);
    for (let i = 0; i < times; i++) {
      list.group(0, [{ type: "send", peer: 2, view }]);
      if (rank === 0) list.group(0, [{ type: "recv", peer: 1, view: list.output([8]) }]);
    }
  });
  expect(problems.map(({ message }) => message)).toEqual([
    "the peer of a send is not a rank of the run",
    "rank 0 receives from rank 1, which does not send it",
    "the peer of a send is not a rank of the run",
  ]);
});
