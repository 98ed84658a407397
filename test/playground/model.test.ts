/** The playground's state, links, diffs and command lines: everything but its page. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { openModel } from "../../playground/compiler/open-model.ts";
import { exportedText } from "../../playground/model/exported-text.ts";
import { cliCommand } from "../../playground/model/cli-command.ts";
import { axesOf, pointsOf } from "../../playground/model/curves.ts";
import { kindOfFile, newDocument } from "../../playground/model/inputs.ts";
import { linkedTo } from "../../playground/model/linking.ts";
import { editedRankOf, editOf, headlineOf, placeOf } from "../../playground/model/marks.ts";
import { atBrokenSyntax } from "../../playground/model/syntax-place.ts";
import { decodeState, encodeState } from "../../playground/model/share.ts";
import { hunks, sideBySide } from "../../playground/model/side-by-side.ts";
import { streamGraph } from "../../playground/model/stream-graph.ts";
import { redo, sameInput, startHistory, type State, step, undo } from "../../playground/model/state.ts";
import { sizesFor } from "../../playground/model/missing-sizes.ts";
import { variableNames } from "../../playground/model/variable-names.ts";
import { stepOf, withStep } from "../../playground/model/what-if.ts";
import type { HostText, LoweredPart, VerdictPart } from "../../playground/compiler/parts.ts";

const state: State = {
  document: { kind: "program", name: "examples/set.ts", text: "export default 1;\n" },
  options: { on: "cuda" },
  params: { M: "64" },
  profile: "4xH200",
  customProfile: null,
  edits: {},
  rank: 0,
  pane: "host",
};

describe("history", () => {
  it("undoes and redoes steps; letters of one text are one step", () => {
    let history = startHistory(state);
    for (const text of ["a", "ab", "abc"]) history = step(history, { kind: "text", text });
    history = step(history, { kind: "param", name: "M", text: "128" });
    expect(history.past).toHaveLength(2);
    history = undo(history);
    expect([history.present.document.text, history.present.params]).toEqual(["abc", { M: "64" }]);
    history = undo(undo(history));
    expect(history.present).toEqual(state);
    history = redo(redo(history));
    expect(history.present.params).toEqual({ M: "128" });
  });

  it("does not count panes and ranks as steps, and keeps them through undo", () => {
    let history = step(startHistory(state), { kind: "text", text: "a" });
    history = step(history, { kind: "pane", pane: "passes" });
    expect(history.past).toHaveLength(1);
    history = undo(history);
    expect([history.present.pane, history.present.document.text]).toEqual(["passes", state.document.text]);
    expect(sameInput(state, history.present)).toBe(true);
  });

  it("drops edits of host programs when what they were made from changes", () => {
    const edited = step(startHistory(state), { kind: "edit", rank: 0, text: "%HostIrContainer {" });
    expect(edited.present.edits).toEqual({ 0: "%HostIrContainer {" });
    expect(step(edited, { kind: "text", text: "b" }).present.edits).toEqual({});
    expect(step(edited, { kind: "option", name: "streams", text: "2" }).present.edits).toEqual({});
    expect(step(edited, { kind: "profile", name: "2xH200", text: null }).present.edits).not.toEqual({});
  });

  it("opens a document without the sizes, edits and rank of the one before; a dump on a pane that it has", () => {
    const before = {
      ...state,
      options: { devices: "2", streams: "4" },
      edits: { 0: "x" },
      rank: 3,
      pane: "fusion",
    } as const;
    const opened = (text: string) =>
      step(startHistory(before), { kind: "open", document: newDocument(text), params: {} }).present;
    expect(opened("export default 1;")).toEqual({
      ...before,
      document: { kind: "program", name: "untitled.ts", text: "export default 1;" },
      options: { devices: "2" },
      params: {},
      edits: {},
      rank: 0,
    });
    expect(opened("\n%HostIrContainer { () -> ():\n}")).toMatchObject({
      document: { kind: "dump", name: "untitled.hir" },
      pane: "host",
    });
    expect(newDocument("// %HostIrContainer {\nexport default 1;").kind).toBe("program");
  });

  it("clears sizes that the text changed as part of the step that changed it", () => {
    const typed = step(startHistory(state), { kind: "text", text: "b" });
    const cleared = step(typed, { kind: "changedSizes", names: ["M"] });
    expect([cleared.present.params, cleared.past]).toEqual([{}, [state]]);
    expect(undo(cleared).present).toEqual(state);
  });

  it("keeps dtypes when sizes are cleared", () => {
    const before = { ...state, params: { M: "64", DTYPE: "bfloat16" } };
    expect(step(startHistory(before), { kind: "ownSizes" }).present.params).toEqual({ DTYPE: "bfloat16" });
  });

  it("clears an option by an empty text", () => {
    const history = step(startHistory(state), { kind: "option", name: "on", text: "" });
    expect(history.present.options).toEqual({});
  });
});

describe("links to share", () => {
  it("hold the whole state", () => {
    const full: State = { ...state, edits: { 0: "x → y\n" }, customProfile: "{}", pane: "commands", rank: 3 };
    const text = encodeState(full);
    expect(text).toMatch(/^[\w-]+$/u);
    expect(decodeState(text)).toEqual(full);
  });

  it.each(["", "1", "1!!", "2abc", encodeState(state).slice(0, -8), `1${btoa("{}")}`])("refuse %j", (text) => {
    expect(decodeState(text)).toBeNull();
  });

  it("refuse a state of another shape", () => {
    const wrong = { ...state, pane: "none" };
    expect(decodeState(encodeState(wrong as unknown as State))).toBeNull();
  });
});

describe("command lines", () => {
  it("have the options that the command takes and that are not its defaults", () => {
    const given: State = {
      ...state,
      options: { on: "cuda", devices: "8", streams: "2", overlap: "false", seed: "3" },
    };
    expect(cliCommand("lower", given, ["M"])).toBe(
      "npx braid lower examples/set.ts --on cuda --schedule overlap=false,streams=2 --set M=64",
    );
    expect(cliCommand("explain", given, ["M"])).toBe(
      "npx braid explain examples/set.ts --on cuda --schedule overlap=false,streams=2 --set M=64 --profile 4xH200",
    );
    expect(cliCommand("run", { ...given, document: { ...state.document, name: "my file.ts" } }, [])).toContain(
      "'my file.ts' --on cuda --seed 3 --schedule overlap=false,streams=2",
    );
  });

  it("name the page's number of devices, which is not the command's", () => {
    expect(cliCommand("lower", { ...state, options: {} }, ["M"])).toBe(
      "npx braid lower examples/set.ts --devices 4 --set M=64",
    );
  });
});

describe("two texts side by side", () => {
  it("pair lines that changed, and leave gaps for others", () => {
    expect(sideBySide("a\nb\nc", "a\nB\nc\nd")).toEqual([
      { kind: "same", left: "a", right: "a" },
      { kind: "changed", left: "b", right: "B" },
      { kind: "same", left: "c", right: "c" },
      { kind: "added", left: null, right: "d" },
    ]);
    expect(sideBySide("a\nb", "b").map(({ kind }) => kind)).toEqual(["removed", "same"]);
  });

  it("hide what is far from a change", () => {
    const before = Array.from({ length: 20 }, (_, i) => `line ${i}`);
    const rows = sideBySide(before.join("\n"), before.with(10, "other").join("\n"));
    expect(hunks(rows, 2).map((part) => (part.kind === "hidden" ? part.count : part.rows.length))).toEqual([8, 5, 7]);
    expect(hunks(rows, Infinity)).toHaveLength(1);
  });
});

describe("linked lines", () => {
  const host = (ranks: readonly number[], sources: readonly (readonly number[])[]): HostText => ({
    ranks,
    lines: sources.map((each) => ({ text: "", sources: each })),
    printed: "",
  });
  const lowered = { hosts: [host([0, 1], [[], [5], [7]]), host([2], [[5], []])] } as unknown as LoweredPart;
  const rows = [{ line: 2 }, { line: 3 }, { line: 0 }];
  const verdict = { commands: [{ rows }, { rows }, { rows: [{ line: 1 }] }] } as unknown as VerdictPart;
  const tables = { lowered, verdict };

  it("go from a source line to statements and commands of every rank", () => {
    const linked = linkedTo({ kind: "source", line: 5 }, tables);
    expect([0, 1, 2].map((rank) => linked.hostLines(rank))).toEqual([[2], [2], [1]]);
    expect([linked.hasCommand(0, 0), linked.hasCommand(0, 1), linked.hasCommand(2, 0)]).toEqual([true, false, true]);
  });

  it("go from a statement to its source and to the commands of ranks that run it", () => {
    const linked = linkedTo({ kind: "host", rank: 0, line: 3 }, tables);
    expect(linked.sources).toEqual([7]);
    expect([linked.hasCommand(1, 1), linked.hasCommand(2, 0)]).toEqual([true, false]);
  });

  it("go from a command to its statement and source; one without a statement is alone", () => {
    const linked = linkedTo({ kind: "command", rank: 1, command: 0 }, tables);
    expect([linked.sources, linked.hostLines(1), linked.hasCommand(0, 0), linked.hasCommand(1, 0)]).toEqual([
      [5],
      [2],
      false,
      true,
    ]);
    const alone = linkedTo({ kind: "command", rank: 0, command: 2 }, tables);
    expect([alone.sources, alone.hasCommand(0, 2), alone.hasCommand(0, 0)]).toEqual([[], true, false]);
  });
});

describe("the graph of a rank's streams", () => {
  const row = (stream: number, kind: string) => ({ stream, kind, label: "", text: "", line: 0, iteration: [] });
  // A copy on stream 1, then a launch on stream 2 that waits for it, then one more of stream 1.
  const rows = [
    row(1, "copy"),
    row(1, "recordEvent"),
    row(2, "waitEvent"),
    row(2, "launch"),
    row(2, "recordEvent"),
    row(1, "waitEvent"),
    row(1, "launch"),
  ];
  const list = {
    streams: ["caller", "a", "b"],
    rows,
    edges: [
      { from: 1, to: 2 },
      { from: 4, to: 5 },
    ],
  };

  it("has an edge from the work before a record to the work after its wait", () => {
    const { streams, nodes, edges } = streamGraph(list, 10);
    expect(streams).toEqual([1, 2]);
    expect(nodes.map(({ command, column, row: y }) => [command, column, y])).toEqual([
      [0, 0, 0],
      [3, 1, 1],
      [6, 0, 2],
    ]);
    expect(edges).toEqual([
      { from: 0, to: 1 },
      { from: 1, to: 2 },
    ]);
  });

  it("passes on what a stream without work waits for", () => {
    const relayed = [
      row(1, "copy"),
      row(1, "recordEvent"),
      row(0, "waitEvent"),
      row(0, "recordEvent"),
      row(2, "waitEvent"),
      row(2, "launch"),
    ];
    const { edges } = streamGraph(
      {
        streams: [],
        rows: relayed,
        edges: [
          { from: 1, to: 2 },
          { from: 3, to: 4 },
        ],
      },
      10,
    );
    expect(edges).toEqual([{ from: 0, to: 1 }]);
  });

  it("leaves out what is beyond the limit", () => {
    const { nodes, hidden } = streamGraph(list, 2);
    expect([nodes.length, hidden]).toEqual([2, 1]);
  });
});

describe("curves", () => {
  it("go over counts for chunks, and around the present value of a size", () => {
    expect(pointsOf(state, "S", 8).map(({ x }) => x)).toEqual([1, 2, 4, 8, 16, 32, 64]);
    const sizes = pointsOf({ ...state, params: { M: "1000" } }, "M", 64);
    expect(sizes.map(({ x }) => x)).toEqual([125, 250, 500, 1000, 2000, 4000]);
    expect(sizes[0]?.variant).toEqual({ devices: 4, hosts: 1, params: { M: "125" } });
    expect(pointsOf(state, "DTYPE", "half")).toEqual([]);
  });

  it("go over devices with the same parameters", () => {
    expect(pointsOf(state, "devices", undefined).map(({ variant }) => variant.devices)).toEqual([1, 2, 4, 8, 16]);
    expect(axesOf({ S: 8, DTYPE: "half" })).toEqual(["S", "devices"]);
    const inPairs = { ...state, options: { ...state.options, devicesPerHost: "2" } };
    expect(pointsOf(inPairs, "devices", undefined).map(({ variant }) => variant.hosts)).toEqual([1, 1, 2, 4, 8]);
  });
});

describe("files", () => {
  it.each([
    ["x.ts", "program"],
    ["a/x.mjs", "program"],
    ["x.json", "profile"],
    ["x.hir", "dump"],
    ["run.log", "dump"],
    ["aot_joint_graph_4.txt", "model", "class inner_f(torch.nn.Module):\n    def forward("],
    ["dump.txt", "dump", "class of 2024\n%HostIrContainer { }"],
  ])("%s is a %s", (name, kind, text?: string) => {
    expect(kindOfFile(name, text)).toBe(kind);
  });

  it("a file of torch.export is the text of its graph", async () => {
    const bytes = readFileSync(path.resolve(import.meta.dirname, "../import/torch/mlp.pt2"));
    const { name, text } = exportedText("mlp.pt2", new Uint8Array(bytes));
    expect([name, kindOfFile(name, text)]).toEqual(["mlp.fx", "model"]);
    const opened = await openModel(name, text);
    expect(opened).toMatchObject({ kind: "opened", source: { data: { source: { kind: "Fusion" } } } });
  });

  it("a graph that was pasted is a model", () => {
    expect(newDocument("class <lambda>(torch.nn.Module):\n    def forward(self):").name).toBe("untitled.fx");
  });
});

describe("diagnostics in the editor", () => {
  const diagnostic = {
    code: "option-unknown",
    message: "there is no axis rwos",
    source: "/program.ts:2:5",
    found: "rwos",
    help: "did you mean rows?",
  } as const;

  it("stand where the call is", () => {
    expect(placeOf(diagnostic)).toEqual({ line: 2, column: 5 });
    expect(
      placeOf({ code: "program-threw", message: "", place: { kind: "file", path: "/program.ts", line: 3 } }),
    ).toEqual({
      line: 3,
      column: null,
    });
    expect(placeOf({ code: "bad-option", message: "" })).toBeNull();
  });

  it("are named with their line in one line", () => {
    expect(headlineOf(diagnostic)).toBe("line 2: there is no axis rwos");
    const edited = { code: "dump-syntax", message: "no", place: { kind: "file", path: "rank 1", line: 7 } } as const;
    expect([headlineOf(edited), editedRankOf(edited), editedRankOf(diagnostic)]).toEqual([
      "rank 1, line 7: no",
      1,
      null,
    ]);
  });

  it("of syntax stand where the editor's parser stumbles", () => {
    const refused = {
      code: "program-threw",
      message: "SyntaxError: Unexpected token",
      place: { kind: "file", path: "/program.ts", line: 1, column: 20 },
    } as const;
    const broken = "export default program({}, () => {\n  const y = set(x;\n  return y;\n});\n";
    expect(placeOf(atBrokenSyntax(refused, broken))).toEqual({ line: 2, column: 18 });
    expect(atBrokenSyntax(refused, "export default 1;\n")).toBe(refused);
  });

  it("offer an edit where the fix is one", () => {
    expect(editOf(diagnostic, "one\n  f(rwos)\n")?.text).toBe("one\n  f(rows)\n");
    expect(editOf({ ...diagnostic, help: "round it" }, "one\n  f(rwos)\n")).toBeNull();
    expect(editOf(diagnostic, "one\n  f(x)\n")).toBeNull();
    const listed = { ...diagnostic, help: "use one of these names", expected: "rows, columns" };
    expect(editOf(listed, "one\n  f('rwos')\n")?.text).toBe("one\n  f('rows')\n");
    expect(editOf({ ...listed, expected: "devices, streams" }, "one\n  f('rwos')\n")).toBeNull();
  });
});

describe("rates", () => {
  it("are steps of a quarter of a doubling, and keep other changes", () => {
    const text = withStep("memory=2x,link=900GB/s", "gemm", 4);
    expect(text).toBe("memory=2x,link=900GB/s,gemm=2x");
    expect(stepOf(text, "gemm")).toBe(4);
    expect(stepOf(withStep(text, "link", -2), "link")).toBe(-2);
    expect(withStep("gemm=0.5x", "gemm", 0)).toBe("");
    expect(stepOf(undefined, "link")).toBe(0);
    expect(stepOf(text, "link")).toBe(0);
  });
});

describe("names of variables", () => {
  it("are those of lines that make one tensor, and give way to names in the program", () => {
    const text =
      "const x = f.input([8], 'float');\nconst y = add(mul(x, x), x);\nconst z = set(y).named('out');\nuse(neg(z));";
    const rows = [
      ["T0", 1],
      ["T1", 2],
      ["T2", 2],
      ["T3 out", 3],
      ["T4", 4],
      ["T5", 0],
    ] as const;
    const tensors = rows.map(([name, source], id) => ({ id, name, source }));
    expect([...variableNames(text, tensors)]).toEqual([[0, "x"]]);
  });
});

describe("sizes that a dump leaves open", () => {
  it("are given after those that are known", () => {
    const diagnostic = (code: "size-missing" | "dump-syntax", message: string) => ({
      code,
      message,
      found: "",
      expected: "",
      help: "",
    });
    expect(sizesFor(diagnostic("size-missing", "i0 has no size"), undefined)).toBe("i0=64");
    expect(sizesFor(diagnostic("size-missing", "i2, i3 have no size"), "i0=8")).toBe("i0=8,i2=64,i3=64");
    expect(sizesFor(diagnostic("dump-syntax", "i0 has no size"), undefined)).toBeNull();
  });
});
