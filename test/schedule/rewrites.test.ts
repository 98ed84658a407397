/** The result of each rewrite on a pipeline, and the Programs that it leaves unchanged. */
import {
  compile,
  DeviceMesh,
  Fusion,
  lower,
  MultiDeviceExecutor,
  type Program,
  record,
  set,
  verify,
} from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { Command, CommandKind } from "../../src/commands/command.ts";
import { printProgram } from "../../src/commands/print-program.ts";
import { batchSignals } from "../../src/schedule/rewrites/batch-signals.ts";
import { link } from "../../src/commands/link/link.ts";
import { earlyGathers } from "../../src/schedule/rewrites/early-gathers.ts";
import { ownChunkLast } from "../../src/schedule/rewrites/own-chunk-last.ts";
import { placeStreams } from "../../src/schedule/rewrites/place-streams.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { smMargin } from "../../src/schedule/rewrites/sm-margin.ts";
import { splitChunks } from "../../src/schedule/rewrites/split-chunks.ts";
import { useInPlace } from "../../src/schedule/rewrites/use-in-place.ts";
import { at } from "../../src/support/invariant.ts";
import { exchange, hosted, type HostTensors, product, summed } from "./exchanges.ts";
import { allgatherMatmul, countOf, devices, outputsOf, recorded } from "./programs.ts";

const ranks = Array.from({ length: devices }, (_, rank) => rank);
const gather = "allgather + matmul";
const scatter = "matmul + reduce-scatter";
const reduce = "matmul + all-reduce";
const both = "gather + linears + scatter";

function counts(program: Program, kind: CommandKind): readonly number[] {
  return ranks.map((rank) => countOf(program, rank, kind));
}

const letters: { readonly [K in CommandKind]: string } = {
  launch: "P",
  copy: "C",
  transfer: "T",
  signal: "s",
  waitSignal: "w",
  recordEvent: "r",
  waitEvent: "e",
  alloc: "",
  free: "",
};

/** By name of a rank's stream: its commands in order, a letter each. */
function streamsOf(program: Program, rank: number): Readonly<Record<string, string>> {
  const { streams, commands } = at(program.ranks, rank);
  const word = (own: readonly Command[]): string => own.map(({ kind }) => letters[kind]).join("");
  return Object.fromEntries(
    streams.map(({ id, name }) => [name, word(commands.filter(({ stream }) => stream === id))]),
  );
}

describe("compute-streams", () => {
  it("waits for a gather outside of loops on the copy stream, so that local copies need not wait", () => {
    const f = new Fusion();
    const x = f.input([8, 4], "float");
    const y = set(x);
    f.output(y);
    for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(2));
    x.outerSplit(0, 2).parallelize("DIDx");
    const { program } = compile(f, { devices: 2, backend: "cuda", schedule: { computeStreams: 1 } });
    const { commands } = at(program.ranks, 0);
    const link = commands.findIndex(({ kind }, i) => kind === "copy" && commands[i - 1]?.kind === "waitSignal");
    expect(link).toBeGreaterThan(0);
    expect(commands[link - 1]?.stream).toBe(commands[link]?.stream);
    const local = commands.find(({ kind }, i) => kind === "copy" && i !== link);
    expect(local?.stream).toBe(0);
    expect(commands[link]?.stream).not.toBe(0);
  });

  it("with one: GEMMs on the caller's stream, each after the event of its copy, and only copies and signals on the copy stream", () => {
    const program = placeStreams.run(recorded(gather), 1);
    for (const rank of ranks) {
      expect(streamsOf(program, rank)).toEqual({
        // The start, that peers may read, the own chunk, three that arrive; then that peers have read, and the end of the copy stream.
        caller: `rsssCP${"eP".repeat(3)}wwwe`,
        "copy stream": `e${"wCrs".repeat(2)}wCrsr`,
      });
    }
  });

  it("with two: GEMMs in turn", () => {
    const program = placeStreams.run(recorded(gather), 2);
    for (const rank of ranks) {
      const streams = streamsOf(program, rank);
      expect(Object.keys(streams)).toEqual(["caller", "compute 0", "compute 1", "copy stream"]);
      expect([streams["compute 0"], streams["compute 1"]]).toEqual(["eCPePr", "ePePr"]);
    }
  });

  it("puts what a scatter sends on the copy stream, waits for what arrives apart, and the sum on the caller's stream after them", () => {
    const program = placeStreams.run(recorded(scatter, { protocol: "put" }), 1);
    for (const rank of ranks) {
      // The sum follows only the arrivals, not this rank's sends.
      expect(streamsOf(program, rank)).toEqual({
        caller: "rsssPCPrPrPrePe",
        "copy stream": "eweCsweCsweCsr",
        arrivals: "ewwwr",
      });
    }
  });

  it("puts kernels in peers' memory on the copy stream, and nothing between them and the signals and waits around them", () => {
    const meeting = "ssswwwPssswww";
    for (const options of [{}, { inPlace: true, batchSignals: true }]) {
      const program = applySchedule(recorded(reduce), { ...options, computeStreams: 1 });
      for (const rank of ranks) {
        expect(streamsOf(program, rank)).toEqual({
          caller: `${"Pr".repeat(4)}e`,
          "copy stream": `${`e${meeting}`.repeat(4)}r`,
        });
        const list = at(program.ranks, rank).commands.map(({ kind }) => letters[kind]);
        expect(list.join("").split(meeting)).toHaveLength(5);
      }
    }
  });

  it.each([1, 2])("puts the waits for what arrives on a stream of their own, in %i outputs", (outputs) => {
    const each = { primitive: "tp-rowwise", protocol: "put", outputs } as const;
    for (const schedule of [{ ownLast: true }, { dropSignals: true, inPlace: true, ownLast: true, gemmSums: true }]) {
      const program = exchange(each, { ...schedule, computeStreams: 1 });
      for (const rank of [0, 1]) {
        const { arrivals = "", caller = "" } = streamsOf(program, rank);
        // A signal has arrived when its event is recorded.
        expect(arrivals).toMatch(/^e?w+r(w+r)*$/u);
        expect(arrivals.replaceAll(/[^w]/gu, "")).toHaveLength(outputs);
        expect(caller.slice(caller.indexOf("P"), caller.lastIndexOf("P"))).not.toMatch(/w/u);
        expect(caller).toContain("eP");
      }
      expect(verify(program, { notes: false }).findings).toEqual([]);
    }
  });

  it("leaves waits on the stream of copies over links that follow", () => {
    const program = exchange({ primitive: "tp-rowwise", protocol: "get", outputs: 2 }, { computeStreams: 1 });
    for (const rank of [0, 1]) {
      const streams = streamsOf(program, rank);
      expect(streams["copy stream"]?.replaceAll(/[^wC]/gu, "")).toBe("wCwC");
      expect(Object.keys(streams)).not.toContain("arrivals");
    }
  });

  it("leaves a Program without GEMMs and copies over links as it is", () => {
    const f = new Fusion();
    const a = f.input([devices, 6], "float");
    const b = set(a);
    f.output(b);
    for (const tensor of [a, b]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    a.axis(0).parallelize("DIDx");
    const program = link(ranks.map((rank) => record(lower(f, { rank }), { rank })));
    expect(placeStreams.run(program, 1)).toBe(program);
  });
});

describe("in-place", () => {
  it("multiplies the own shard where it lies", () => {
    const program = useInPlace.run(recorded(gather), true);
    expect(counts(program, "copy")).toEqual([3, 3, 3, 3]);
    for (const { commands } of program.ranks) {
      const roles = commands.flatMap((command) =>
        command.kind === "launch" ? [at(program.buffers, at(command.inputs, 0).buffer).role] : [],
      );
      expect(roles).toEqual(["input", "temporary", "temporary", "temporary"]);
    }
  });

  it.each(["get", "put"] as const)(
    "makes the own partial result of a scatter by %s where the others' arrive",
    (protocol) => {
      const before = recorded(scatter, { protocol });
      const program = useInPlace.run(before, true);
      expect([counts(before, "copy"), counts(program, "copy")]).toEqual([
        [4, 4, 4, 4],
        [3, 3, 3, 3],
      ]);
    },
  );

  type Operand = ReturnType<HostTensors["input"]>;
  /** A temporary result, copied to an output, and what comes `after`. */
  function copied(after: (h: HostTensors["h"], result: Operand, copy: Operand, further: HostTensors) => void): Program {
    return hosted((tensors) => {
      const { h, input, output, temporary } = tensors;
      const [x, w, result, copy] = [input(), input(), temporary(), output()];
      h.add(x, w, { out: result });
      h.set(result, { out: copy });
      after(h, result, copy, tensors);
      h.deallocate(result);
    });
  }

  it("has other readers of what is copied read the copy's destination", async () => {
    const programs = [
      copied((h, result, _, { output }) => {
        h.add(result, result, { out: output() });
        h.matmul(result, result, { out: output(product) });
      }),
      // Overwritten afterwards.
      copied((h, result, copy, { input, output }) => {
        h.add(result, result, { out: output() });
        h.set(input(), { out: copy });
      }),
    ];
    for (const program of programs) {
      const after = useInPlace.run(program, true);
      expect(countOf(after, 0, "copy")).toBe(countOf(program, 0, "copy") - 1);
      const { commands } = at(after.ranks, 0);
      const roles = commands.flatMap((command) =>
        command.kind === "launch" || command.kind === "copy"
          ? (command.kind === "copy"
              ? [command.source, command.destination]
              : [...command.inputs, ...command.outputs]
            ).map(({ buffer }) => at(after.buffers, buffer).role)
          : [],
      );
      expect(roles).not.toContain("temporary");
      expect(verify(after, { notes: false }).findings).toEqual([]);
      expect(await outputsOf(after, "seed:1")).toBe(await outputsOf(program, "seed:1"));
    }
  });

  it("leaves a copy whose destination is overwritten before another reader, or used before it is made", () => {
    const overwritten = copied((h, result, copy, { input, output }) => {
      h.set(copy, { out: output() });
      h.set(input(), { out: copy });
      h.add(result, result, { out: output() });
    });
    expect(useInPlace.run(overwritten, true)).toBe(overwritten);
    const inUse = hosted(({ h, input, output, temporary }) => {
      const [x, w, result, copy] = [input(), input(), temporary(), output()];
      h.add(x, w, { out: result });
      h.set(x, { out: copy });
      h.add(copy, x, { out: output() });
      h.set(result, { out: copy });
      h.deallocate(result);
    });
    expect(useInPlace.run(inUse, true)).toBe(inUse);
  });

  it("leaves a copy if another reader takes more than what was copied", () => {
    const more = hosted(({ h, input, output, temporary }) => {
      const [x, both] = [input(), temporary([2, 6, 6])];
      for (const part of [0, 1]) h.add(x, x, { out: h.select(both, 0, part) });
      h.set(h.select(both, 0, 0), { out: output() });
      h.sum(both, [0], { out: output(summed) });
      h.deallocate(both);
    });
    expect(useInPlace.run(more, true)).toBe(more);
  });

  it("leaves a copy that another reader of the original overwrites", () => {
    const overwriting = copied((h, result, copy, { output }) => {
      h.set(copy, { out: output() });
      h.permute(result, [1, 0], { out: copy });
    });
    expect(useInPlace.run(overwriting, true)).toBe(overwriting);
  });

  it("leaves a copy that the caller reads, that peers write to, or whose original changes before it is read", () => {
    const program = recorded(gather);
    const buffers = program.buffers.map((buffer) =>
      buffer.role === "temporary" ? { ...buffer, role: "output" as const, position: 1 } : buffer,
    );
    const read = { ...program, buffers };
    expect(useInPlace.run(read, true)).toBe(read);

    const changed: Program = {
      ...program,
      ranks: program.ranks.map((list) => {
        const position = list.commands.findIndex(({ kind }) => kind === "copy");
        const copy = at(list.commands, position);
        if (copy.kind !== "copy") throw new Error("the own chunk is copied first");
        // The rest of the slots is as large as the shard; its contents do not matter here.
        const other = { ...copy.destination, offset: copy.destination.offset + 192 };
        const overwrite: Command = { ...copy, source: other, destination: copy.source };
        return {
          ...list,
          commands: list.commands.toSpliced(position + 1, 0, overwrite),
          origins: list.origins.toSpliced(position + 1, 0, at(list.origins, position)),
          transferOf: list.transferOf.toSpliced(position + 1, 0, null),
        };
      }),
    };
    expect(counts(useInPlace.run(changed, true), "copy")).toEqual([5, 5, 5, 5]);

    // By put the slots of one stream are written by peers, the own one, too.
    const put = recorded(gather, { protocol: "put", streams: 1 });
    expect(useInPlace.run(put, true)).toBe(put);
  });
});

describe("own-last", () => {
  it("computes the own chunk of a scatter after the chunks that peers wait for", () => {
    const program = placeStreams.run(ownChunkLast.run(recorded(scatter, { protocol: "put" }), true), 1);
    for (const { rank, commands } of program.ranks) {
      const offsets = commands.flatMap((command) =>
        command.kind === "launch" && command.inputs.length === 2 ? [at(command.inputs, 0).offset / 96] : [],
      );
      expect(offsets).toEqual([1, 2, 3, 0].map((step) => (rank + step) % devices));
    }
  });

  it("leaves a gather as it is: nothing waits for its GEMMs", () => {
    const program = recorded(gather);
    expect(ownChunkLast.run(program, true)).toBe(program);
  });
});

describe("split-chunks", () => {
  it("cuts the copies of a gather by get, and their GEMMs, along the rows", () => {
    const program = splitChunks.run(recorded(gather), 4);
    // One local copy and the rank's own GEMM stay whole; 6 rows in four chunks.
    expect(counts(program, "copy")).toEqual([13, 13, 13, 13]);
    expect(counts(program, "launch")).toEqual([13, 13, 13, 13]);
    expect(counts(program, "signal")).toEqual(counts(recorded(gather), "signal"));
    const rows = new Set(program.kernels.map(({ outputs }) => at(at(outputs, 0).shape, 0)));
    expect(rows).toEqual(new Set([1, 2, 6]));
  });

  it("has no more parts than rows", () => {
    expect(counts(splitChunks.run(recorded(gather), 100), "launch")).toEqual([19, 19, 19, 19]);
  });

  it("cuts what a scatter by put sends, and leaves it whole where peers fetch it", () => {
    const sent = splitChunks.run(recorded(scatter, { protocol: "put" }), 2);
    expect([counts(sent, "copy"), counts(sent, "launch")]).toEqual([
      [7, 7, 7, 7],
      [8, 8, 8, 8],
    ]);
    const fetched = recorded(scatter, { protocol: "get" });
    expect(splitChunks.run(fetched, 2)).toBe(fetched);
  });
});

describe("early-gathers", () => {
  /** Of each rank: the types of the collectives in order, A for Allgather. */
  const collectives = (program: Program): readonly string[] =>
    program.ranks.map(({ commands }) =>
      commands
        .flatMap((c) => (c.kind === "transfer" && c.operation.kind === "collective" ? [c.operation.type] : []))
        .map(([first]) => first)
        .join(""),
    );

  it("posts the gathers of all chunks before the scatters", () => {
    const program = recorded(both, { backend: "nccl" });
    expect(collectives(program)).toEqual(ranks.map(() => "ARARARAR"));
    const early = earlyGathers.run(program, true);
    expect(collectives(early)).toEqual(ranks.map(() => "AAAARRRR"));
    expect(verify(early, { notes: false }).findings).toEqual([]);
  });

  it("leaves a gather among the scatters that waits for a GEMM to end with its slot", () => {
    const program = recorded(both, { backend: "nccl", streams: 3 });
    expect(collectives(earlyGathers.run(program, true))).toEqual(ranks.map(() => "AAARRRAR"));
  });

  it("copies all chunks from peers before the first kernel in peers' memory", () => {
    const kinds = (schedule: ScheduleOptions): readonly string[] =>
      ranks.map((rank) => streamsOf(applySchedule(recorded(both), schedule), rank)["copy stream"] ?? "");
    const [late, early] = [{ computeStreams: 1 }, { computeStreams: 1, earlyGathers: true }].map((schedule) =>
      kinds(schedule).map((word) => word.replaceAll(/[^CP]/gu, "")),
    );
    expect(late).toEqual(ranks.map(() => "CCCP".repeat(4)));
    expect(early).toEqual(ranks.map(() => "C".repeat(12) + "P".repeat(4)));
  });

  it("leaves a Program as it is whose gathers queue after nothing", () => {
    for (const backend of ["nccl", "cuda"] as const) {
      const program = recorded(gather, { backend });
      expect(earlyGathers.run(program, true)).toBe(program);
    }
  });
});

describe("batch-signals", () => {
  it("waits for all peers before the first copy of a gather, signals all peers after the last", () => {
    const program = applySchedule(recorded(gather), { inPlace: true, computeStreams: 1, batchSignals: true });
    for (const rank of ranks) {
      expect(streamsOf(program, rank)).toEqual({ caller: "rPePePePe", "copy stream": "essswwwCrCrCrssswwwr" });
    }
  });

  it("does not hold back the signals to a scatter's owner that its slots are full", () => {
    const options = { ownLast: true, computeStreams: 1 };
    const program = recorded(scatter, { protocol: "put" });
    for (const rank of ranks) {
      const streams = streamsOf(applySchedule(program, { ...options, batchSignals: true }), rank);
      expect(streams).toEqual({ caller: "rPrPrPrPCePe", "copy stream": "essswwweCseCseCsr", arrivals: "ewwwr" });
    }
  });

  it("keeps signals that report GEMMs off the copy stream, which would wait for these", () => {
    // Chunks take turns with two buffers: two of them may be overwritten only when they have been multiplied.
    const program = recorded(gather, { protocol: "put", streams: 2 });
    for (const rank of ranks) {
      const streams = streamsOf(applySchedule(program, { computeStreams: 1, batchSignals: true }), rank);
      expect(streams["caller"]?.replaceAll(/[^Ps]/gu, "")).toMatch(/^P+sP+sP+$/u);
    }
  });

  it("does not tear apart what stands around a kernel in peers' memory", () => {
    const program = recorded(reduce);
    const { "copy stream": copies } = streamsOf(applySchedule(program, { computeStreams: 1, batchSignals: true }), 0);
    expect(copies).toBe(streamsOf(placeStreams.run(program, 1), 0)["copy stream"]);
  });

  it("leaves a Program without signals as it is", () => {
    const program = recorded(gather, { backend: "nccl" });
    expect(batchSignals.run(program, true)).toBe(program);
  });
});

describe("sm-margin", () => {
  const margins = (program: Program): readonly (readonly (number | undefined)[])[] =>
    program.ranks.map(({ commands }) => commands.flatMap((c) => (c.kind === "launch" ? [c.smMargin] : [])));

  it("is for GEMMs after the first, beside which kernels in peers' memory may run, on any streams", () => {
    const program = recorded(reduce);
    const none = undefined;
    // As recorded, the GEMM and combination of each chunk alternate; on one compute stream all GEMMs come first.
    expect(margins(smMargin.run(program, 8))).toEqual(ranks.map(() => [none, none, 8, none, 8, none, 8, none]));
    const placed = applySchedule(program, { computeStreams: 1, smMargin: 8 });
    expect(margins(placed)).toEqual(ranks.map(() => [none, 8, 8, 8, none, none, none, none]));
    expect(smMargin.run(placed, 8)).toBe(placed);
    expect(printProgram(placed, { ranks: [0] })).toMatch(/launch .* leaving 8 multiprocessors/);
  });

  it("leaves GEMMs alone that one stream puts between the kernels", () => {
    const program = recorded(reduce, { streams: 1 });
    expect(smMargin.run(program, 8)).toBe(program);
  });
});

describe("a schedule", () => {
  it.each<[ScheduleOptions, string]>([
    [{ computeStreams: 0 }, "schedule (--schedule)"],
    [{ splitChunks: 1.5 }, "schedule (--schedule)"],
    [{ smMargin: 0 }, "schedule (--schedule)"],
  ])("refuses %o", async (schedule, place) => {
    const creating = MultiDeviceExecutor.create(allgatherMatmul(), { devices, schedule });
    await expect(creating).rejects.toMatchObject({ diagnostics: [{ code: "bad-option", place: { text: place } }] });
  });

  it("of nothing is the Program itself", () => {
    const program = recorded(gather);
    expect(applySchedule(program, {})).toBe(program);
    expect(applySchedule(program, { inPlace: false })).toBe(program);
  });
});
