/** All flags that `explain` advises are typed, and give the time that was predicted for them. */
import path from "node:path";
import { expect, it } from "vitest";
import { explained } from "./explained.ts";

const examples = path.resolve(import.meta.dirname, "../../examples");

/** The command line with flags added and, after "without", taken away. */
function typed(asked: readonly string[], change: string): readonly string[] {
  const [added = "", removed = ""] = change.split(/(?:, |^)without /u);
  const taken = removed.split(" ");
  const start = removed === "" ? -1 : asked.indexOf(taken[0] ?? "");
  const rest = start < 0 ? asked : asked.toSpliced(start, taken.length);
  return [...rest, ...added.split(" ").filter(Boolean)];
}

it.each([
  [
    "an MLP",
    [path.join(examples, "mlp.ts"), "--devices", "4", "--set", "M=8192", "--set", "K=8192", "--set", "H=28672"],
  ],
  [
    "a program with flags",
    [
      path.join(examples, "mlp.ts"),
      "--devices",
      "4",
      "--set",
      "M=2048",
      "--backend",
      "cuda",
      "--schedule",
      "protocol=put",
    ],
  ],
  [
    "a program without overlap",
    [
      path.join(examples, "mlp.ts"),
      "--devices",
      "2",
      "--set",
      "M=4096",
      "--set",
      "K=4096",
      "--schedule",
      "overlap=false",
    ],
  ],
])("the flags for %s", async (_, asked) => {
  const { alternatives } = await explained(asked);
  expect(alternatives.length).toBeGreaterThan(0);
  for (const { change, options, milliseconds } of alternatives) {
    if (options === undefined || milliseconds === null) continue;
    expect((await explained(typed(asked, change))).milliseconds, change).toBeCloseTo(milliseconds, 9);
  }
});
