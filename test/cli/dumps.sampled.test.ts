/**
 * `braid run`, `braid verify` and `braid lower` with dumps: every dump of the fixtures, and flags that dumps do not
 * allow.
 */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { realDumps, writtenDumps } from "../host/parse/dump-cases.ts";
import { cli } from "./captured-cli.ts";
import { runs } from "../support/suite.ts";

const folder = path.resolve(import.meta.dirname, "../fixtures/dumps");
const sets = path.join(folder, "e1-single-set.hir");
const allgather = path.join(folder, "e2-allgather.hir");

const all = [...realDumps, ...writtenDumps];
const sizesOf = (sizes: Readonly<Record<string, number>>): readonly string[] =>
  Object.entries(sizes).flatMap(([name, size]) => ["--sizes", `${name}=${size}`]);

/** Of linears of 1024 x 1024, quick runs the one that has a loop. */
const large = ["draft-allgather-linear.hir", "e3-allgather-linear-p2p-cuda.hir"];
const isQuick = runs({ quick: 1, long: 0 }) === 1;

it.each(all.filter(({ file }) => large.includes(file) !== isQuick))(
  "$file runs on as many devices as its meshes name",
  async ({ file, devices, sizes, reference }) => {
    const outputs = reference().data();
    const { status, out, err } = await cli("run", path.join(folder, file), ...sizesOf(sizes), "--json");
    expect([status, err]).toEqual([0, ""]);
    const document = JSON.parse(out) as { devices: number; outputs: { dtype: string }[] };
    expect(document).toMatchObject({
      devices,
      outputs: outputs.outputs.map((id) => ({ dtype: outputs.tensors[id]?.dtype })),
    });
  },
);

it.each(all)("$file is verified", async ({ file, devices, sizes }) => {
  const { status, out, err } = await cli("verify", path.join(folder, file), ...sizesOf(sizes), "--json");
  expect([status, err]).toEqual([0, ""]);
  expect(JSON.parse(out)).toMatchObject({ devices, ok: true });
});

it("seeds give the same run again", async () => {
  const run = async (seed: string): Promise<unknown> => {
    const { out } = await cli("run", sets, "--sizes", "i0=4", "--sizes", "i2=3", "--seed", seed, "--json");
    return (JSON.parse(out) as { outputs: unknown }).outputs;
  };
  expect(await run("5")).toEqual(await run("5"));
  expect(await run("5")).not.toEqual(await run("6"));
});

it("lower prints a dump in another style", async () => {
  const { status, out } = await cli("lower", path.join(folder, "written/call-style.hir"), "--as", "braid:2025-05");
  const { out: other } = await cli("lower", allgather, "--as", "braid:2025-05");
  expect(status).toBe(0);
  expect(out).toBe(other);
  const { out: calls } = await cli("lower", allgather, "--as", "braid:2026-01");
  expect(calls).toContain("    Wait(Communication 39)\n    SetCurrentStream(Stream 0x0)\n");
});

it("a kernel of an unknown op is verified, and not run", async () => {
  const args = [path.join(folder, "written/opaque-unit.hir"), "--sizes", "i0=3,i2=4,i3=4,i4=3"];
  expect(await cli("verify", ...args)).toMatchObject({ status: 0, err: "" });
  const { status, err } = await cli("run", ...args);
  expect([status, err]).toEqual([
    2,
    expect.stringContaining("error[kernel-opaque]: lgammaf in HostUnit0 cannot be run"),
  ]);
});

describe("what does not go with a dump", () => {
  const cases: readonly (readonly [title: string, args: readonly string[], expected: readonly string[]])[] = [
    [
      "a missing file",
      ["absent.hir"],
      ["error[file-unreadable]", "no such file or directory", ".hir, .txt, .log, .out"],
    ],
    ["a size that it does not have", [sets, "--sizes", "i9=3"], ["error[size-unknown]", "one of i0, i2"]],
    ["no sizes", [sets], ["error[size-missing]", "--sizes i0=N,i2=N"]],
    ["a parameter", [sets, "--set", "M=3"], ["error[option-unknown]", "the program has no parameters"]],
    [
      "a lowering option",
      [sets, "--backend", "cuda"],
      ["error[option-value]", "a dump is already lowered", "--backend"],
    ],
    [
      "fewer devices than it names",
      [allgather, "--devices", "4"],
      ["error[device-count]", "the dump is for 8 devices"],
    ],
    ["more devices than it names", [allgather, "--devices", "9"], ["error[dump-container]", "of 9 devices"]],
    ["a container that it does not have", [sets, "--entry", "2"], ["error[dump-container]", "no container 2"]],
    [
      "a meaning of roots that does not exist",
      [sets, "--as", "nvfuser,roots=ranks"],
      ["error[option-value]", "roots=devices or ,roots=positions"],
    ],
  ];
  it.each(cases)("%s", async (_, args, expected) => {
    for (const command of ["run", "verify"]) {
      const { status, out, err } = await cli(command, ...args);
      for (const part of expected) expect(err).toContain(part);
      expect([status, out]).toEqual([2, ""]);
    }
  });

  it("a check", async () => {
    const { status, err } = await cli("run", sets, "--sizes", "i0=4", "--sizes", "i2=3", "--check");
    expect(err).toContain("--check needs a reference, and this host program has none");
    expect(err).toContain(`found: the dump ${sets}`);
    expect(status).toBe(2);
  });
});
