/** Output and exit status of `braid lower` and `braid run` with valid arguments. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { lower, print } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { cli } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const dump = path.resolve(import.meta.dirname, "../fixtures/dumps/e2-allgather.hir");
const example = path.resolve(import.meta.dirname, "../../examples/nvfuser/allgather-matmul.ts");
const folder = ownFolder();

describe("braid", () => {
  it("says its version", async () => {
    const { version } = JSON.parse(readFileSync(path.resolve(import.meta.dirname, "../../package.json"), "utf8")) as {
      version: string;
    };
    expect(await cli("--version")).toEqual({ status: 0, out: `${version}\n`, err: "" });
  });

  it("without a command shows the help and status 2", async () => {
    const { status, out, err } = await cli();
    expect([status, out]).toEqual([2, ""]);
    for (const command of ["lower", "run", "doctor"]) expect(err).toContain(`  ${command} [options]`);
  });

  it.each([["--help"], ["lower", "--help"], ["run", "--help"], ["doctor", "--help"]])(
    "shows help: %s %s",
    async (...args) => {
      const { status, out, err } = await cli(...args);
      expect([status, err]).toEqual([0, ""]);
      expect(out).toContain("Usage: braid");
    },
  );

  it("has a flag for every lowering option", async () => {
    const { out } = await cli("lower", "--help");
    for (const flag of [
      "--backend",
      "--schedule",
      "p2p",
      "protocol",
      "interStreamSync",
      "insertReshardingAfter",
      "deallocate",
      "shrink",
    ]) {
      expect(out).toContain(flag);
    }
  });
});

describe("braid lower", () => {
  it("takes lowering options", async () => {
    const plain = await cli("lower", example);
    expect(plain.out).toContain("Deallocate");
    expect(plain.out).toContain("backend=NCCL");
    const changed = await cli(
      "lower",
      example,
      "--schedule",
      "deallocate=false",
      "--backend",
      "ucc",
      "--schedule",
      "insertReshardingAfter",
    );
    expect(changed.status).toBe(0);
    expect(changed.out).not.toContain("Deallocate");
    expect(changed.out).toContain("backend=UCC");
    expect(changed.out.indexOf("matmul(")).toBeLessThan(changed.out.indexOf("Communication"));
    expect(plain.out.indexOf("Communication")).toBeLessThan(plain.out.indexOf("matmul("));
  });

  it("takes parameters, devices and a rank", async () => {
    const { out } = await cli("lower", example, "--devices", "2", "--rank", "1", "--set", "K=64", "--set", "S=4");
    expect(out).toContain("T0_g_float[iS0{4}, ideviceIdx.x1{2}, iS2{192}, iS3{64}] (DeviceMesh{0 1})");
  });

  it("lowers as nvFuser does, and a dump only runs so", async () => {
    const { out } = await cli("lower", example, "--as", "nvfuser:2025-05", "--json");
    const document = JSON.parse(out) as { readonly options: object; readonly style: string; readonly text: string };
    expect(document.options).toEqual({ nvfuserLimits: true, deallocate: false, shrink: false });
    expect(document.style).toBe("2025-05");
    const { default: file } = await import("../../examples/nvfuser/allgather-matmul.ts");
    const host = lower(file.build({ devices: 8 }), { nvfuserLimits: true, deallocate: false, shrink: false });
    expect(document.text).toBe(print(host, { style: "2025-05" }));
    const kept = await cli("lower", example, "--as", "nvfuser", "--schedule", "deallocate");
    expect(kept.out).toContain("Deallocate");
    const sizes = ["--sizes", "i0=8", "--json"];
    for (const form of ["nvfuser", "braid"]) expect((await cli("verify", dump, "--as", form, ...sizes)).status).toBe(0);
  });

  it("takes the later value of a repeated --schedule", async () => {
    const { out } = await cli(
      "lower",
      example,
      "--schedule",
      "p2p=linear,streams=2",
      "--schedule",
      "p2p=rotated",
      "--json",
    );
    expect((JSON.parse(out) as { readonly options: object }).options).toEqual({ p2p: "rotated" });
  });

  it("prints in the style of an era", async () => {
    expect((await cli("lower", example, "--as", "braid:2025-05")).out).toContain("FOR StreamIdx in iStreamIdx");
    expect((await cli("lower", example)).out).toContain("FOR streamIdx in istreamIdx");
  });

  it("prints after each pass", async () => {
    const all = await cli("lower", example, "--print", "passes");
    expect(all.out.match(/^\/\/ after .*$/gm)).toEqual([
      "// after remove-dead-ops (unchanged)",
      "// after decompose-attention (unchanged)",
      "// after propagate-shardings (unchanged)",
      "// after place-scalars (unchanged)",
      "// after place-casts (unchanged)",
      "// after ignore-unit-dimensions (unchanged)",
      "// after ignore-stream-axes (unchanged)",
      "// after fold-permutes (unchanged)",
      "// after fold-sums (unchanged)",
      "// after split-indices (unchanged)",
      "// after insert-routes",
      "// after exchange-sums (unchanged)",
      "// after loop-over-devices (unchanged)",
      "// after segment",
      "// after exchange-reductions (unchanged)",
      "// after stream-parallel-type",
      "// after convert-op-to-communication",
      "// after sink-waits (unchanged)",
      "// after cover-communications (unchanged)",
      "// after write-over-inputs (unchanged)",
      "// after deallocate",
      "// after shrink-stream-buffers",
    ]);
    const one = await cli("lower", example, "--print", "passes=segment");
    expect(one.out).toMatch(/^\/\/ after segment\n%HostIrContainer/);
    expect(one.out).not.toContain("FOR streamIdx");
  });

  it("as JSON", async () => {
    const { status, out, err } = await cli(
      "lower",
      example,
      "--json",
      "--devices",
      "2",
      "--set",
      "S=4",
      "--schedule",
      "deallocate=false",
    );
    expect([status, err]).toEqual([0, ""]);
    const document = JSON.parse(out) as { text: string };
    expect(document).toMatchObject({
      file: example,
      devices: 2,
      rank: 0,
      params: { S: 4, M: 1536, K: 256, N: 128 },
      options: { deallocate: false },
      style: "2025-10",
      passes: [],
      hostProgram: { kind: "HostProgram" },
    });
    expect(document.text).toBe(
      (await cli("lower", example, "--devices", "2", "--set", "S=4", "--schedule", "deallocate=false")).out,
    );
  });
});

describe("braid run", () => {
  it("prints one line of figures, a table of outputs and one of what moves", async () => {
    const { status, out, err } = await cli("run", example, "--devices", "2", "--check", "--set", "M=64");
    expect([status, err]).toEqual([0, ""]);
    expect(out).toMatch(
      /^\S+allgather-matmul\.ts: 2 devices \(cpu\), 4 streams, seed 0, \d+\.\d\d ms \+ \d+\.\d\d ms copying\noutput +dtype +shape +fingerprint +largest error +of the bound +check\nT2 +float +\[8, 2, 4, 128\] +[0-9a-f]{16} +\d\.\d\de-\d +\d+\.\d % +passed\ntensor +collective +along +Stream +bytes +because\na +Allgather +DIDx +yes +32,768 +c = matmul\(a, b\) needs it as c is annotated\n$/,
    );
  });

  it("says nothing of a check that was not asked for", async () => {
    const { out } = await cli("run", example, "--devices", "2", "--set", "M=64");
    // The first line names the file by its path, which may hold any word.
    expect(out.replaceAll(example, "FILE")).toMatch(/^FILE: 2 devices/);
    expect(out.replaceAll(example, "FILE")).not.toMatch(/check|error|oracle/);
  });

  it("repeats, prints the host program and draws the streams", async () => {
    const args = ["--repeat", "3", "--print", "host,timeline", "--devices", "2", "--schedule", "streams=2"];
    const { status, out } = await cli("run", example, ...args);
    expect(status).toBe(0);
    expect(out).toMatch(/^\n%HostIrContainer/);
    expect(out).toMatch(/^worker 1 +[kct.]+ +\d+\.\d\d ms$/m);
    expect(out).toMatch(/3 runs: \d+\.\d\d \/ \d+\.\d\d \/ \d+\.\d\d ms \(least, median, most\)/);
  });

  it("gives the same bits for every schedule, and other bits for another seed", async () => {
    const list = folder.write("schedule.txt", "0:0 # the caller first\n1:0\n");
    const fingerprints = new Set<string>();
    for (const schedule of ["seed:1", "hold:1:3", list]) {
      fingerprints.add(await fingerprint("--interleaving", schedule));
    }
    fingerprints.add(await fingerprint());
    expect(fingerprints.size).toBe(1);
    expect(fingerprints).not.toContain(await fingerprint("--seed", "1"));
  });

  it("takes sizes of symbolic extents", async () => {
    const file = folder.write(
      "symbolic.ts",
      `import { DeviceMesh, Fusion, program, set } from "@braid-compiler/braid";
       export default program({}, ({ devices }) => {
         const f = new Fusion();
         const a = f.input([null, null, null], "half");
         const b = set(a);
         f.output(b);
         for (const tv of [a, b]) tv.setDeviceMesh(DeviceMesh.range(devices));
         a.axis(0).parallelize("DIDx");
         return f;
       });`,
    );
    const { status, out, err } = await cli(
      "run",
      file,
      "--devices",
      "3",
      "--sizes",
      "i2=5",
      "--sizes",
      "i3=7",
      "--check",
    );
    expect([status, err]).toEqual([0, ""]);
    expect(out).toMatch(/T1 +half +\[3, 5, 7\] .* passed/);
  });

  it("ends with status 3 when the run fails: no such back end here, too little memory, out of time", async () => {
    const cuda = await cli("run", example, "--on", "cuda");
    expect(cuda).toMatchObject({ status: 3, out: "" });
    expect(cuda.err).toContain("error[backend-unavailable]");
    const large = await cli("run", example, "--set", "M=6400000000");
    expect(large).toMatchObject({ status: 3, out: "" });
    expect(large.err).toContain("error[memory-limit]");
    expect(large.err).toContain("found: 6103.52 GiB: float [8, 8, 100000000, 256], float [256, 128]");
    // The inputs alone fit, but not with a copy of A and C on each device; nothing is drawn before that is known.
    const copies = await cli("run", example, "--set", "M=1536000");
    expect(copies).toMatchObject({ status: 3, out: "" });
    expect(copies.err).toContain("the program needs more memory than the CPU back end can address");
    const late = await cli("run", example, "--timeout", "0.000001");
    expect(late).toMatchObject({ status: 3, out: "" });
    expect(late.err).toContain("error[timed-out]");
  });

  it("as JSON", async () => {
    const { status, out, err } = await cli("run", example, "--json", "--check", "--devices", "2", "--set", "M=64");
    expect([status, err]).toEqual([0, ""]);
    const document = JSON.parse(out) as { milliseconds: number[] };
    expect(document).toMatchObject({
      devices: 2,
      on: "cpu",
      streams: 4,
      seed: 0,
      params: { M: 64 },
      outputs: [{ name: "T2", dtype: "float", shape: [8, 2, 4, 128], check: { ok: true } }],
      failures: [],
    });
    expect(document.milliseconds).toHaveLength(1);
  });
});

async function fingerprint(...args: readonly string[]): Promise<string> {
  const { out, err } = await cli("run", example, "--devices", "2", "--set", "M=64", "--json", ...args);
  expect(err).toBe("");
  const { outputs } = JSON.parse(out) as { outputs: [{ fingerprint: string }] };
  return outputs[0].fingerprint;
}
