/** `braid run --trace` and the overlap that `--print timeline` prints, on worker threads and on the machine. */
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { writeTraceFile } from "../../src/cli/run/run-repeatedly.ts";
import { checkChromeTrace, type CheckedTrace, type RawTrace } from "../trace/check-chrome-trace.ts";
import { cli } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const examples = path.resolve(import.meta.dirname, "../../examples");
const example = path.join(examples, "allgather-matmul.ts");
const folder = ownFolder();

/** Within a run of that many milliseconds, and one more: threads read their clocks a little apart. */
function check(file: string, milliseconds: number): CheckedTrace {
  return checkChromeTrace(JSON.parse(readFileSync(file, "utf8")) as RawTrace, (milliseconds + 1) * 1e6);
}

interface RunDocument {
  readonly milliseconds: readonly number[];
  readonly trace: { readonly path: string; readonly bytes: number };
}

describe("braid run --trace", () => {
  it.each([
    ["allgather-matmul.ts", "Allgather", []],
    ["allgather-matmul.ts", "Allgather", ["--interleaving", "seed:1"]],
    ["matmul-allreduce.ts", "Allreduce sum", []],
    ["matmul-reduce-scatter.ts", "ReduceScatter sum", ["--interleaving", "seed:2"]],
    ["set.ts", null, []],
  ])("writes a well-formed trace of the last run: %s with %s %j", async (name, transfer, flags) => {
    const file = path.join(folder.path, "out.json");
    const args = ["--devices", "3", "--repeat", "2", "--json", "--trace", file, ...flags];
    const { status, out, err } = await cli("run", path.join(examples, name), ...args);
    expect([status, err]).toEqual([0, ""]);
    const { milliseconds, trace } = JSON.parse(out) as RunDocument;
    expect(trace).toEqual({ path: file, bytes: readFileSync(file).length });
    expect(milliseconds).toHaveLength(2);
    const { slices, arrows } = check(file, milliseconds[1] ?? 0);
    expect(new Set(slices.map(({ pid }) => pid))).toEqual(new Set([1, 2, 3]));
    expect(new Set(arrows.map((arrow) => arrow.name))).toContain("event");
    if (transfer !== null) {
      const moved = slices.filter(({ cat }) => cat === "transfer");
      expect(moved.length).toBeGreaterThan(0);
      for (const slice of moved) {
        expect(slice.name).toBe(`${transfer} ${slice.args["bytes"]} B`);
        expect(slice.args["statement"]).toMatch(/^Communication \d+ \(type=/);
      }
      expect(arrows.filter((arrow) => arrow.name === "transfer")).toHaveLength(2 * moved.length);
    }
  });

  it("says what it wrote", async () => {
    const file = path.join(folder.path, "said.json");
    const { status, out } = await cli("run", example, "--devices", "2", "--set", "M=64", "--trace", file);
    expect(status).toBe(0);
    const megabytes = (readFileSync(file).length / 1e6).toFixed(2);
    expect(out.trimEnd().split("\n").at(-1)).toBe(`trace: ${file}, ${megabytes} MB, for ui.perfetto.dev`);
  });

  it("replaces an older trace, through a link too, and leaves no other file", async () => {
    const place = path.join(folder.path, "old");
    mkdirSync(place);
    const file = path.join(place, "trace.json");
    const link = path.join(place, "link.json");
    writeFileSync(file, "old");
    symlinkSync("trace.json", link);
    const { status } = await cli("run", example, "--devices", "2", "--set", "M=64", "--trace", link);
    expect(status).toBe(0);
    expect(readFileSync(file, "utf8")).toMatch(/^\{"displayTimeUnit"/);
    expect(readlinkSync(link)).toBe("trace.json");
    expect(readdirSync(place).toSorted()).toEqual(["link.json", "trace.json"]);
  });

  it("refuses a place where it cannot write, before it runs", async () => {
    // The program file does not exist: what is said of the trace comes first.
    const missing = path.join(folder.path, "missing.ts");
    const occupied = folder.write("file.txt", "");
    for (const [place, found] of [
      [path.join(folder.path, "no", "out.json"), "no such file or directory"],
      [path.join(occupied, "out.json"), "not a folder"],
      [folder.path, "a folder"],
      ["/dev/null", "not a regular file"],
    ] as const) {
      const { status, out, err } = await cli("run", missing, "--trace", place);
      expect([status, out]).toEqual([2, ""]);
      expect(err).toContain("error[file-unwritable]: the trace cannot be written");
      expect(err).toContain(`at: --trace ${place}`);
      expect(err).toContain(found);
    }
  });

  it("leaves the older trace as it was when a run fails", async () => {
    const file = folder.write("kept.json", "old");
    const { status } = await cli("run", example, "--timeout", "0.000001", "--trace", file);
    expect(status).toBe(3);
    expect(readFileSync(file, "utf8")).toBe("old");
  });
});

describe("writeTraceFile", () => {
  function* failing(): Generator<string> {
    yield "{";
    throw new Error("ENOSPC: no space left on device, write");
  }

  it("leaves nothing behind when it fails midway", async () => {
    const place = path.join(folder.path, "full");
    mkdirSync(place);
    const file = path.join(place, "out.json");
    const failure = await writeTraceFile(file, failing()).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DiagnosticError);
    expect(String(failure)).toContain("no space left on device");
    expect(existsSync(file)).toBe(false);
    expect(readdirSync(place)).toEqual([]);
  });
});

describe("braid run --print timeline", () => {
  it("says how much of the communication lay under kernels", async () => {
    const args = ["--print", "timeline", "--devices", "2", "--set", "M=64"];
    const { out } = await cli("run", example, ...args);
    expect(out).toMatch(
      /^rank 0: kernels \d+\.\d\d ms, copies 0\.00 ms, transfers \d+\.\d\d ms \(waiting \d+\.\d\d ms\); \d+ % of communication under kernels$/m,
    );
    const json = await cli("run", example, ...args, "--json");
    const { overlap, timeline } = JSON.parse(json.out) as {
      overlap: readonly { rank: number; transfers: number; communication: number; hidden: number; overlap: number }[];
      timeline: readonly string[];
    };
    expect(overlap.map(({ rank }) => rank)).toEqual([0, 1]);
    for (const rank of overlap) {
      expect(rank.communication).toBeGreaterThan(0);
      expect(rank.communication).toBe(rank.transfers);
      expect(rank.overlap).toBeCloseTo(rank.hidden / rank.communication, 12);
    }
    expect(timeline.at(-1)).toMatch(/^rank 0: kernels .* under kernels$/);
  });
});
