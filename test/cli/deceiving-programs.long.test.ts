/** What a program file throws, exports or sends that is no error, no program and no answer of Braid's. */
import { expect, it } from "vitest";
import { cliApart } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const folder = ownFolder();

/** A program without inputs of note, with code at the top of the file and in the function that builds it. */
const program = (top: string, inside = ""): string => `import { Fusion, program, set } from "@braid-compiler/braid";
${top}
export default program({}, () => {
  ${inside}
  const f = new Fusion();
  f.output(set(f.input([4, 8], "float")));
  return f;
});
`;

interface Deceiving {
  readonly name: string;
  readonly text: string;
  readonly expected: readonly string[];
}

const unreadable = "the program file threw something that cannot be read";
/** An object of which every use throws. */
const trap = 'new Proxy({}, new Proxy({}, { get() { throw new Error("trap"); } }))';
const revoked = "(({ proxy, revoke }) => (revoke(), proxy))(Proxy.revocable({}, {}))";
const deceiving: readonly Deceiving[] = [
  { name: "export-trap.ts", text: `export default ${trap};`, expected: ["found: Error: trap"] },
  { name: "export-revoked.ts", text: `export default ${revoked};`, expected: ["a proxy that has been revoked"] },
  {
    name: "export-forged.ts",
    text: 'export default { [Symbol.for("braid.program")]: true };',
    expected: ["the default export of the program file is not a program", "found: another object"],
  },
  {
    name: "export-forged-default.ts",
    text: 'export default { [Symbol.for("braid.program")]: true, defaults: { M: {} }, build() {} };',
    expected: ["the default export of the program file is not a program"],
  },
  { name: "throws-trap.ts", text: program(`throw ${trap};`), expected: [unreadable] },
  { name: "throws-trap-in-build.ts", text: program("", `throw ${trap};`), expected: [unreadable] },
  {
    name: "throws-trap-late.ts",
    text: program(`setTimeout(() => { throw ${trap}; });\nawait new Promise(() => {});`),
    expected: [unreadable],
  },
  { name: "throws-revoked.ts", text: program(`throw ${revoked};`), expected: [unreadable] },
  { name: "throws-without-text.ts", text: program("throw Object.create(null);"), expected: [unreadable] },
  {
    name: "throws-getter.ts",
    text: program('throw Object.defineProperty(new Error(), "message", { get() { throw 1; } });'),
    expected: [unreadable],
  },
  { name: "replaces.ts", text: program("Array.prototype.map = () => { throw 1; };\nthrow 2;"), expected: [unreadable] },
  ...["undefined", '{ kind: "refused", diagnostics: [] }', '{ kind: "built", built: 4 }'].map(
    (message, i): Deceiving => ({
      name: `sends-${i}.ts`,
      text: program(
        `import { parentPort } from "node:worker_threads";\nparentPort.postMessage(${message});\nawait new Promise((r) => setTimeout(r, 300));`,
      ),
      expected: ["the program file does not finish", "found: a message of its own"],
    }),
  ),
  {
    name: "throws-number-stack.ts",
    text: program('throw Object.assign(new Error("x"), { stack: 3 });'),
    expected: ["found: Error: x"],
  },
  {
    name: "throws-cycle.ts",
    text: program('const e = new Error("round");\ne.cause = e;\nthrow e;'),
    expected: ["throws-cycle.ts:2:11", "found: Error: round"],
  },
  {
    name: "throws-cycle-late.ts",
    text: program(
      'setTimeout(() => {\n  const e = new Error("round");\n  e.cause = e;\n  throw e;\n});\nawait new Promise(() => {});',
    ),
    expected: ["found: Error: round"],
  },
  {
    name: "throws-invariant.ts",
    text: program('throw Object.assign(new Error("x"), { name: "InvariantError" });'),
    expected: ["found: InvariantError: x"],
  },
  {
    name: "prepares-stacks.ts",
    text: program('Error.prepareStackTrace = (_, sites) => sites;\nnew Fusion().input([-1], "float");'),
    expected: ["error[bad-extent]"],
  },
  {
    name: "no-diagnostics.ts",
    text: program('throw Object.assign(new Error("made up"), { name: "DiagnosticError", diagnostics: [{}] });'),
    expected: ["found: DiagnosticError: made up"],
  },
  {
    name: "removes-handlers.ts",
    text: program(
      'process.removeAllListeners();\nvoid Promise.reject(new Error("lost"));\nawait new Promise((r) => setTimeout(r, 50));',
    ),
    expected: ["the program file does not finish"],
  },
  {
    name: "own-host-program.ts",
    text: `import { program } from "@braid-compiler/braid";
export default program({}, () => ({ kind: "HostProgram", tensors: [], units: [], streams: [], inputs: [], outputs: [], body: [{ kind: "constructor" }] }));`,
    expected: ["error[program-invalid]", "was not made by a builder"],
  },
  {
    name: "imports-inherited.ts",
    text: 'import { constructor } from "@braid-compiler/braid";\nconsole.log(constructor);',
    expected: ['"@braid-compiler/braid" has no export named constructor'],
  },
];

it.each(deceiving)("$name gets one message and status 2", async ({ name, text, expected }) => {
  const file = folder.write(name, text);
  const { status, out, err } = await cliApart("verify", file, "--devices", "2");
  for (const part of expected) expect(err).toContain(part);
  expect(err.match(/^error/gm)).toHaveLength(1);
  expect(err).not.toContain("internal error");
  expect([status, out]).toEqual([2, ""]);
});
