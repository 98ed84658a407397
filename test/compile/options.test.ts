/** The schema of options: every row is complete and agrees with its layer's options. */
import { isOneOf } from "../../src/support/is-one-of.ts";
import { Command } from "commander";
import { compile, Fusion, lower, MultiDeviceExecutor, neg, record } from "braid";
import { createCpuBackend } from "braid/cpu";
import { createCudaBackend, soloRendezvous } from "braid/cuda";
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
  it.each(rows)("%s has a help sentence, a group and commands", (name, { help, group, commands }) => {
    expect(help).toMatch(/^\S.*[^.\s]$/);
    expect(Object.keys(optionGroups)).toContain(group);
    // --schedule names the rewrites.
    expect(commands.length > 0).toBe(!isOneOf(scheduleNames, name));
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
    expect(flags).toEqual(expect.arrayContaining(["--schedule", "--p2p", "--no-overlap"]));
  });

  it("takes what its layer takes", () => {
    expectTypeOf<{ readonly [K in keyof LoweringOptions]: OptionValue<K> }>().toEqualTypeOf<LoweringOptions>();
  });
});

/** A text and the value that it means, of every lowering and schedule option. */
const values: readonly (readonly [(typeof loweringNames)[number] | (typeof scheduleNames)[number], string, unknown])[] =
  [
    ["backend", "cuda", "cuda"],
    ["attention", "ops", "ops"],
    ["devicesPerHost", "4", 4],
    ["p2p", "broadcast", "broadcast"],
    ["protocol", "put", "put"],
    ["propagate", "false", false],
    ["nvfuserLimits", "true", true],
    ["overlap", "false", false],
    ["deviceLoops", "true", true],
    ["interStreamSync", "true", true],
    ["insertReshardingAfter", "true", true],
    ["accumulate", "true", true],
    ["deallocate", "false", false],
    ["shrink", "false", false],
    ["disablePass", "deallocate", ["deallocate"]],
    ["copyStream", "inline", "inline"],
    ["dropSignals", "true", true],
    ["inPlace", "true", true],
    ["ownLast", "true", true],
    ["earlyGathers", "true", true],
    ["splitChunks", "3", 3],
    ["computeStreams", "2", 2],
    ["gemmSums", "true", true],
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
    const command = addFlags(new Command(), "run");
    if (isOneOf(scheduleNames, name)) {
      command.parse(["--schedule", `${name}=${text}`], { from: "user" });
      expect(givenOptions(command, ["schedule"])).toEqual({ schedule: { [name]: value } });
      return;
    }
    const flag = flagOf(name);
    command.parse(kind.argument === null ? [flag] : [flag, text], { from: "user" });
    const given = givenOptions(command, [name]);
    expect(given).toEqual({ [name]: value });
    expect(resolveOptions([name], given)).toEqual(resolveOptions([name], { [name]: value }));
  });
});

describe("names that an option had, or that no option has", () => {
  const f = new Fusion();
  f.output(neg(f.input([4], "float")));
  const host = lower(f);
  const compilation = compile(f, { devices: 1 });

  /** As callers without type checks pass them. */
  const calls: Readonly<Record<string, (given: object) => unknown>> = {
    lower: (given) => lower(f, { ...given }),
    record: (given) => record(host, { rank: 0, ...given }),
    compile: (given) => compile(f, { devices: 1, ...given }),
    createCpuBackend: (given) => createCpuBackend({ ...given }),
    createCudaBackend: (given) => createCudaBackend({ rendezvous: soloRendezvous(), ...given }),
    executor: (given) => MultiDeviceExecutor.create(f, { devices: 1, ...given }),
    "executor of a Compilation": (given) => MultiDeviceExecutor.create(compilation, { devices: 1, ...given }),
  };

  it.each([
    ["lower", "pointToPoint", "now called p2p", "write p2p"],
    ["record", "numberOfStreams", "now called streams", "write streams"],
    ["compile", "interStreamSynchronization", "now called interStreamSync", "write interStreamSync"],
    ["compile", "copyLane", "now called copyStream, and is part of schedule", "write schedule: { copyStream }"],
    ["compile", "inPlace", "inPlace is part of schedule", "write schedule: { inPlace }"],
    ["createCpuBackend", "worker", "there is no option worker", "did you mean workers?"],
    ["createCudaBackend", "graphs", "there is no option graphs", "did you mean graph?"],
    ["executor", "disablePasses", "now called disablePass", "write disablePass"],
    ["executor of a Compilation", "numberOfStreams", "now called streams", "write streams"],
    ["executor of a Compilation", "localRank", "there is no option localRank", "did you mean localRanks?"],
  ])("%s({ %s })", async (call, name, message, help) => {
    const made = async (): Promise<unknown> => calls[call]?.({ [name]: 1 });
    await expect(made).rejects.toMatchObject({
      diagnostics: [{ code: "option-unknown", message: expect.stringContaining(message) as string, help }],
    });
  });

  it("leaves values to the schema, in every call", async () => {
    for (const [call, given] of [
      ["createCpuBackend", { blas: "on" }],
      ["createCudaBackend", { graph: "never" }],
      ["createCudaBackend", { timeout: 0 }],
      ["executor of a Compilation", { timeout: "1" }],
      ["executor of a Compilation", { schedule: "fast" }],
    ] as const) {
      const made = async (): Promise<unknown> => calls[call]?.(given);
      await expect(made, call).rejects.toMatchObject({ diagnostics: [{ code: "bad-option" }] });
    }
  });
});
