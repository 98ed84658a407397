/** Forms of single statements and of whole copies that no dump of the fixtures has. */
import { describe, expect, it } from "vitest";
import { parse, type ParseOptions, print, type Statement } from "@braid-compiler/braid";
import { parseContainers } from "@braid-compiler/braid/internals";
import { walk } from "../../../src/host/traverse.ts";
import { dumpText, realDumps } from "./dump-cases.ts";

const a = "T0_g_float[ideviceIdx.x0{2}, iS1{3}] (DeviceMesh{1 2})";
const b = "T1_g_float[iS2{2}, iS3{3}] (DeviceMesh{1 2})";
const signature = `(${a}) -> (${b})`;

function statements(lines: readonly string[], options?: ParseOptions): readonly Statement[] {
  const text = [`%HostIrContainer { ${signature} :`, ...lines.map((line) => `  ${line}`), "} // %HostIrContainer"];
  return walk(parse(text.join("\n"), options).body);
}

const constant = (value: number): object => ({ kind: "constant", value });

describe("roots", () => {
  const gather = (root: string, era: "2025" | "2026"): readonly string[] => [
    `Communication 5 (type=Gather, team=(1 2), root=${root}, input=${a}, output=${b}, backend=NCCL)`,
    era === "2025" ? "Wait Communication 5" : "Wait(Communication 5)",
  ];
  const rootOf = (lines: readonly string[], options?: ParseOptions): unknown => {
    const [communication] = statements(lines, options);
    return communication?.kind === "Communication" ? communication.root : null;
  };

  it("are device ids until 2025 and positions from 2026 on", () => {
    expect(rootOf(gather("1", "2025"))).toEqual(constant(0));
    expect(rootOf(gather("2", "2025"))).toEqual(constant(1));
    expect(rootOf(gather("1", "2026"))).toEqual(constant(1));
  });

  it("are what the caller says", () => {
    expect(rootOf(gather("1", "2025"), { roots: "positions" })).toEqual(constant(1));
    expect(rootOf(gather("1", "2026"), { roots: "devices" })).toEqual(constant(0));
    expect(() => rootOf(gather("0", "2025"))).toThrow("the root of a communication is not in its team");
    expect(rootOf(gather("0", "2025"), { roots: "positions" })).toEqual(constant(0));
  });

  it("that loop over the devices count the team in both", () => {
    for (const era of ["2025", "2026"] as const) {
      const lines = ["FOR streamIdx in iS2{2}:", ...gather("streamIdx", era).map((line) => `  ${line}`)];
      expect(statements(lines)[1]).toMatchObject({ root: { kind: "named", name: "streamIdx" } });
    }
  });
});

describe("statements", () => {
  it("memory without buffer and size takes them from the tensor", () => {
    expect(statements([`${b} = ALLOCATE(mem_type=global, zero_init=true)`])).toEqual([
      { kind: "Allocate", tensor: 1, memory: "global", size: constant(6), zeroInit: true, fresh: true },
    ]);
  });

  it("ShareMemHandles with and without its parenthesis and its last comma", () => {
    const peer = (id: number, type: string): string =>
      `P2PCommunication ${id} (type=${type}, buffer=${b}, peer=1, backend=CUDA)`;
    const lists = [", ", ",", "", ")", ", )"].map((end) =>
      statements([`ShareMemHandles(${peer(3, "recv")}, ${peer(4, "send")}${end}`, peer(4, "send")]),
    );
    for (const list of lists) {
      expect(list).toHaveLength(2);
      expect(list[0]).toMatchObject({
        kind: "ShareMemHandles",
        communications: [{ id: 3 }, { id: 4, peer: constant(1) }],
      });
    }
  });

  it("branches without a first side, and loops without a body", () => {
    const lines = [
      "IF Manual ( rank == 1 ):",
      "ELSE:",
      "  StartCoalescing",
      "  EndCoalescing 3",
      "FOR i9 from 0 to 3:",
    ];
    expect(statements(lines)).toMatchObject([
      { kind: "IfThenElse", then: [], else: [{ kind: "StartCoalescing" }, { kind: "EndCoalescing", id: 3 }] },
      {},
      {},
      { kind: "ForLoop", iterDomain: null, index: { kind: "symbol", name: "i9" }, stop: constant(3), body: [] },
    ]);
  });

  it("numbers that are not printed get tensors, streams and units that nothing uses", () => {
    const text = [
      "%HostIrContainer { () -> () :",
      "  T3_g_float[iS9{2}] = ALLOCATE(buffer=T3_g_float[iS9{2}], mem_type=global, size=2, zero_init=false, resets_to_zero=false)",
      "  SetCurrentStream to Stream 4",
      "  SetCurrentStream to Stream ( rank % 2 )",
      "} // %HostIrContainer",
    ].join("\n");
    const { tensors, streams, iterDomainCount } = parse(text);
    expect(tensors.map(({ id, domain }) => [id, domain.logical.length])).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
      [3, 1],
    ]);
    expect(streams.map(({ index }) => index?.kind ?? null)).toEqual(["binary", null, null, null, null]);
    expect(iterDomainCount).toBe(10);
  });

  it("scalars among the inputs are names that the run gives", () => {
    const text =
      "%HostIrContainer { (T0_g_float[iS0{4}], i7) -> () :\n  IF Manual ( i7 > 2 ):\n    T1_l_float[]\n       = HirAliasSelect( T0_g_float[iS0{4}], axis = iS0{4}, index = i7 )\n} // %HostIrContainer";
    const { inputs, body, scalarCount } = parse(text);
    expect(inputs).toEqual([0]);
    expect(scalarCount).toBe(8);
    expect(walk(body)[1]).toMatchObject({ index: { kind: "symbol", name: "i7" } });
  });

  it("true and false, negative numbers, and operators of every precedence", () => {
    const [first, second] = statements([
      "IF Manual true:",
      "IF Manual ( ( rank >= -1 ) && ( ( ceilDiv(i0, 3) ) != ( min(rank, 4) ) ) ):",
    ]);
    expect(first).toMatchObject({ predicate: constant(1) });
    expect(second).toMatchObject({
      predicate: { op: "and", lhs: { op: "ge", rhs: constant(-1) }, rhs: { op: "ne", lhs: { op: "ceilDiv" } } },
    });
  });
});

describe("copies", () => {
  const changes: readonly (readonly [name: string, change: (text: string) => string])[] = [
    ["with Windows line ends", (text) => text.replaceAll("\n", "\r\n")],
    ["indented", (text) => text.replaceAll(/^/gmu, "      ")],
    ["indented, copied from the % on", (text) => text.trimStart().replaceAll("\n", "\n      ")],
    ["indented, in a quoted mail", (text) => text.replaceAll(/^/gmu, "> >   ")],
    [
      "in a quoted mail whose blank lines lost their blank",
      (text) => text.replaceAll(/^/gmu, "> ").replaceAll(/^> $/gmu, ">"),
    ],
    ["with blanks at the ends of lines", (text) => text.replaceAll(/$/gmu, "  ")],
    ["without the blanks at the ends of lines", (text) => text.replaceAll(/ +$/gmu, "")],
    ["with blank lines between", (text) => text.replaceAll("\n    ", "\n\n    ")],
    ["in a fenced block with text around", (text) => `See the dump:\n\`\`\`\n${text}\`\`\`\nDone.\n`],
    ["from a web page", (text) => text.replaceAll(/^ +/gmu, (blanks) => "\u{A0}".repeat(blanks.length))],
    ["behind a byte order mark", (text) => `\u{FEFF}${text}`],
    ["without the end of the last line", (text) => text.trimEnd()],
  ];
  describe.each(changes)("%s", (_, change) => {
    it.each(realDumps)("$file", ({ file }) => {
      const text = dumpText(file);
      expect(print(parse(change(text)))).toBe(print(parse(text)));
    });
  });

  it("one after the other, each with its own definitions", () => {
    const text = realDumps.map(({ file }) => dumpText(file)).join("some output\n");
    const lines = text.split("\n");
    const containers = parseContainers(text);
    expect(containers.map(({ program }) => print(program))).toEqual(
      realDumps.map(({ file }) => print(parse(dumpText(file)))),
    );
    for (const { line, lines: known } of containers) {
      expect(lines[line - 1]).toContain("%HostIrContainer {");
      for (const [statement, at] of known) {
        if (statement.kind === "Wait") expect(lines[at - 1]?.trim()).toBe(`Wait Communication ${statement.target}`);
      }
    }
  });
});

describe("the order of axes", () => {
  const mesh = "(DeviceMesh{0 1})";
  const container = (lines: readonly string[]): string =>
    [
      `%HostIrContainer { (${lines[0] ?? ""}) -> (${lines[1] ?? ""}) :`,
      ...lines.slice(2),
      "} // %HostIrContainer",
    ].join("\n");
  const logicalOf = (axes: string): readonly number[] | undefined =>
    parse(container([`T0_g_float[${axes}] ${mesh}`, ""])).tensors[0]?.domain.logical.map(({ id }) => id);

  it.each([
    ["iS0{3}, ideviceIdx.x1{2}, iS2{3}", [0, 1, 2]],
    ["ideviceIdx.x1{2}, iS0{3}, iS2{3}", [0, 1, 2]],
    ["ideviceIdx.x1{2}, istreamIdx0{3}, iS2{3}", [0, 1, 2]],
    ["istreamIdx2{3}, ideviceIdx.x1{2}, iS0{3}, rS3{2}", [0, 1, 2, 3]],
    ["ideviceIdx.x4{2}, bS3{1}, bS5{1}, iS6{3}", [3, 4, 5, 6]],
    // A permuted tensor without axes of devices in front prints its order.
    ["iS2{3}, ideviceIdx.x1{2}, iS0{3}", [2, 1, 0]],
  ])("[%s] is that of the numbers", (axes, order) => {
    expect(logicalOf(axes)).toEqual(order);
  });

  it("is refused where several orders print alike", () => {
    expect(() => logicalOf("ideviceIdx.x1{2}, iS2{3}, iS0{3}")).toThrow("T0 does not show the order of its axes");
  });

  it("of a permuted tensor with axes of devices in front needs a root domain", () => {
    const from = `T0_g_float[iS0{3}, ideviceIdx.x1{2}, iS2{4}] ${mesh}`;
    const to = `T1_g_float[ideviceIdx.x4{2}, iS3{3}, iS5{4}] ${mesh}`;
    const text = container([from, to, `  ${to}`, `     = Set.Permute( ${from}, cache_op=Streaming )`]);
    expect(() => parse(text)).toThrow("T1 does not show how T0 is permuted");
    const noted = parse(
      [
        text,
        "TransformPrinter :",
        to,
        " root domain : (iS3{3}, ideviceIdx.x4{2}, iS5{4})",
        " logical domain : (iS5{4}, ideviceIdx.x4{2}, iS3{3})",
        " contiguity: t t t",
        " loop domain : (ideviceIdx.x4{2}, iS3{3}, iS5{4})",
      ].join("\n"),
    );
    expect(noted.body).toMatchObject([{ kind: "Permute", order: [2, 1, 0] }]);
    expect(print(parse(print(noted)))).toBe(print(noted));
  });

  it.each([" loop domain : (iS0{3})", " contiguity: t", "  Outer split: iS0{3} by factor 3 -> iS1{3}, iS2{1}"])(
    "a line that describes no tensor is refused, with all after it: %s",
    (line) => {
      const tensor = `T0_g_float[iS0{3}] ${mesh}`;
      const note = [tensor, " logical domain : (iS0{3})", " contiguity: t", " loop domain : (iS0{3})"];
      const text = [container([tensor, ""]), "TransformPrinter :", ...note, line].join("\n");
      expect(() => parse(text)).toThrow("expected: the tensor that this line describes");
    },
  );
});
