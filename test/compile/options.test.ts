/** The schema of options: every row is complete and agrees with its layer's options. */
import { isOneOf } from "../../src/support/invariant.ts";
import { Command } from "commander";
import { compile, Fusion, lower, MultiDeviceExecutor, neg, record } from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { createCudaBackend, soloRendezvous } from "@braid-compiler/braid/cuda";
import { describe, expect, expectTypeOf, it } from "vitest";
import {
  flagOf,
  loweringNames,
  optionGroups,
  namesOf,
  type OptionName,
  optionNames,
  type OptionRow,
  options,
  type OptionValue,
  scheduleNames,
} from "../../src/compile/options.ts";
import { fidelity, optionsOf } from "../../src/compile/options/as.ts";
import { flagChangeText, flagsText } from "../../src/compile/options/flags-text.ts";
import { resolveOptions } from "../../src/compile/options/resolve.ts";
import { addFlags, givenOptions } from "../../src/cli/flags/option-flags.ts";
import type { LoweringOptions } from "../../src/passes/options.ts";

const rows = optionNames.map((name): readonly [OptionName, OptionRow] => [name, options[name]]);

describe("every row", () => {
  it.each(rows)("%s has a help sentence, a group and commands", (name, row) => {
    const { help, group, commands } = row;
    expect(help).toMatch(/^\S.*[^.\s]$/);
    expect(Object.keys(optionGroups)).toContain(group);
    const isElsewhere = isOneOf(scheduleNames, name) || row.within === "as" || name === "disablePass";
    expect(commands.length > 0).toBe(!isElsewhere);
  });

  it.each(rows)("%s has defaults and an example of its kind", (_, row) => {
    const { kind, defaultOf = {} } = row;
    for (const value of [row.default, ...Object.values(defaultOf)]) {
      expect(value === undefined || kind.accepts(value)).toBe(true);
    }
    expect(kind.read(kind.example)).toBeDefined();
  });

  it.each(["lower", "run", "verify", "explain", "compile", "bench", "calibrate"] as const)(
    "of braid %s has a flag of its own",
    (command) => {
      const flags = namesOf(command).map(flagOf);
      expect(new Set(flags).size).toBe(flags.length);
    },
  );

  it("has a flag that says what it is", () => {
    expect(optionNames.map(flagOf)).toEqual(
      expect.arrayContaining(["--schedule", "--schedule p2p", "--print host", "--as nvfuser"]),
    );
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
    const { within, commands }: OptionRow = options[name];
    const command = addFlags(new Command(), "run");
    if (isOneOf(scheduleNames, name)) {
      command.parse(["--schedule", `${name}=${text}`], { from: "user" });
      expect(givenOptions(command, ["schedule"])).toEqual({ schedule: { [name]: value } });
      return;
    }
    if (within === "as") return expect(optionsOf(fidelity.read("nvfuser"), false)).toMatchObject({ [name]: value });
    // Only the API has it.
    if (commands.length === 0) return expect(flagOf(name)).toBe("--disable-pass");
    const flag = within === undefined ? [flagOf(name), text] : [`--${within}`, `${name}=${text}`];
    command.parse(flag, { from: "user" });
    const given = givenOptions(command, [name]);
    expect(given).toEqual({ [name]: value });
    // What says something of the schedule is the schedule.
    expect(givenOptions(command, ["schedule"])).toEqual(within === undefined ? {} : { schedule: "as-written" });
    expect(resolveOptions([name], given)).toEqual(resolveOptions([name], { [name]: value }));
  });
});

describe("options as text", () => {
  const now = {
    backend: "cuda",
    p2p: "rotated",
    overlap: false,
    schedule: { inPlace: true, computeStreams: 1 },
  } as const;

  it("are one flag for what one flag assigns", () => {
    expect(flagsText(now)).toBe("--backend cuda --schedule inPlace,computeStreams=1,overlap=false");
    const nvfuser = { ...optionsOf(fidelity.read("nvfuser"), false), shrink: true, backend: "ucc" } as const;
    expect(flagsText(nvfuser)).toBe("--backend ucc --as nvfuser --schedule shrink");
    expect(flagsText({ schedule: "auto", p2p: "linear" })).toBe("--schedule auto,p2p=linear");
    expect(flagsText({})).toBe("");
  });

  it("change by the values that differ", () => {
    const then = { p2p: "linear", schedule: { inPlace: true, computeStreams: 2, ownLast: true } } as const;
    expect(flagChangeText(now, then)).toBe(
      "--schedule computeStreams=2,ownLast,p2p=linear, without --backend cuda --schedule overlap=false",
    );
    expect(flagChangeText(now, now)).toBe("");
  });
});

describe("names that no option has", () => {
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
    ["lower", "protocl", "there is no option protocl", "did you mean protocol?"],
    ["record", "stream", "there is no option stream", "did you mean streams?"],
    ["compile", "inPlace", "inPlace is part of schedule", "write schedule: { inPlace }"],
    ["createCpuBackend", "worker", "there is no option worker", "did you mean workers?"],
    ["createCudaBackend", "graphs", "there is no option graphs", "did you mean graph?"],
    ["executor", "disablePasses", "there is no option disablePasses", "did you mean disablePass?"],
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
