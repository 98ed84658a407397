/** Rows: one list of forms from which a statement is printed and read. */
import { describe, expect, it } from "vitest";
import { plainContext, type PrintContext, type ReadContext } from "../../../src/host/syntax/context.ts";
import { flag, scalar, word } from "../../../src/host/syntax/statements/fields.ts";
import { statementRow } from "../../../src/host/syntax/statements/row.ts";
import { createDumpScanner } from "../../../src/host/syntax/text/scanner.ts";
import { createStreamTable, noDefinitions } from "../../../src/host/syntax/values/names.ts";
import { createTensorTable } from "../../../src/host/syntax/values/tensor-table.ts";
import { defaultDumpStyle, constant, named, type Scalar } from "../../../src/ir/scalar/scalar.ts";

interface Launch {
  readonly kind: "Launch";
  readonly mode: "fast" | "exact";
  readonly blocks: Scalar | null;
  readonly again: boolean;
}

const blocks = {
  print: (value: Scalar | null, context: PrintContext) =>
    value === null ? null : scalar.print(value, context, { blocks: value }),
  read: (context: ReadContext) => scalar.read(context, {}),
  absent: () => null,
};

const launch = statementRow<Launch>("Launch", {
  forms: [
    "Launch <mode> on <blocks>[, again=<again>]",
    "Launch {\n  <mode>[, again=<again>]\n}",
    { since: "2026-01", text: "Launch(<mode>)" },
  ],
  fields: {
    mode: { ...word(["fast", "exact"]), begins: (text, position) => /\w/u.test(text[position] ?? "") },
    blocks,
    again: { ...flag, print: (value) => (value ? "true" : null), absent: () => false },
  },
});

const printContext = plainContext({ tensors: [], streams: [] }, defaultDumpStyle);

function print(fields: Omit<Launch, "kind">): string {
  return launch.print({ kind: "Launch", ...fields }, printContext, "    ");
}

/** Parses a text after its first word. */
function read(text: string): Launch | undefined {
  const source = { file: "dump", text, firstLine: 1, prefixLength: 0, lines: null };
  const tensors = createTensorTable(new Map());
  const context: ReadContext = {
    scanner: createDumpScanner(source),
    tensors,
    streams: createStreamTable("", false),
    names: { definitions: noDefinitions, symbols: tensors.symbols, loops: [] },
    posted: new Map(),
    exprCount: 0,
    rootsAreDevices: false,
    groupNumbers: null,
  };
  return launch.words.get("Launch")?.(context);
}

describe("a row", () => {
  it("prints the first form whose fields all have a text", () => {
    expect(print({ mode: "fast", blocks: constant(4), again: false })).toBe("    Launch fast on 4");
    expect(print({ mode: "fast", blocks: named("rank"), again: true })).toBe("    Launch fast on rank, again=true");
    expect(print({ mode: "exact", blocks: null, again: true })).toBe("    Launch {\n      exact, again=true\n    }");
  });

  it("reads every form, with any blanks between words and signs", () => {
    const fast = { kind: "Launch", mode: "fast", blocks: constant(4), again: false };
    expect(read(" fast on 4")).toEqual(fast);
    expect(read(" fast   on 4  ,again = true")).toEqual({ ...fast, again: true });
    expect(read("{\n\n  fast , again= false\n }")).toEqual({ ...fast, blocks: null });
    expect(read(" ( fast )")).toEqual({ ...fast, blocks: null });
  });

  it("says what it expects: a literal's word, a field, or one of the forms' signs", () => {
    expect(() => read(" fast 4")).toThrow('expected: "on"');
    expect(() => read("(slow)")).toThrow("expected: fast or exact");
    expect(() => read(" <")).toThrow('expected: "{" or "("');
  });

  it("has every field in every form, or a value without it", () => {
    const fields = { mode: word(["fast", "exact"]), blocks, again: flag };
    expect(() => statementRow<Launch>("Launch", { forms: ["Launch <mode> <again>"], fields })).not.toThrow();
    expect(() => statementRow<Launch>("Launch", { forms: ["Launch <mode> <blocks>"], fields })).toThrow(
      '"lost":["again"]',
    );
    expect(() => statementRow<Launch>("Launch", { forms: ["Launch <mode> <agian>"], fields })).toThrow(
      '"name":"agian"',
    );
  });
});
