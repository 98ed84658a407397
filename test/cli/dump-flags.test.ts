/** Flags for dumps: `--reference`, `--scalar`, and counterexamples that `braid run` replays. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cli, type ProgramFolder, programFolder } from "./captured-cli.ts";

/** T1 = T0 + T0 on one stream, T2 = T1 + T1 on another that waits for it, or does not; on every device. */
const twoStreams = (waits: boolean, body = ""): string => `
%HostIrContainer { (T0_g_float[iS0{i0}, iS1{8}] (DeviceMesh{0 1})) -> (T2_g_float[iS4{i0}, iS5{8}] (DeviceMesh{0 1})) :
  T1_g_float[iS2{i0}, iS3{8}] (DeviceMesh{0 1}) = ALLOCATE(buffer=T1_g_float[iS2{i0}, iS3{8}] (DeviceMesh{0 1}), mem_type=global, size=( i0 * 8 ), zero_init=false, resets_to_zero=false)
  T2_g_float[iS4{i0}, iS5{8}] (DeviceMesh{0 1}) = ALLOCATE(buffer=T2_g_float[iS4{i0}, iS5{8}] (DeviceMesh{0 1}), mem_type=global, size=( i0 * 8 ), zero_init=false, resets_to_zero=false)
  GetCurrentStream into Stream 0
  SetCurrentStream to Stream ( 0 )
  Synchronize Stream 0
  T1_g_float[iS2{i0}, iS3{8}] (DeviceMesh{0 1})
     = T0_g_float[iS0{i0}, iS1{8}] (DeviceMesh{0 1})
     + T0_g_float[iS0{i0}, iS1{8}] (DeviceMesh{0 1});
  SetCurrentStream to Stream ( 1 )
  Synchronize Stream 0
${waits ? "  Synchronize Stream ( 0 )\n" : ""}${body}
  T2_g_float[iS4{i0}, iS5{8}] (DeviceMesh{0 1})
     = T1_g_float[iS2{i0}, iS3{8}] (DeviceMesh{0 1})
     + T1_g_float[iS2{i0}, iS3{8}] (DeviceMesh{0 1});
  SetCurrentStream to Stream 0
  Synchronize Stream ( 0 )
  Synchronize Stream ( 1 )
} // %HostIrContainer
`;

const onlyIf = "  IF Manual waits:\n    Synchronize Stream ( 0 )\n";

/** Four times its input, whose extents are named otherwise than in the dump. */
const quadruple = `
import { add, DeviceMesh, Fusion, program } from "@braid-compiler/braid";
export default program({ factors: 2, columns: 8 }, ({ devices, params: { factors, columns } }) => {
  const f = new Fusion();
  let x = f.input([null, columns]);
  x.setDeviceMesh(DeviceMesh.range(devices));
  for (let i = 0; i < factors; i++) x = add(x, x).setDeviceMesh(DeviceMesh.range(devices));
  f.output(x);
  return f;
});
`;

const handBuilt = (body: string): string => `
import { add, Fusion, HostProgramBuilder, matmul, program } from "@braid-compiler/braid";
export default program({}, () => {
  const h = new HostProgramBuilder();
  const x = h.input([4, 8]);
  ${body}
  return h.build();
}, { reference: () => {
  const f = new Fusion();
  const x = f.input([4, 8]);
  f.output(add(x, x));
  return f;
} });
`;

let folder: ProgramFolder;
let right = "";
let wrong = "";
let either = "";
let reference = "";

beforeAll(() => {
  folder = programFolder();
  right = folder.write("right.hir", twoStreams(true));
  wrong = folder.write("it's wrong.hir", twoStreams(false));
  either = folder.write("either.hir", twoStreams(false, onlyIf));
  reference = folder.write("quadruple.ts", quadruple);
});
afterAll(() => {
  folder.remove();
});

/** The arguments of a command line as a POSIX shell splits it. */
function shellWords(line: string): readonly string[] {
  const words = line.match(/(?:'[^']*'|\\.|[^\s'\\])+/g) ?? [];
  return words.map((word) =>
    word.replaceAll(
      /'([^']*)'|\\(.)/g,
      (_, quoted: string | undefined, escaped: string | undefined) => quoted ?? escaped ?? "",
    ),
  );
}

describe("--reference", () => {
  it("is what --check compares a dump with", async () => {
    const args = ["run", right, "--sizes", "i0=3", "--check", "--reference", reference];
    const { status, out, err } = await cli(...args, "--json");
    expect([status, err]).toEqual([0, ""]);
    expect(JSON.parse(out)).toMatchObject({ devices: 2, params: { factors: 2 }, outputs: [{ check: { ok: true } }] });
    const other = await cli(...args, "--set", "factors=3");
    expect([other.status, other.err]).toEqual([1, expect.stringContaining("error[check-failed]")]);
  });

  const run = ["--sizes", "i0=3", "--check"];
  it("has the dump's inputs and outputs", async () => {
    const { status, err } = await cli("run", right, ...run, "--reference", reference, "--set", "columns=4");
    expect([status, err]).toEqual([2, expect.stringContaining("the reference has other inputs than the program")]);
    expect(err).toContain("found: float [3, 4]");
    expect(err).toContain("expected: float [3, 8]");
  });

  it("is a program file, for a dump", async () => {
    for (const args of [
      [right, "--reference", wrong],
      [reference, "--reference", reference],
    ]) {
      const { status, err } = await cli("run", ...args, ...run);
      expect([status, err]).toEqual([2, expect.stringContaining("error[option-value]: the reference cannot be used")]);
    }
    const { err } = await cli("run", right, ...run, "--reference", folder.write("none.ts", "export const x = 1;"));
    expect(err).toContain("error[program-invalid]");
  });
});

describe("--scalar", () => {
  const args = ["--sizes", "i0=3", "--scalar"];
  it("gives a predicate its value", async () => {
    expect((await cli("verify", either, ...args, "waits=1")).status).toBe(0);
    expect((await cli("verify", either, ...args, "waits=0")).status).toBe(1);
    const checked = [...args, "waits=1", "--check", "--reference", reference];
    expect(await cli("run", either, ...checked)).toMatchObject({ status: 0, err: "" });
    expect((await cli("lower", either, ...args, "waits=1", "--print", "lists")).status).toBe(0);
  });

  it("is asked for, by name", async () => {
    const { status, err } = await cli("run", either, "--sizes", "i0=3");
    expect([status, err]).toEqual([2, expect.stringContaining("--scalar waits=VALUE")]);
    for (const name of ["wait", "i0", "rank", "streamIdx"]) {
      const other = await cli("run", either, ...args, `${name}=1`);
      expect([other.status, other.err]).toEqual([2, expect.stringContaining(`has no open scalar ${name}`)]);
    }
    const none = await cli("verify", right, ...args, "waits=1");
    expect(none.err).toContain("expected: no --scalar, since no value is left open");
  });
});

describe("a counterexample", () => {
  const cases: readonly (readonly [title: string, file: () => string, args: readonly string[]])[] = [
    ["with sizes", () => wrong, []],
    ["with a scalar", () => either, ["--scalar", "waits=0"]],
    ["with a container", () => folder.write("two.log", twoStreams(true) + twoStreams(false)), ["--entry", "1"]],
    ["with devices", () => wrong, ["--devices", "2"]],
    [
      "with streams, roots and a schedule",
      () => wrong,
      ["--schedule", "streams=3", "--as", "nvfuser,roots=positions", "--schedule", "copyStream=dedicated"],
    ],
  ];
  it.each(cases)("%s is replayed by the printed command", async (_, file, args) => {
    const order = `${folder.path}/an order.txt`;
    const given = [...args, "--sizes", "i0=5", "--reference", reference, "--interleaving", order];
    const { status, out } = await cli("verify", file(), ...given);
    expect(status).toBe(1);
    const [, replay = ""] = /^replay: (.*)$/m.exec(out) ?? [];
    const [braid, ...words] = shellWords(replay);
    expect(braid).toBe("braid");
    const replayed = await cli(...words);
    expect(replayed.err).toContain("error[check-failed]: an output differs from the oracle");
    expect(replayed.status).toBe(1);
  });
});

describe("a hand-built program with Stream axes left", () => {
  it("is lowered", async () => {
    const file = folder.write(
      "stream.ts",
      handBuilt(`const y = h.add(x, x); y.axis(0).parallelize("Stream"); h.output(y);`),
    );
    const { status, out } = await cli("lower", file, "--devices", "1");
    expect(status).toBe(0);
    expect(out).toContain("FOR streamIdx in istreamIdx");
    const run = await cli("run", file, "--devices", "1", "--check", "--json");
    expect(run).toMatchObject({ status: 0, err: "" });
    expect(await cli("verify", file, "--devices", "1")).toMatchObject({ status: 0, err: "" });
  });

  it("is refused if it has loops", async () => {
    const body = `
      const y = h.tensor([4, 8]); const z = h.tensor([4, 8]);
      y.axis(0).parallelize("Stream");
      h.allocate(y); h.allocate(z); h.add(x, x, { out: y });
      h.forLoop(4, (i) => { h.set(h.select(y, 0, i), { out: h.select(z, 0, i) }); });
      h.output(z);`;
    const file = folder.write("loops.ts", handBuilt(body));
    for (const command of ["lower", "run", "verify"]) {
      const { status, err } = await cli(command, file, "--devices", "1");
      expect([status, err]).toEqual([2, expect.stringContaining("has a Stream axis, and the program has loops")]);
    }
  });
});
