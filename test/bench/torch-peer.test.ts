/** The protocol with PyTorch's process, tested with stand-ins that work and that fail in every way. */
import process from "node:process";
import { describe, expect, it } from "vitest";
import { exchangeAlone } from "../../src/launch/exchange.ts";
import { type PeerImplementation, peerContender, setUpPeer } from "../../bench/compare/torch/peer-contender.ts";
import type { Problem } from "../../bench/compare/primitives.ts";
import { nodeScript } from "../support/node-script.ts";
import { startPeer, type TorchPeer } from "../../bench/compare/torch/torch-peer.ts";

const fakePeer = await nodeScript("test/bench/fake-peer.ts");

const problem: Problem = { primitive: "tp-columnwise", m: 64, n: 8, k: 16, dtype: "bfloat16", devices: 2 };

function start(manner: string, timeout = 10_000) {
  return startPeer({
    command: [process.execPath, fakePeer],
    env: { FAKE_PEER: manner, RANK: "1" },
    timeout,
    startTimeout: 10_000,
  });
}

async function withPeer<T>(manner: string, use: (peer: TorchPeer) => Promise<T>, timeout?: number): Promise<T> {
  const started = await start(manner, timeout);
  if (started.kind === "failed") throw new Error(started.why);
  try {
    return await use(started.value);
  } finally {
    await started.value.close();
  }
}

const ability = { impls: [], tellsKernels: true } as const;

function asked(name: PeerImplementation["name"]): PeerImplementation {
  return { kind: "peer", name, said: "", asked: true };
}

describe("PyTorch's process", () => {
  it("sets a problem up, runs turns and validates", async () => {
    await withPeer("well", async (peer) => {
      expect(peer.ready).toMatchObject({ ready: 1, torch: "fake" });
      expect(await setUpPeer(peer, { ...problem, seed: 0 }, exchangeAlone)).toEqual({
        kind: "done",
        value: { impls: ["compute-only", "nccl", "async-tp", "xla"], tellsKernels: true },
      });
      const contender = peerContender(asked("torch-nccl"), peer, ability);
      const timing = { milliseconds: 3 * 1.1, hostMicroseconds: 30 * 1.1 };
      expect(await contender.turn(2)).toEqual({ kind: "done", value: [timing, timing] });
      expect(await contender.row(20)).toEqual({ kind: "done", value: (10 * (3 * 1.1)) / 20 });
      expect(await contender.check()).toEqual({ kind: "done", value: 0.25 });
      const kernels = { gemms: 1, attention: 0.5, others: 0.25 };
      expect(await contender.trace(exchangeAlone)).toEqual({
        kind: "done",
        value: { kernels, communication: null, exposed: null },
      });
      const silent = peerContender(asked("torch-nccl"), peer, { ...ability, tellsKernels: false });
      expect(await silent.trace(exchangeAlone)).toEqual({ kind: "done", value: null });
    });
  });

  it("may be absent: what it wrote says why", async () => {
    const started = await start("absent");
    expect(started.kind === "failed" ? started.why : "").toContain("No module named 'torch'");
    const missing = await startPeer({ command: ["no-such-python"], env: {}, timeout: 100, startTimeout: 5000 });
    expect(missing.kind === "failed" ? missing.why : "").toContain("no-such-python");
  });

  it("may refuse one contender and go on with others", async () => {
    await withPeer("refusing", async (peer) => {
      expect(await peerContender(asked("torch-async-tp"), peer, ability).turn(1)).toEqual({
        kind: "failed",
        why: "RuntimeError: no symmetric memory",
      });
      expect(await peerContender(asked("torch-nccl"), peer, ability).turn(1)).toMatchObject({ kind: "done" });
    });
  });

  it("may fall silent: the request and all later ones fail, and it is ended", async () => {
    await withPeer(
      "silent",
      async (peer) => {
        const contender = peerContender(asked("torch-nccl"), peer, ability);
        const silence = { kind: "failed", why: "no answer within 0.3 s" };
        expect(await contender.turn(1)).toEqual(silence);
        expect(await contender.check()).toEqual(silence);
      },
      300,
    );
  });

  it("may answer nonsense", async () => {
    await withPeer("odd", async (peer) => {
      const contender = peerContender(asked("torch-nccl"), peer, ability);
      const why = (answer: string): string => `an answer that cannot be parsed: ${answer}`;
      expect(await contender.turn(1)).toEqual({ kind: "failed", why: why('{"ms":"soon"}') });
      expect(await contender.row(1)).toEqual({ kind: "failed", why: why('{"host_us":"soon"}') });
    });
  });
});
