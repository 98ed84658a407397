/**
 * The part of Python that definitions and graphs are written in: assignments, calls, `for` over lists, `def` and `with`
 * blocks, numbers, texts and lists. A statement of another kind is kept by its first word, and refused where it is
 * reached.
 */
import { failAt, type DumpSource } from "../host/syntax/text/source.ts";

export type Expression = { readonly position: number } & (
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "number"; readonly value: number; readonly isFloat: boolean }
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "list"; readonly items: readonly Expression[] }
  | { readonly kind: "attribute"; readonly of: Expression; readonly name: string }
  | { readonly kind: "index"; readonly of: Expression; readonly at: Expression }
  | { readonly kind: "call"; readonly callee: Expression; readonly args: readonly PythonArgument[] }
  | { readonly kind: "negative"; readonly of: Expression }
  | { readonly kind: "binary"; readonly operator: string; readonly left: Expression; readonly right: Expression }
);

export interface PythonArgument {
  /** Of a keyword argument. */
  readonly name: string | null;
  /** Of the name, or else of the value. */
  readonly position: number;
  readonly value: Expression;
}

export interface PythonParameter {
  readonly name: string;
  /** `FusionDefinition`; null without one. */
  readonly annotation: Expression | null;
  readonly value: Expression | null;
}

export type PythonStatement = { readonly position: number } & (
  | {
      readonly kind: "assign";
      readonly targets: readonly string[];
      /** `y: "f32[4]" = ..`; null without one. */
      readonly annotation: Expression | null;
      readonly value: Expression;
    }
  /** `x: "f32[4]"` without a value. */
  | { readonly kind: "annotation"; readonly name: string; readonly annotation: Expression }
  | { readonly kind: "return"; readonly value: Expression }
  | { readonly kind: "expression"; readonly value: Expression }
  | {
      readonly kind: "for";
      readonly target: string;
      readonly over: Expression;
      readonly body: readonly PythonStatement[];
    }
  | {
      readonly kind: "def";
      readonly name: string;
      readonly parameters: readonly PythonParameter[];
      readonly body: readonly PythonStatement[];
    }
  | {
      readonly kind: "with";
      readonly value: Expression;
      readonly name: string | null;
      readonly body: readonly PythonStatement[];
    }
  | { readonly kind: "other"; readonly word: string }
);

interface Token {
  readonly kind: "name" | "number" | "text" | "sign" | "line" | "end";
  readonly text: string;
  readonly position: number;
}

/** Statements that say nothing about a Fusion. */
const ignored: ReadonlySet<string> = new Set(["import", "from", "pass", "@"]);

const tokenPattern =
  /(?<name>[A-Za-z_]\w*)|(?<number>(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?<text>"""[^]*?"""|'''[^]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?<sign>->|\/\/|\*\*|==|!=|<=|>=|[-+*/%()[\]{}.,:;=@<>])/uy;

/** Deeper groups are no program of a person. */
const mostNesting = 100;

/** What functions return is left out unless `returns` is set: it may be any expression. Throws `model-syntax`. */
export function readPython(source: DumpSource, returns = false): readonly PythonStatement[] {
  const reader = createReader(source, tokensOf(source), returns);
  const statements = reader.block(0);
  if (reader.peek().kind !== "end") syntaxError(source, reader.peek().position, "a statement that is not indented");
  return statements;
}

function syntaxError(source: DumpSource, position: number, expected: string): never {
  return failAt(source, position, "model-syntax", "the text has a syntax error", {
    expected,
    help: "pass the text as it was printed or written",
  });
}

/** The end of each logical line is a token, `;` between statements of one line; those inside of brackets are none. */
function tokensOf(source: DumpSource): readonly Token[] {
  const { text } = source;
  const tokens: Token[] = [];
  let depth = 0;
  for (let position = 0; position < text.length;) {
    const character = text.charAt(position);
    if (character === "#") {
      const end = text.indexOf("\n", position);
      position = end < 0 ? text.length : end;
    } else if (character === "\n") {
      const last = tokens.at(-1);
      if (depth === 0 && last !== undefined && last.kind === "line") tokens[tokens.length - 1] = { ...last, text: "" };
      else if (depth === 0 && last !== undefined) tokens.push({ kind: "line", text: "", position });
      position++;
    } else if (/\s/u.test(character)) position++;
    else if (character === "\\" && /^\\\r?\n/u.test(text.slice(position, position + 3)))
      position = text.indexOf("\n", position) + 1;
    else {
      tokenPattern.lastIndex = position;
      const match = tokenPattern.exec(text);
      const [kind, found] = Object.entries(match?.groups ?? {}).find(([, value]) => value !== undefined) ?? [];
      if (found === undefined) return syntaxError(source, position, "a word, a number, a text or a sign");
      if (/^[([{]$/u.test(found)) depth++;
      if (/^[)\]}]$/u.test(found)) depth--;
      if (depth > mostNesting) syntaxError(source, position, `at most ${mostNesting} brackets inside one another`);
      tokens.push({ kind: found === ";" ? "line" : kindOf(kind), text: found, position });
      position += found.length;
    }
  }
  return [
    ...tokens,
    { kind: "line", text: "", position: text.length },
    { kind: "end", text: "", position: text.length },
  ];
}

function kindOf(group: string | undefined): Token["kind"] {
  switch (group) {
    case "name":
    case "number":
    case "text":
      return group;
    default:
      return "sign";
  }
}

interface PythonReader {
  readonly peek: () => Token;
  /** The statements that are indented by at least `least` columns. */
  readonly block: (least: number) => readonly PythonStatement[];
}

function createReader(source: DumpSource, tokens: readonly Token[], returns: boolean): PythonReader {
  let next = 0;
  const end: Token = { kind: "end", text: "", position: source.text.length };
  const peek = (): Token => tokens[next] ?? end;
  const take = (): Token => {
    const token = peek();
    next++;
    return token;
  };
  const is = (text: string): boolean => peek().text === text && peek().kind !== "text";
  const accept = (text: string): boolean => {
    const found = is(text);
    if (found) next++;
    return found;
  };
  const expect = (text: string): void => {
    if (!accept(text)) syntaxError(source, peek().position, `"${text}"`);
  };
  const nameHere = (): string =>
    peek().kind === "name" ? take().text : syntaxError(source, peek().position, "a name");
  const columnOf = ({ position }: Token): number => position - (source.text.lastIndexOf("\n", position - 1) + 1);
  const skipLine = (): void => {
    while (peek().kind !== "line" && peek().kind !== "end") next++;
    if (peek().kind === "line") next++;
  };
  const endLine = (): void => {
    if (peek().kind !== "line") syntaxError(source, peek().position, "the end of the line");
    next++;
  };

  const requireShort = (length: number, position: number): void => {
    if (length > mostNesting) syntaxError(source, position, `a chain of at most ${mostNesting}`);
  };

  const block = (least: number): readonly PythonStatement[] => {
    const statements: PythonStatement[] = [];
    while (peek().kind === "line") next++;
    const column = columnOf(peek());
    const isJoined = (): boolean => next > 0 && tokens[next - 1]?.text === ";";
    while (peek().kind !== "end" && (isJoined() || columnOf(peek()) >= least)) {
      if (!isJoined() && columnOf(peek()) !== column)
        syntaxError(source, peek().position, "as much indentation as the line before");
      statements.push(...statementsHere(column));
      while (peek().kind === "line") next++;
    }
    return statements;
  };
  const bodyOf = (column: number): readonly PythonStatement[] => {
    expect(":");
    return peek().kind === "line" ? block(column + 1) : statementsHere(column);
  };

  const statementsHere = (column: number): readonly PythonStatement[] => {
    const { text: word, position, kind } = peek();
    if (kind === "text" || ignored.has(word) || (word === "return" && !returns)) {
      skipLine();
      return [];
    }
    if (accept("return")) {
      const value = tupleHere();
      endLine();
      return [{ kind: "return", position, value }];
    }
    if (accept("def")) {
      const name = nameHere();
      const parameters = parametersHere();
      if (accept("->")) expressionHere();
      return [{ kind: "def", position, name, parameters, body: bodyOf(column) }];
    }
    if (accept("with")) {
      const value = expressionHere();
      const name = accept("as") ? nameHere() : null;
      return [{ kind: "with", position, value, name, body: bodyOf(column) }];
    }
    if (accept("for")) {
      const target = nameHere();
      expect("in");
      const over = expressionHere();
      return [{ kind: "for", position, target, over, body: bodyOf(column) }];
    }
    if (/^(?:if|elif|else|while|try|except|finally|class|assert|del|raise|global|lambda|async)$/u.test(word)) {
      skipLine();
      while (peek().kind !== "end" && columnOf(peek()) > column) skipLine();
      return [{ kind: "other", position, word }];
    }
    let value = tupleHere();
    const annotation = accept(":") ? expressionHere() : null;
    const targets: (readonly string[])[] = [];
    while (accept("=")) {
      targets.push(namesIn(value));
      value = tupleHere();
    }
    endLine();
    if (targets.length > 0)
      return targets.map((names) => ({ kind: "assign", position, targets: names, annotation, value }));
    if (annotation === null) return [{ kind: "expression", position, value }];
    return namesIn(value).map((name) => ({ kind: "annotation", position, name, annotation }));
  };

  const namesIn = (value: Expression): readonly string[] =>
    (value.kind === "list" ? value.items : [value]).map((each) =>
      each.kind === "name" ? each.name : syntaxError(source, each.position, "a name to assign to"),
    );

  const parametersHere = (): readonly PythonParameter[] => {
    const parameters: PythonParameter[] = [];
    expect("(");
    while (!is(")")) {
      const name = nameHere();
      const annotation = accept(":") ? expressionHere() : null;
      parameters.push({ name, annotation, value: accept("=") ? expressionHere() : null });
      if (!accept(",")) break;
    }
    expect(")");
    return parameters;
  };

  /** `a, b` is a list. */
  const tupleHere = (): Expression => {
    const first = expressionHere();
    if (!is(",")) return first;
    const items = [first];
    while (accept(",")) if (peek().kind !== "line" && !is("=")) items.push(expressionHere());
    return { kind: "list", position: first.position, items };
  };

  const expressionHere = (): Expression =>
    binaryHere(["+", "-"], () => binaryHere(["*", "/", "//", "%", "@"], () => unaryHere()));

  const binaryHere = (operators: readonly string[], operand: () => Expression): Expression => {
    let left = operand();
    for (let length = 0; peek().kind === "sign" && operators.includes(peek().text); length++) {
      const { text: operator, position } = take();
      requireShort(length, position);
      left = { kind: "binary", position, operator, left, right: operand() };
    }
    return left;
  };

  /** `-a ** b ** c` is `-(a ** (b ** c))`. `length`: the powers before it. */
  const unaryHere = (length = 0): Expression => {
    const { position } = peek();
    let count = 0;
    while (accept("-")) count++;
    const base = suffixesOf(atomHere());
    const sign = peek().position;
    requireShort(length, sign);
    const of: Expression = accept("**")
      ? { kind: "binary", position: sign, operator: "**", left: base, right: unaryHere(length + 1) }
      : base;
    return count % 2 === 0 ? of : { kind: "negative", position, of };
  };

  const suffixesOf = (atom: Expression): Expression => {
    let value = atom;
    for (let length = 0; ; length++) {
      const { position } = peek();
      requireShort(length, position);
      if (accept(".")) value = { kind: "attribute", position: value.position, of: value, name: nameHere() };
      else if (accept("(")) value = { kind: "call", position: value.position, callee: value, args: argumentsHere() };
      else if (accept("[")) {
        value = { kind: "index", position, of: value, at: expressionHere() };
        expect("]");
      } else return value;
    }
  };

  const argumentsHere = (): readonly PythonArgument[] => {
    const args: PythonArgument[] = [];
    while (!is(")")) {
      const value = expressionHere();
      const { position } = value;
      if (value.kind === "name" && accept("=")) args.push({ name: value.name, position, value: expressionHere() });
      else args.push({ name: null, position, value });
      if (!accept(",")) break;
    }
    expect(")");
    return args;
  };

  const atomHere = (): Expression => {
    const { kind, text, position } = take();
    switch (kind) {
      case "name":
        return { kind: "name", position, name: text };
      case "number":
        return { kind: "number", position, value: Number(text.replaceAll("_", "")), isFloat: /[.eE]/u.test(text) };
      case "text":
        return { kind: "text", position, value: text.replaceAll(/^(?:"""|'''|["'])|(?:"""|'''|["'])$/gu, "") };
      case "sign":
        if (text === "(" || text === "[") return listHere(position, text === "(" ? ")" : "]");
        return syntaxError(source, position, "a value");
      case "line":
      case "end":
        return syntaxError(source, position, "a value");
    }
  };

  /** `(a)` is a, `(a,)` a list of one. */
  const listHere = (position: number, close: string): Expression => {
    const items: Expression[] = [];
    let hasComma = false;
    while (!is(close)) {
      items.push(expressionHere());
      if (!accept(",")) break;
      hasComma = true;
    }
    expect(close);
    const [first] = items;
    if (close === ")" && items.length === 1 && !hasComma && first !== undefined) return first;
    return { kind: "list", position, items };
  };

  return { peek, block };
}
