/** Where the call of a repair belongs in a program file, for places that no call precedes in their scope. */
import { expect, it } from "vitest";
import { HostProgramBuilder } from "@braid-compiler/braid";
import { addedCall } from "../../../src/compile/repair/call-text.ts";
import { at } from "../../../src/support/invariant.ts";

function built() {
  const h = new HostProgramBuilder();
  const x = h.input([4]);
  const y = h.tensor([4]);
  h.output(y);
  const caller = h.getCurrentStream();
  h.forLoop(2, () => {
    h.add(x, x, { out: y });
  });
  h.ifThenElse(
    1,
    () => {
      h.add(x, x, { out: y });
    },
    () => {
      h.add(y, y, { out: y });
    },
  );
  return { host: h.build(), caller };
}

it("is the loop or branch that it begins, or the start of the program", () => {
  const { host, caller } = built();
  const statement = { kind: "Synchronize", stream: caller.id } as const;
  const textOf = (inside: number, opensElse = false): string | undefined =>
    addedCall(host, { ranks: [0], text: "", follows: inside, opensElse, statement, after: -1, inside })?.replaceAll(
      /\S+call-text\.test\.ts/gu,
      "FILE",
    );
  const where = "where stream is that of FILE:12:20";
  expect(textOf(-1)).toBe(`add \`h.synchronize(stream)\` before the first statement, ${where}`);
  expect(textOf(1)).toBe(`add \`h.synchronize(stream)\` first in the loop of FILE:13:5, ${where}`);
  expect(textOf(3)).toBe(`add \`h.synchronize(stream)\` first in the then branch of FILE:16:5, ${where}`);
  expect(textOf(3, true)).toBe(`add \`h.synchronize(stream)\` first in the else branch of FILE:16:5, ${where}`);
  expect(at(host.calls ?? [], 0)).toMatchObject({ line: 12, column: 20 });
});

it("is not known of a program that was edited after it was built", () => {
  const { host, caller } = built();
  const statement = { kind: "Synchronize", stream: caller.id } as const;
  const added = { ranks: [0], text: "", follows: 0, opensElse: false, statement, after: 0, inside: -1 };
  expect(addedCall({ ...host, body: [...host.body, statement] }, added)).toBeNull();
  expect(addedCall(host, added)).toMatch(/ after the call at \S+:12:20, where stream is its stream$/u);
});
