/**
 * Programs of collectives of the CUDA backend: the commands of each rank, which rank reads from which in each step, the
 * diagnostics for ranks that disagree, and the judge's verdict on every type and team.
 */
import { DeviceMesh, DiagnosticError, HostProgramBuilder, link, type Program, record } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { accesses, type Region } from "../../src/commands/region.ts";
import { collectives, type CommunicationType, isRooted } from "../../src/host/collectives.ts";
import type { HostProgram } from "../../src/host/nodes.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { judge } from "../verify/judge/judge.ts";
import { listing } from "./listing.ts";
import { counted, floats, onRanks, runPrograms } from "./run-programs.ts";

const world = 4;

interface Setting {
  readonly team?: readonly number[];
  readonly width?: number;
  readonly root?: number;
  /** Rows that are communicated one after the other, each on the next of `streams` streams. */
  readonly rows?: number;
  readonly streams?: number;
  /** The stream of the Wait: the post's, or the caller's. */
  readonly wait?: "worker" | "caller";
  /** Whether the caller's stream then waits for the worker's, as a Stream loop does. */
  readonly join?: boolean;
  /** Whether the output is the input. */
  readonly inPlace?: boolean;
}

function build(
  type: CommunicationType,
  {
    team = [0, 1, 2, 3],
    width = 4,
    root,
    rows = 1,
    streams = 1,
    wait = "worker",
    join = true,
    inPlace = false,
  }: Setting,
): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = new DeviceMesh(team);
  const { splitsInput, splitsOutput } = collectives[type];
  const shape = (splits: boolean): number[] => [rows, ...(splits ? [team.length] : []), width];
  const x = h.input(shape(splitsInput), { mesh });
  const y = inPlace ? x : h.tensor(shape(splitsOutput), { mesh });
  h.output(y);
  const caller = h.getCurrentStream();
  for (let row = 0; row < rows; row++) {
    const worker = streams === 1 ? caller : h.stream(row % streams);
    h.setCurrentStream(worker);
    h.synchronize(caller);
    const posted = h.communication(type, {
      input: h.select(x, 0, row),
      output: h.select(y, 0, row),
      backend: "cuda",
      ...(isRooted(type) ? { root: root ?? 0 } : {}),
    });
    if (wait === "caller") h.setCurrentStream(caller);
    h.wait(posted);
    h.setCurrentStream(caller);
    if (join) h.synchronize(worker);
  }
  return h.build();
}

function linked(programs: readonly HostProgram[]): Program {
  return link(programs.map((program, rank) => record(program, { rank })));
}

/** Every rank of the team has the program; the others have none. */
function programs(type: CommunicationType, setting: Setting): HostProgram[] {
  const { team = [0, 1, 2, 3] } = setting;
  const nothing = new HostProgramBuilder().build();
  return onRanks(world, (rank) => (team.includes(rank) ? build(type, setting) : nothing));
}

describe("a rank", () => {
  it("of an Allgather signals, copies from one after the other, and waits until all have read", () => {
    expect(listing(record(build("Allgather", {}), { rank: 1 }))).toMatchInlineSnapshot(`
      "
      caller: signal ready to 0 on CUDA (0 1 2 3)
      caller: signal ready to 3 on CUDA (0 1 2 3)
      caller: signal ready to 2 on CUDA (0 1 2 3)
      caller: copy from 1 on CUDA (0 1 2 3)
      caller: wait for ready of 2 on CUDA (0 1 2 3)
      caller: copy from 2 on CUDA (0 1 2 3)
      caller: wait for ready of 3 on CUDA (0 1 2 3)
      caller: copy from 3 on CUDA (0 1 2 3)
      caller: wait for ready of 0 on CUDA (0 1 2 3)
      caller: copy from 0 on CUDA (0 1 2 3)
      caller: signal done to 2 on CUDA (0 1 2 3)
      caller: signal done to 3 on CUDA (0 1 2 3)
      caller: signal done to 0 on CUDA (0 1 2 3)
      caller: wait for done of 0 on CUDA (0 1 2 3)
      caller: wait for done of 3 on CUDA (0 1 2 3)
      caller: wait for done of 2 on CUDA (0 1 2 3)
      "
    `);
  });

  it("of an Allreduce combines its slice of all inputs into all outputs", () => {
    expect(listing(record(build("Allreduce", { team: [2, 0, 3] }), { rank: 0 }))).toMatchInlineSnapshot(`
      "
      caller: signal ready to 2 on CUDA (2 0 3)
      caller: signal ready to 3 on CUDA (2 0 3)
      caller: wait for ready of 3 on CUDA (2 0 3)
      caller: wait for ready of 2 on CUDA (2 0 3)
      caller: combine Allreduce sum T0 float [4] -> T1 float [4]
      caller: signal done to 3 on CUDA (2 0 3)
      caller: signal done to 2 on CUDA (2 0 3)
      caller: wait for done of 2 on CUDA (2 0 3)
      caller: wait for done of 3 on CUDA (2 0 3)
      "
    `);
  });

  it("of an Allreduce of fewer elements than ranks may have no slice", () => {
    const program = build("Allreduce", { team: [2, 0, 3], width: 2 });
    expect(listing(record(program, { rank: 2 }))).toMatchInlineSnapshot(`
      "
      caller: signal ready to 3 on CUDA (2 0 3)
      caller: signal ready to 0 on CUDA (2 0 3)
      caller: wait for done of 3 on CUDA (2 0 3)
      caller: wait for done of 0 on CUDA (2 0 3)
      "
    `);
    expect(listing(record(program, { rank: 0 }))).toMatchInlineSnapshot(`
      "
      caller: signal ready to 3 on CUDA (2 0 3)
      caller: wait for ready of 3 on CUDA (2 0 3)
      caller: wait for ready of 2 on CUDA (2 0 3)
      caller: combine Allreduce sum T0 float [2] -> T1 float [2]
      caller: signal done to 3 on CUDA (2 0 3)
      caller: signal done to 2 on CUDA (2 0 3)
      caller: wait for done of 3 on CUDA (2 0 3)
      "
    `);
  });

  it("of a Reduce that is not the root lets its input be read", () => {
    expect(listing(record(build("Reduce", { root: 2 }), { rank: 1 }))).toMatchInlineSnapshot(`
      "
      caller: signal ready to 2 on CUDA (0 1 2 3)
      caller: wait for done of 2 on CUDA (0 1 2 3)
      "
    `);
  });

  it("of a Broadcast copies from the root", () => {
    expect(listing(record(build("Broadcast", { root: 2 }), { rank: 1 }))).toMatchInlineSnapshot(`
      "
      caller: wait for ready of 2 on CUDA (0 1 2 3)
      caller: copy from 2 on CUDA (0 1 2 3)
      caller: signal done to 2 on CUDA (0 1 2 3)
      "
    `);
  });

  it("that is alone copies, and in place does nothing", () => {
    const alone = { team: [1] };
    expect(listing(record(build("Allreduce", alone), { rank: 1 }))).toMatchInlineSnapshot(`
      "
      caller: copy from 1 on CUDA (1)
      "
    `);
    expect(record(build("Allreduce", { ...alone, inPlace: true }), { rank: 1 }).peerCollectives).toEqual([]);
  });

  it("waits on another stream for the stream of its post", () => {
    const program = build("Broadcast", { team: [0, 1], streams: 2, rows: 1, wait: "caller" });
    expect(listing(record(program, { rank: 1 }))).toMatchInlineSnapshot(`
      "
      caller: record e0
      worker 0: wait e0
      worker 0: wait for ready of 0 on CUDA (0 1)
      worker 0: copy from 0 on CUDA (0 1)
      worker 0: signal done to 0 on CUDA (0 1)
      worker 0: record e1
      caller: wait e1
      worker 0: record e2
      caller: wait e2
      "
    `);
  });
});

/** Copies and combinations of one row in list order: which rank reads from which. */
function readsOf(program: Program): readonly (readonly number[])[] {
  return program.ranks.map(({ rank, commands }) =>
    commands.flatMap((_, index) =>
      accesses(program, rank, index)
        .reads.map(({ buffer }) => at(program.buffers, buffer).rank)
        .filter((owner) => owner !== rank),
    ),
  );
}

describe("the schedule", () => {
  it.each(["Allgather", "AllToAll"] as const)("of %s is a permutation in every step", (type) => {
    const reads = readsOf(linked(programs(type, {})));
    expect(reads).toEqual([
      [1, 2, 3],
      [2, 3, 0],
      [3, 0, 1],
      [0, 1, 2],
    ]);
  });

  it.each([false, true])("of an Allreduce reads each slice once and writes it once, in place: %s", (inPlace) => {
    const program = linked(programs("Allreduce", { width: 64, inPlace }));
    const bytes = program.ranks.map(({ rank, commands }) => {
      const own = commands.map((_, index) => accesses(program, rank, index));
      const withPeers = (regions: readonly Region[]): number =>
        regions
          .filter(({ buffer }) => at(program.buffers, buffer).rank !== rank)
          .reduce((sum, region) => sum + region.bytes, 0);
      return [withPeers(own.flatMap(({ reads }) => reads)), withPeers(own.flatMap(({ writes }) => writes))];
    });
    // (n-1) / n of 64 floats each way.
    expect(bytes).toEqual(onRanksOf(world, () => [192, 192]));
    // All ranks have slices of one shape, and so one kernel.
    expect(program.kernels).toEqual([
      {
        kind: "combine",
        op: "sum",
        inputs: onRanksOf(world, () => ({ dtype: "float", shape: [16], strides: [1] })),
        outputs: onRanksOf(world, () => ({ dtype: "float", shape: [16], strides: [1] })),
      },
    ]);
  });

  it("of an Allreduce writes to the own output first, then around the team", () => {
    const program = linked(programs("Allreduce", { team: [2, 0, 3], width: 48 }));
    const writers = program.ranks.map(({ commands }) =>
      commands.flatMap((command) =>
        command.kind === "launch"
          ? command.outputs.map(({ buffer, offset }) => [at(program.buffers, buffer).rank, offset])
          : [],
      ),
    );
    expect(writers).toEqual([
      [
        [0, 64],
        [3, 64],
        [2, 64],
      ],
      [],
      [
        [2, 0],
        [0, 0],
        [3, 0],
      ],
      [
        [3, 128],
        [2, 128],
        [0, 128],
      ],
    ]);
  });

  it("of every kind signals each slot once and waits for it once", () => {
    // An AllToAllV of equal sides moves nothing.
    for (const type of keysOf(collectives).filter((each) => each !== "AllToAllV")) {
      const setting = type === "SendRecv" ? { team: [1, 3] } : { team: [2, 0, 3], rows: 3, streams: 2 };
      const { ranks, slots } = linked(programs(type, setting));
      const [signals, waits] = [slots.map(() => 0), slots.map(() => 0)];
      for (const { rank, commands } of ranks) {
        for (const command of commands) {
          if (command.kind === "signal") {
            signals[command.slot] = (signals[command.slot] ?? 0) + 1;
            expect(at(slots, command.slot).signaller).toBe(rank);
          }
          if (command.kind === "waitSignal") {
            waits[command.slot] = (waits[command.slot] ?? 0) + 1;
            expect(at(slots, command.slot).waiter).toBe(rank);
          }
        }
      }
      expect(slots.length).toBeGreaterThan(0);
      expect([signals, waits]).toEqual([slots.map(() => 1), slots.map(() => 1)]);
    }
  });

  it("puts what others read and write into the symmetric arena, and nothing else", () => {
    const arenas = (type: CommunicationType, setting: Setting = {}): readonly string[] =>
      linked(programs(type, setting)).buffers.map(({ rank, name, arena }) => `${rank} ${name} ${arena}`);
    expect(arenas("Reduce", { team: [0, 1], root: 1 })).toEqual([
      "0 T0 symmetric",
      "0 T1 output",
      "1 T0 input",
      "1 T1 output",
    ]);
    expect(arenas("Broadcast", { team: [0, 1], root: 1 })).toEqual([
      "0 T0 input",
      "0 T1 output",
      "1 T0 symmetric",
      "1 T1 output",
    ]);
    expect(arenas("Allreduce", { team: [0, 1] }).filter((text) => text.endsWith("symmetric"))).toEqual([
      "0 T0 symmetric",
      "0 T1 symmetric",
      "1 T0 symmetric",
      "1 T1 symmetric",
    ]);
  });
});

describe("the judge finds nothing wrong", () => {
  // Outputs of ranks other than a root are not written, which the judge reports, too.
  const sound = {
    races: [],
    deadlock: false,
    needsConcurrency: false,
    overrun: false,
    lifetime: false,
    unbalanced: false,
  };
  const kinds = keysOf(collectives).filter((type) => type !== "SendRecv");
  const teams = [
    [0, 1, 2, 3],
    [1, 2],
    [2, 0, 3],
  ];
  describe.each(teams)("team %j", (...team) => {
    it.each(kinds)("%s", (type) => {
      const setting = { team, root: 1, rows: 2, streams: 2 };
      expect(judge(linked(programs(type, setting)))).toMatchObject(sound);
      // A Wait on the caller's stream is all that orders the worker before it.
      const unjoined = { ...setting, wait: "caller", join: false } as const;
      expect(judge(linked(programs(type, unjoined)))).toMatchObject(sound);
    });

    it("Allreduce in place, also of fewer elements than ranks", () => {
      for (const width of [1, 3, 16]) {
        expect(judge(linked(programs("Allreduce", { team, width, rows: 2, streams: 2, inPlace: true })))).toMatchObject(
          {
            ok: true,
          },
        );
      }
    });
  });

  it("temporaries that peers read and that share bytes", () => {
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(3);
    const x = h.input([64], { mesh });
    const [sums, y] = [h.tensor([64], { mesh }), h.tensor([3, 64], { mesh })];
    h.output(sums);
    h.output(y);
    for (const [type, output] of [
      ["Allreduce", sums],
      ["Allgather", y],
    ] as const) {
      const t = h.allocate(h.tensor([64], { mesh }));
      h.add(x, x, { out: t });
      h.wait(h.communication(type, { input: t, output, backend: "cuda" }));
      h.deallocate(t);
    }
    const program = linked(onRanks(3, () => h.build()));
    // The sums, which all ranks write, and one temporary at a time.
    expect(program.ranks.map(({ arenaBytes }) => arenaBytes.symmetric)).toEqual([512, 512, 512]);
    expect(judge(program)).toMatchObject({ ok: true });
  });

  it("SendRecv", () => {
    expect(judge(linked(programs("SendRecv", { team: [3, 1], rows: 2, streams: 2 })))).toMatchObject(sound);
  });
});

describe("Allreduce", () => {
  it.each([1, 2, 3, 5, 16, 50])("in place of %i elements", async (width) => {
    const x = (rank: number): ReturnType<typeof counted> => counted([1, width], (i) => rank * 10 + i);
    const outputs = await runPrograms(programs("Allreduce", { width, inPlace: true }), {
      inputs: onRanksOf(world, (rank) => [x(rank)]),
    });
    // An input that is an output begins as the input in every run.
    for (const [output] of outputs) expect(output).toEqual(counted([1, width], (i) => 60 + 4 * i));
  });

  it("in place on some ranks", async () => {
    const [width, team] = [50, [0, 1, 2, 3]];
    const mixed = team.map((rank) => build("Allreduce", { team, width, inPlace: rank % 2 === 1 }));
    expect(judge(linked(mixed))).toMatchObject({ ok: true });
    const inputs = onRanksOf(world, (rank) => [counted([1, width], (i) => rank * 10 + i)]);
    for (const [output] of await runPrograms(mixed, { inputs })) {
      expect(output).toEqual(counted([1, width], (i) => 60 + 4 * i));
    }
  });

  it("of tensors that lie in different ways", async () => {
    const mixed = team4.map((rank) => rowsOf(4, { apart: rank === 1 }));
    const program = linked(mixed);
    expect(judge(program)).toMatchObject({ ok: true });
    const inputs = onRanksOf(world, (rank) => [
      rank === 1 ? counted([4, 2, 4], (i) => i) : counted([4, 4], (i) => 100 * rank + i),
    ]);
    // Row r of rank 1 begins at 8 r.
    const expected = counted([4, 4], (i) => 500 + 3 * i + 8 * Math.floor(i / 4) + (i % 4));
    for (const [output] of await runPrograms(mixed, { inputs })) expect(output).toEqual(expected);
  });

  it("has the identities of its reduction", async () => {
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(2);
    const x = h.input([4], { mesh });
    const y = h.tensor([4], { mesh });
    h.output(y);
    h.wait(h.communication("Allreduce", { input: x, output: y, reduceOp: "max", backend: "cuda" }));
    const program = h.build();
    const outputs = await runPrograms([program, program], {
      inputs: [[floats([4], [-1, -Infinity, NaN, -0])], [floats([4], [-2, -3, 1, -0])]],
    });
    // A maximum that began with the least positive float would be wrong here (nvFuser's Reduce has that).
    for (const [output] of outputs) expect(output).toEqual(floats([4], [-1, -3, NaN, -0]));
  });
});

function onRanksOf<T>(count: number, of: (rank: number) => T): T[] {
  return Array.from({ length: count }, (_, rank) => of(rank));
}

const team4 = [0, 1, 2, 3];

/** An Allreduce of n rows of n elements: contiguous or, with `apart`, every other row of the input. */
function rowsOf(n: number, { apart = false } = {}): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = new DeviceMesh(team4);
  const [x, y] = [h.input(apart ? [n, 2, n] : [n, n], { mesh }), h.tensor([n, n], { mesh })];
  h.output(y);
  const input = apart ? h.select(x, 1, 0) : x;
  h.wait(h.communication("Allreduce", { input, output: y, backend: "cuda" }));
  return h.build();
}

describe("ranks that do not fit", () => {
  const messageOf = (lists: readonly HostProgram[]): string => {
    try {
      linked(lists);
    } catch (error) {
      if (error instanceof DiagnosticError) return error.message;
      throw error;
    }
    throw new Error("they fit");
  };

  it("of different kinds", () => {
    const team = [0, 1];
    expect(messageOf([build("Allreduce", { team }), build("Broadcast", { team })])).toMatchInlineSnapshot(`
      "error[transfer-mismatch]: ranks 0 and 1 do not agree on the type of a collective
        at: rank 1, stream 0: Communication 0 (type=Broadcast, team=(0 1), root=0, input=T2_l_float[iS4{4}] (DeviceMesh{0 1}), output=T3_l_float[iS5{4}] (DeviceMesh{0 1}), backend=CUDA)
        found: type Broadcast on rank 1, Allreduce on rank 0
        expected: the same type on every rank of the team
        fix: post the same collectives on a communicator in the same order on all ranks
        note: on rank 0: Communication 0 (type=Allreduce, team=(0 1), input=T2_l_float[iS4{4}] (DeviceMesh{0 1}), output=T3_l_float[iS5{4}] (DeviceMesh{0 1}), backend=CUDA)"
    `);
  });

  it("of different sizes", () => {
    const team = [0, 1];
    const [a, b] = [build("Allgather", { team, width: 4 }), build("Allgather", { team, width: 5 })];
    expect(messageOf([a, b])).toMatchInlineSnapshot(`
      "error[transfer-mismatch]: the views of an Allgather differ in size
        at: rank 1, stream 0: Communication 0 (type=Allgather, team=(0 1), input=T2_l_float[iS5{5}] (DeviceMesh{0 1}), output=T3_l_float[iS6{2}, iS7{5}] (DeviceMesh{0 1}), backend=CUDA)
        found: 5 elements in the input of rank 1
        expected: 4 elements, as in the input of rank 0
        fix: give the slices of all ranks the same size
        note: on rank 0: Communication 0 (type=Allgather, team=(0 1), input=T2_l_float[iS5{4}] (DeviceMesh{0 1}), output=T3_l_float[iS6{2}, iS7{4}] (DeviceMesh{0 1}), backend=CUDA)"
    `);
  });

  it("of which one is missing", () => {
    expect(messageOf([build("Allgather", { team: [0, 1] }), new HostProgramBuilder().build()])).toMatchInlineSnapshot(`
      "error[transfer-mismatch]: rank 1 does not take part in a collective of its team
        at: rank 0, stream 0: Communication 0 (type=Allgather, team=(0 1), input=T2_l_float[iS5{4}] (DeviceMesh{0 1}), output=T3_l_float[iS6{2}, iS7{4}] (DeviceMesh{0 1}), backend=CUDA)
        found: 0 collectives of rank 1 on CUDA (0 1)
        expected: 1, as on rank 0
        fix: post the same collectives on a communicator in the same order on all ranks"
    `);
  });

  it("of which one has fewer slices", () => {
    expect(messageOf(team4.map((rank) => rowsOf(3, { apart: rank === 1 })))).toMatchInlineSnapshot(`
      "error[transfer-mismatch]: the ranks of a collective divide its work differently
        at: rank 0, stream 0: Communication 0 (type=Allreduce, team=(0 1 2 3), input=T0_g_float[iS0{3}, iS1{3}] (DeviceMesh{0 1 2 3}), output=T1_g_float[iS2{3}, iS3{3}] (DeviceMesh{0 1 2 3}), backend=CUDA)
        found: 4 slices on rank 0
        expected: 3 slices, from the strides of all ranks' tensors
        fix: give the input and the output the same strides on every rank"
    `);
  });
});
