/** Small inputs that ask for much: seconds and little memory. Each used to take minutes or gigabytes. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
const main = path.join(root, "dist/cli/main.js");
const dumps = path.join(root, "test/fixtures/dumps");
let work = "";
beforeAll(() => {
  work = mkdtempSync(path.join(tmpdir(), "braid-small-"));
});
afterAll(() => {
  rmSync(work, { recursive: true });
});

function written(name: string, text: string): string {
  const file = path.join(work, name);
  writeFileSync(file, text);
  return file;
}

/** Runs `braid` with a heap of so many MB. Node ends a process that needs more. */
function braid(heap: number, ...args: readonly string[]): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`--max-old-space-size=${heap}`, main, ...args], {
    encoding: "utf8",
    timeout: 120_000,
  });
  return { status, text: stdout + stderr };
}

const strided = `import { HostProgramBuilder, program } from "@braid-compiler/braid";
export default program({ R: 60_000_000 }, ({ params: { R } }) => {
  const h = new HostProgramBuilder();
  const [a, c] = [h.input([R, 2]), h.tensor([R, 2])];
  h.output(c);
  h.allocate(c);
  h.set(h.select(a, 1, 0), { out: h.select(c, 1, 0) });
  return h.build();
});
`;

const eight = "(DeviceMesh{0 1 2 3 4 5 6 7})";
const synchronizations = `%HostIrContainer { (T0_g_float[iS0{4}] ${eight}) -> (T1_g_float[iS1{4}] ${eight}) :
  T1_g_float[iS1{4}] ${eight} = ALLOCATE(buffer=T1_g_float[iS1{4}] ${eight}, mem_type=global, size=4, zero_init=false, resets_to_zero=false)
  GetCurrentStream into Stream 0
  FOR i5 from 0 to 65535:
    Synchronize Stream ( i5 % numberOfStreams )
  T1_g_float[iS1{4}] ${eight}
     = T0_g_float[iS0{4}] ${eight}
     + T0_g_float[iS0{4}] ${eight};
} // %HostIrContainer
`;

describe("braid verify", () => {
  it("a column of 60 million rows", () => {
    const { status, text } = braid(100, "verify", written("strided.ts", strided), "--devices", "1");
    expect(text).toContain("240000000 bytes of 480000000, from T1[0, 1] on, have not been written");
    expect(status).toBe(1);
  });

  it("a loop of 65,535 synchronizations on 8 ranks", () => {
    const { status, text } = braid(450, "verify", written("loop.hir", synchronizations));
    expect(text).toContain("and 524279 more of the same statements");
    expect(status).toBe(0);
  });

  it("a mesh of 10,000 devices", () => {
    const ids = Array.from({ length: 10_000 }, (_, i) => i).join(" ");
    const dump = readFileSync(path.join(dumps, "e2-allgather.hir"), "utf8").replaceAll("0 1 2 3 4 5 6 7", ids);
    const { status, text } = braid(700, "verify", written("mesh.hir", dump), "--sizes", "i0=1,i2=10000");
    expect(text).toContain("ok; 10000 devices");
    expect(status).toBe(0);
  });

  it("more pairs of commands and queues than it can verify", () => {
    const example = path.join(root, "test/fixtures/programs/allgather.ts");
    const { status, text } = braid(
      1000,
      "verify",
      example,
      "--devices",
      "4096",
      "--set",
      "S=8",
      "--set",
      "N=1",
      "--verify",
      "full",
    );
    expect(text).toContain("error[recording-too-long]");
    expect(text).toMatch(/found: \d+ commands on \d+ queues: \d+ pairs/);
    expect(text).toContain("expected: at most 4294967296 pairs");
    expect(status).toBe(2);
  });

  it("4096 devices", () => {
    const example = path.join(root, "test/fixtures/programs/allgather.ts");
    const { status, text } = braid(700, "verify", example, "--devices", "4096", "--set", "S=1", "--set", "N=1");
    expect(text).toContain("ok; 4096 devices");
    expect(status).toBe(0);
  });
});
