/** The schema of options: every row is complete, and says what its layer takes. */
import { Command } from "commander";
import { describe, expect, expectTypeOf, it } from "vitest";
import {
  flagOf,
  loweringNames,
  optionGroups,
  optionNames,
  type OptionRow,
  options,
  type OptionValue,
  scheduleNames,
} from "../../src/compile/options.ts";
import { resolveOptions } from "../../src/compile/options/resolve.ts";
import { addFlags, givenOptions } from "../../src/cli/flags/option-flags.ts";
import type { LoweringOptions } from "../../src/passes/options.ts";

const rows = optionNames.map((name): readonly [string, OptionRow] => [name, options[name]]);

describe("every row", () => {
  it.each(rows)("%s has a help sentence, a group and commands", (_, { help, group, commands }) => {
    expect(help).toMatch(/^\S.*[^.\s]$/);
    expect(Object.keys(optionGroups)).toContain(group);
    expect(commands.length).toBeGreaterThan(0);
  });

  it.each(rows)("%s has defaults and an example of its kind", (_, row) => {
    const { kind, defaultOf = {} } = row;
    for (const value of [row.default, ...Object.values(defaultOf)]) {
      expect(value === undefined || kind.accepts(value)).toBe(true);
    }
    expect(kind.read(kind.example)).toBeDefined();
  });

  it("has a flag of its own", () => {
    const flags = optionNames.map(flagOf);
    expect(new Set(flags).size).toBe(flags.length);
    expect(flags).toEqual(expect.arrayContaining(["--in-place", "--p2p", "--no-overlap", "--sm-margin"]));
  });

  it("takes what its layer takes", () => {
    expectTypeOf<{ readonly [K in keyof LoweringOptions]: OptionValue<K> }>().toEqualTypeOf<LoweringOptions>();
  });
});

/** A text and the value that it means, of every lowering and schedule option. */
const values: readonly (readonly [(typeof loweringNames)[number] | (typeof scheduleNames)[number], string, unknown])[] =
  [
    ["backend", "cuda", "cuda"],
    ["p2p", "broadcast", "broadcast"],
    ["protocol", "put", "put"],
    ["overlap", "false", false],
    ["interStreamSync", "true", true],
    ["insertReshardingAfter", "true", true],
    ["accumulate", "true", true],
    ["deallocate", "false", false],
    ["shrink", "false", false],
    ["disablePass", "deallocate", ["deallocate"]],
    ["copyStream", "inline", "inline"],
    ["inPlace", "true", true],
    ["ownLast", "true", true],
    ["splitChunks", "3", 3],
    ["mergeGemms", "1-3-4", [1, 3, 4]],
    ["computeStreams", "2", 2],
    ["earlySums", "2-2", [2, 2]],
    ["kernelCopies", "4096", 4096],
    ["batchSignals", "true", true],
    ["smMargin", "8", 8],
  ];

describe("one value through every door", () => {
  it("covers all lowering and schedule options", () => {
    expect(values.map(([name]) => name).toSorted()).toEqual([...loweringNames, ...scheduleNames].toSorted());
  });

  it.each(values)("%s=%s", (name, text, value) => {
    const { kind }: OptionRow = options[name];
    expect(kind.read(text)).toEqual(value);
    const flag = flagOf(name);
    const command = addFlags(new Command(), "run");
    command.parse(kind.argument === null ? [flag] : [flag, text], { from: "user" });
    const given = givenOptions(command, [name]);
    expect(given).toEqual({ [name]: value });
    expect(resolveOptions([name], given)).toEqual(resolveOptions([name], { [name]: value }));
  });
});
