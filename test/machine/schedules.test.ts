/** Schedules: their text, the order that each gives, and which races they bring to light. */
import { describe, expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import type { Program } from "../../src/commands/program.ts";
import { createMachine, type MachineOptions } from "../../src/machine/machine.ts";
import { parseInterleaving, type Interleaving } from "../../src/machine/interleaving.ts";
import { at } from "../../src/support/invariant.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";
import { buildLists, type ListBuilder } from "./list-builder.ts";
import { createReferenceCompute } from "./reference-compute.ts";

describe("parseInterleaving", () => {
  it.each<readonly [string, Interleaving]>([
    ["seed:7", { kind: "seed", seed: 7 }],
    [" seed:4294967295\n", { kind: "seed", seed: 4294967295 }],
    ["hold:1:12", { kind: "hold", rank: 1, command: 12 }],
    ["0:2", { kind: "list", steps: [{ rank: 0, stream: 2 }] }],
    [
      "# a race\n0:2 # first\r\n\n1:0\n",
      {
        kind: "list",
        steps: [
          { rank: 0, stream: 2 },
          { rank: 1, stream: 0 },
        ],
      },
    ],
    [
      "[[0, 2], [1, 0]]",
      {
        kind: "list",
        steps: [
          { rank: 0, stream: 2 },
          { rank: 1, stream: 0 },
        ],
      },
    ],
  ])("%j", (text, schedule) => {
    expect(parseInterleaving(text)).toEqual(schedule);
  });

  it.each([
    ["seed:", "seed:"],
    ["seed:-1", "seed:-1"],
    ["seed:1.5", "seed:1.5"],
    ["seed:4294967296", "seed:4294967296"],
    ["hold:1", "hold:1"],
    ["hold:1:2:3", "hold:1:2:3"],
    ["hold:a:2", "hold:a:2"],
    ["", "no steps"],
    ["# only a comment", "no steps"],
    ["0:1\n0-2", "0-2 (line 2)"],
    ["random", "random (line 1)"],
    ["[]", "no list of steps"],
    ["[[0]]", "[0]"],
    ["[[0, 1.5]]", "[0,1.5]"],
    ["[[0, -1]]", "[0,-1]"],
    ["[[0, 1, 2]]", "[0,1,2]"],
  ])("refuses %j", (text, found) => {
    const problem = diagnosticOf(() => parseInterleaving(text));
    expect(problem.code).toBe("interleaving-invalid");
    expect(problem.found).toBe(found);
  });

  it("refuses broken JSON", () => {
    expect(diagnosticOf(() => parseInterleaving("[[0, 1]")).expected).toBe("valid JSON");
  });
});

type Log = readonly (readonly ["start" | "end", number, number])[];

/** The commands that ran, in order, as [start or end, rank, command]. */
function logOf(program: Program, options: MachineOptions): Log {
  const log: (readonly ["start" | "end", number, number])[] = [];
  const machine = createMachine(program, createReferenceCompute(program), {
    ...options,
    observer: {
      start: (rank, command) => log.push(["start", rank, command]),
      end: (rank, command) => log.push(["end", rank, command]),
    },
  });
  machine.run();
  return log;
}

/** Two ranks; each doubles its input on a worker, gathers on a lane and adds both parts on the caller's stream. */
const worker = 1;
const lane = 2;
function gatherAndAdd(list: ListBuilder, rank: number, joined = true): void {
  const [own, out] = [list.input([2]), list.output([2])];
  const [doubled, all] = [list.temporary([2]), list.temporary([2, 2])];
  list.stream("worker");
  list.stream("nccl", "communicator");
  list.alloc(0, doubled);
  list.alloc(0, all);
  list.synchronize(worker, 0);
  list.binary(worker, "add", own, own, doubled);
  if (joined) list.synchronize(lane, worker);
  else list.synchronize(lane, 0);
  list.collective(lane, "Allgather", { team: [0, 1], input: doubled, output: all });
  list.synchronize(0, lane);
  const part = (i: number): typeof own => ({ ...own, buffer: all.buffer, offset: 8 * i });
  list.binary(0, "sub", part(rank), part(1 - rank), out);
}
const launch = 4;
const recordJoin = 5;
const transfer = 7;

const joined = link(buildLists(2, (list, rank) => gatherAndAdd(list, rank)));
const racing = link(buildLists(2, (list, rank) => gatherAndAdd(list, rank, false)));

function outputs(program: Program, options: MachineOptions): readonly (readonly number[])[] {
  const compute = createReferenceCompute(program);
  for (const { id, role, rank } of program.buffers) if (role === "input") compute.write(id, [1 + rank, 10 * rank]);
  createMachine(program, compute, options).run();
  return program.buffers.filter(({ role }) => role === "output").map(({ id }) => compute.read(id));
}
const right = [
  [-2, -20],
  [2, 20],
];

describe("every schedule", () => {
  const schedules: readonly Interleaving[] = [
    { kind: "turns" },
    ...Array.from({ length: 20 }, (_, seed): Interleaving => ({ kind: "seed", seed })),
    ...joined.ranks.flatMap(({ rank, commands }) =>
      commands.map((_, command): Interleaving => ({ kind: "hold", rank, command })),
    ),
  ];

  it.each(schedules)(
    "$kind $seed $rank $command: all commands once, each stream in order, right results",
    (schedule) => {
      for (const transfers of ["synchronous", "eager"] as const) {
        for (const queues of ["streams", "ranks"] as const) {
          const log = logOf(joined, { interleaving: schedule, transfers, queues });
          for (const { rank, commands } of joined.ranks) {
            for (const kind of ["start", "end"] as const) {
              const own = log.filter((entry) => entry[0] === kind && entry[1] === rank).map(([, , command]) => command);
              expect(own.toSorted((a, b) => a - b)).toEqual([...commands.keys()]);
              for (const stream of [0, worker, lane]) {
                const ofStream = own.filter((command) => at(commands, command).stream === stream);
                expect(ofStream).toEqual(ofStream.toSorted((a, b) => a - b));
              }
            }
            for (const command of commands.keys()) {
              const at_ = (kind: string): number =>
                log.findIndex((e) => e[0] === kind && e[1] === rank && e[2] === command);
              expect(at_("start")).toBeLessThan(at_("end"));
            }
          }
          expect(outputs(joined, { interleaving: schedule, transfers, queues })).toEqual(right);
        }
      }
    },
  );

  it("is deterministic, and another seed is another order", () => {
    const log = (seed: number): Log => logOf(joined, { interleaving: { kind: "seed", seed } });
    expect(log(1)).toEqual(log(1));
    expect(new Set([1, 2, 3, 4, 5].map((seed) => JSON.stringify(log(seed)))).size).toBe(5);
  });
});

describe("a race", () => {
  it("stays hidden in turns and shows itself under some seeds", () => {
    expect(outputs(racing, {})).toEqual(right);
    const wrong = [...Array(20).keys()].filter((seed) => {
      const found = outputs(racing, { interleaving: { kind: "seed", seed } });
      return JSON.stringify(found) !== JSON.stringify(right);
    });
    expect(wrong.length).toBeGreaterThan(0);
    expect(wrong.length).toBeLessThan(20);
  });

  it("shows itself when the producer is held", () => {
    expect(outputs(racing, { interleaving: { kind: "hold", rank: 1, command: launch } })).not.toEqual(right);
    expect(outputs(joined, { interleaving: { kind: "hold", rank: 1, command: launch } })).toEqual(right);
  });

  it("shows itself in a list of steps", () => {
    // Rank 0: two allocs, the event; then the lane waits for it and arrives before the worker has computed.
    const steps = [0, 0, 0, 0, lane, lane].map((stream) => ({ rank: 0, stream }));
    expect(outputs(racing, { interleaving: { kind: "list", steps }, transfers: "eager" })).not.toEqual(right);
  });

  it("of a participant that takes its completion for that of the others shows itself when transfers are eager", () => {
    // Rank 1 completes its part of a Reduce, and reads the root's result from rank 0's memory without asking.
    const program = link(
      buildLists(2, (list, rank) => {
        const own = list.input([2]);
        const total = rank === 0 ? list.output([2]) : null;
        list.collective(0, "Reduce", { team: [0, 1], root: 0, reduceOp: "sum", input: own, output: total });
        if (total !== null) list.pair("get", "send", 1, total);
        else list.copyPeer(0, list.pair("get", "recv", 0, list.output([2])));
      }),
    );
    const total = [3, 10];
    expect(outputs(program, { transfers: "synchronous" })).toEqual([total, total]);
    const steps = [1, 1, 1].map((rank) => ({ rank, stream: 0 }));
    expect(outputs(program, { interleaving: { kind: "list", steps }, transfers: "eager" })).toEqual([
      total,
      [NaN, NaN],
    ]);
  });
});

describe("hold", () => {
  it("lets everything else run first", () => {
    const log = logOf(joined, { interleaving: { kind: "hold", rank: 0, command: launch } });
    const start = log.findIndex((entry) => entry[0] === "start" && entry[1] === 0 && entry[2] === launch);
    const before = new Set(
      log.slice(0, start).flatMap(([kind, rank, command]) => (kind === "end" ? `${rank}:${command}` : [])),
    );
    // All of rank 0 up to what needs the launch, and rank 1 up to the gather, at which it has arrived.
    expect([...before].filter((entry) => entry.startsWith("0:"))).toEqual(["0:0", "0:1", "0:2", "0:3"]);
    expect(before.has(`1:${recordJoin}`)).toBe(true);
    expect(before.has(`1:${transfer}`)).toBe(false);
    expect(log.slice(0, start)).toContainEqual(["start", 1, transfer]);
  });

  it("of a transfer holds its completion, not its arrival", () => {
    const log = logOf(joined, { interleaving: { kind: "hold", rank: 0, command: transfer } });
    const end = log.findIndex((entry) => entry[0] === "end" && entry[1] === 0 && entry[2] === transfer);
    const last = at(joined.ranks, 1).commands.length - 1;
    expect(log.slice(0, end)).toContainEqual(["start", 0, transfer]);
    expect(log.slice(0, end)).toContainEqual(["end", 1, last]);
  });

  it.each([
    [{ rank: 2, command: 0 }, "rank 2", "ranks 0 to 1"],
    [{ rank: 1, command: 99 }, "command 99 of rank 1", "commands 0 to 10 of rank 1"],
  ])("refuses %j", (place, found, expected) => {
    const problem = diagnosticOf(() => outputs(joined, { interleaving: { kind: "hold", ...place } }));
    expect(problem).toMatchObject({ code: "interleaving-invalid", found, expected });
  });
});

describe("a list of steps", () => {
  it("replays the order of a seed", () => {
    const log = logOf(joined, { interleaving: { kind: "seed", seed: 11 }, transfers: "synchronous" });
    const steps = log.flatMap(([kind, rank, command]) => {
      const { stream, kind: of } = at(at(joined.ranks, rank).commands, command);
      return kind === "start" || of === "transfer" ? [{ rank, stream }] : [];
    });
    expect(logOf(joined, { interleaving: { kind: "list", steps } })).toEqual(log);
  });

  it("goes on in turns after its last step", () => {
    const schedule: Interleaving = { kind: "list", steps: [{ rank: 1, stream: 0 }] };
    expect(logOf(joined, { interleaving: schedule })[0]).toEqual(["start", 1, 0]);
    expect(outputs(joined, { interleaving: schedule })).toEqual(right);
  });

  it("refuses a step that is blocked, with what it waits for", () => {
    const steps = [
      { rank: 0, stream: 0 },
      { rank: 0, stream: worker },
    ];
    expect(diagnosticOf(() => outputs(joined, { interleaving: { kind: "list", steps } }))).toMatchObject({
      code: "interleaving-invalid",
      message: "step 2 of the interleaving cannot run",
      found: "rank 0, stream 1 waits for rank 0, stream 0 to record its event at: recordEvent of rank 0",
    });
  });

  it("refuses a step of a stream that is at its end", () => {
    const program = link(buildLists(1, (list) => list.copy(0, list.input([2]), list.output([2]))));
    const steps = [0, 0].map((stream) => ({ rank: 0, stream }));
    expect(diagnosticOf(() => outputs(program, { interleaving: { kind: "list", steps } })).found).toBe(
      "rank 0, stream 0 has no commands left",
    );
  });

  it.each([
    [{ rank: 2, stream: 0 }, "rank 2", "ranks 0 to 1"],
    [{ rank: 1, stream: 3 }, "stream 3 of rank 1", "streams 0 to 2 of rank 1"],
  ])("refuses %j", (step, found, expected) => {
    const problem = diagnosticOf(() => outputs(joined, { interleaving: { kind: "list", steps: [step] } }));
    expect(problem).toMatchObject({ code: "interleaving-invalid", found, expected });
  });
});
