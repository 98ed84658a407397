/** What other options gain is what explaining the program with them says. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { DeviceMesh, explain, Fusion, linear, relu, set } from "@braid-compiler/braid";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import streamLoops from "../fixtures/stream-parallel-type/fixtures.ts";
import { machine, perMegabyte, transfersAt } from "./machine.ts";

/** Rows of x are gathered in four chunks, each spread over the devices. */
function gathering(): Fusion {
  const f = new Fusion();
  const [x, w] = [f.input([1024, 512], "bfloat16"), f.input([512, 512], "bfloat16")];
  const y = linear(x, w);
  f.output(y);
  for (const tensor of [x, w, y]) tensor.setDeviceMesh(DeviceMesh.range(4));
  x.outerSplit(0, 4);
  x.outerSplit(1, 4).parallelize("DIDx");
  y.outerSplit(0, 4).parallelize("Stream");
  return f;
}

/** Layers whose weights are gathered. */
function withoutChunks(): Fusion {
  const f = new Fusion();
  const [x, ...weights] = [f.input([32768, 8192], "bfloat16"), ...[0, 1].map(() => f.input([8192, 8192], "bfloat16"))];
  f.output(weights.reduce((y, w) => relu(linear(y, w)), x));
  for (const tensor of f.inputs) tensor.setDeviceMesh(DeviceMesh.range(4)).outerSplit(0, 4).parallelize("DIDx");
  return f;
}

const options = { devices: 4, on: "cuda", schedule: "as-written" } as const;

describe("other options", () => {
  it("are predicted as if they were given, the fastest first", () => {
    const profile = machine({ transfers: transfersAt(perMegabyte(200)), peerCopies: perMegabyte(20) });
    const { run, alternatives } = explain(gathering(), options, profile);
    const [first] = alternatives ?? [];
    expect(first).toMatchObject({ options: { backend: "cuda" }, refused: null });
    expect(first?.milliseconds).toBeLessThan(run.milliseconds / 2);
    for (const { options: changed, milliseconds } of alternatives ?? []) {
      const { run: other } = explain(gathering(), { ...options, ...changed }, profile);
      expect(milliseconds).toBe(other.milliseconds);
    }
  });

  it("are told apart by the commands of any rank", () => {
    // Without overlap the first stage, which computes x, does the same.
    const f = new Fusion();
    const [x, w] = [f.input([1024, 512], "bfloat16"), f.input([512, 512], "bfloat16")];
    const moved = set(x);
    const y = linear(moved, w);
    f.output(y);
    x.setDeviceMesh(new DeviceMesh([0]));
    for (const tensor of [moved, w]) tensor.setDeviceMesh(new DeviceMesh([1, 2]));
    for (const axis of [moved.outerSplit(1, 2), w.outerSplit(1, 2)]) axis.parallelize("DIDx");
    y.outerSplit(0, 4).parallelize("Stream");
    const profile = machine({});
    const { alternatives, serial } = explain(f, { devices: 3, on: "cuda", schedule: "as-written" }, profile);
    expect(alternatives).toContainEqual(
      expect.objectContaining({ change: "--schedule overlap=false", milliseconds: serial, refused: null }),
    );
  });

  it("leave the serial form to compare with, which has no loops and takes no protocol", () => {
    const given = { ...options, backend: "cuda", protocol: "put", deviceLoops: true } as const;
    const h200 = parseProfile(readFileSync(new URL("../../profiles/4xH200.json", import.meta.url), "utf8"), "4xH200");
    for (const make of [gathering, withoutChunks]) {
      const { serial } = explain(make(), given, h200);
      expect(serial).toBe(explain(make(), options, h200).serial);
      expect(serial).not.toBeNull();
    }
  });

  it("say why they are refused", () => {
    // Sends and receives cannot reduce.
    const given = { ...options, p2p: "broadcast", disablePass: ["exchange-reductions"] } as const;
    const { alternatives } = explain(streamLoops["reduce-rotated"].build(), given, machine({}));
    expect(alternatives).toContainEqual({
      change: "without --schedule p2p=broadcast",
      options: { backend: "nccl", p2p: "rotated" },
      milliseconds: null,
      refused: "sends and receives cannot reduce",
    });
  });

  it("are not predicted of a chosen schedule, which names the forms that it left out", () => {
    const { alternatives, leftOut } = explain(
      gathering(),
      { ...options, schedule: "auto", backend: "nccl" },
      machine({}),
    );
    expect(alternatives).toEqual([]);
    expect(leftOut).toContainEqual({ name: "get", because: "backend is given as nccl" });
  });
});
