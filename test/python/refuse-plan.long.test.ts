/** What the Python package refuses when ranks load and run plans together: every rank says so, and none waits. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { emulationObstacle } from "../backends/cuda/emulate/compiler.ts";
import { buildFakes, type Fakes } from "../backends/cuda/fake/build-fakes.ts";
import { changed, planOf, ring } from "../plan/plans.ts";
import { pythonRanks, writePlan } from "./python-ranks.ts";

const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`test/python/refuse-plan is skipped: ${obstacle}`);

const scratch = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
let fakes: Fakes;
beforeAll(() => {
  if (obstacle === null) fakes = buildFakes(2);
}, 60_000);
afterAll(() => {
  rmSync(scratch, { recursive: true });
  if (obstacle === null) rmSync(fakes.folder, { recursive: true });
});

const right = planOf(ring(2));
const plans = {
  other: changed(right, "plan.json", (text) => text.replace("0000", "1000")),
  four: planOf(ring(4)),
  larger: changed(right, "plan.json", (text) => text.replace(/("multiprocessors": ?)132/, "$1999")),
};

async function refused(
  test: string,
  second: keyof typeof plans = "other",
): Promise<readonly Record<string, unknown>[]> {
  const folder = path.join(scratch, `${test}-${second}`);
  writePlan(path.join(folder, "first"), right);
  writePlan(path.join(folder, "second"), plans[second]);
  const variables = { ...fakes.env, FAKE_CUDA_PATIENCE: "300" };
  const args = [test, path.join(folder, "first"), path.join(folder, "second")];
  const ranks = await pythonRanks(2, "refuse-plan.py", args, variables);
  expect(ranks.map(({ err }) => err).join("")).toBe("");
  expect(ranks.flatMap(({ left }) => left)).toEqual([]);
  return ranks.map(({ out }) => JSON.parse(out) as Record<string, unknown>);
}

describe.skipIf(obstacle !== null)("braid_torch refuses on every rank", () => {
  it("plans that differ", async () => {
    for (const answer of await refused("other_plan")) expect(answer).toMatchObject({ code: "program-differs" });
  });

  it("a plan that one rank cannot read, or reads with a flipped byte", async () => {
    for (const answer of await refused("flipped_on_one")) {
      expect(answer).toMatchObject({ code: "plan-invalid", found: expect.stringMatching(/^SHA-256 /) as unknown });
    }
    for (const answer of await refused("missing_on_one")) {
      expect(answer).toMatchObject({ code: "plan-invalid", found: expect.stringContaining("nowhere") as unknown });
    }
  });

  it("a plan for another number of ranks", async () => {
    for (const answer of await refused("of_another_kind", "four")) {
      expect(answer).toMatchObject({ code: "plan-mismatch", found: "a group of 2 processes", expected: "4" });
      expect(answer["fix"]).toContain("--devices 2");
    }
  });

  it("a plan for larger GPUs", async () => {
    for (const answer of await refused("of_another_kind", "larger")) {
      expect(answer).toMatchObject({
        code: "plan-mismatch",
        found: "Fake GPU, compute capability 9.0, 132 multiprocessors",
      });
    }
  });

  it("a group that spans hosts, and GPUs that do not share memory", async () => {
    const code = "backend-unavailable";
    for (const answer of await refused("other_host")) {
      expect(answer).toMatchObject({ code, found: "rank 1 is on another host than rank 0" });
    }
    for (const answer of await refused("no_sharing")) {
      expect(answer).toMatchObject({ code, fix: expect.stringContaining("nvidia-smi topo") as unknown });
    }
  });

  it("a plan that needs more memory than a rank has; smaller ones after it get theirs", async () => {
    for (const [rank, answer] of (await refused("too_little_memory")).entries()) {
      expect(answer).toMatchObject({ code: "gpu-memory", moved: true, last: [1, 2], reclaimed: rank === 1 ? [1] : [] });
    }
  });

  it("a first call inside a capture, and a session after fork", async () => {
    for (const answer of await refused("first_in_capture")) expect(answer).toMatchObject({ code: "plan-mismatch" });
    for (const answer of await refused("after_fork")) expect(answer).toMatchObject({ code: "forked", found: "0" });
  });

  it("a call that one rank refuses: it takes part, and the others hear of it once", async () => {
    const [own, other] = await refused("one_rank_refuses");
    expect(own).toEqual({ said: [[1, "its own"]], runs: 4, left: 0 });
    expect(other).toMatchObject({ runs: 4, left: 0 });
    const said = other?.["said"] as readonly unknown[];
    expect(said).toHaveLength(1);
    expect(said[0]).toEqual([
      expect.any(Number),
      "peer-refused",
      "2: a shape that does not fit",
      expect.stringMatching(/^the results of (this call|the call 1 before this one) are void on all ranks/),
    ]);
  });

  it("a call that all ranks refuse: nobody hears of it twice, and the next call works", async () => {
    for (const answer of await refused("all_ranks_refuse")) {
      expect(answer).toEqual({ said: [[1, "its own"]], runs: 4, left: 0 });
    }
  });

  it("a call of a rank that is ahead: the others hear of it when they come to it", async () => {
    const [own, other] = await refused("ahead");
    expect(own).toMatchObject({ said: [[2, "its own"]] });
    const void_ = "the results of this call are void on all ranks";
    expect(other).toMatchObject({ said: [[2, "peer-refused", "3: a shape that does not fit", void_]], runs: 4 });
  });
});

describe.skipIf(obstacle !== null)("braid_torch's graphs", () => {
  it("are kept for as many sets of tensors as fit, also in a loop over more", async () => {
    const said = "braid_torch keeps graphs for 2 sets of tensors";
    for (const [rank, answer] of (await refused("many_tensors")).entries()) {
      const counts = { runs: 12, graphs: 6, one_by_one: 6, captured: 0, refused: 0 };
      expect(answer).toEqual({ ...counts, said: rank === 0 ? [said] : [] });
    }
  });
});

describe.skipIf(obstacle !== null)("braid_torch's watch", () => {
  it("reports a run that does not end: rank, stream, command and peer", async () => {
    const [waits] = await refused("stuck");
    const { reports } = waits as { readonly reports: readonly (readonly string[])[] };
    const [plan, line] = reports[0] ?? [];
    expect(plan).toMatch(/first, 0\.3 s after its last call$/);
    expect(line).toMatch(/^rank 0, .*: reached command \d+, waitSignal .*; it waits for rank 1 \(/);
  });

  it("takes runs in a row for no stuck run", async () => {
    for (const answer of await refused("moving")) expect(answer).toEqual({ before: 0, after: 1 });
  });
});
