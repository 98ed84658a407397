/** Which shipped profile is that of a machine. */
import { expect, it } from "vitest";
import { DiagnosticError } from "@braid-compiler/braid";
import { profileToPredictWith, shippedProfileOf, withOwnProfile } from "../../src/cli/flags/profile.ts";

it.each([
  ["NVIDIA H200", 4, "4xH200"],
  ["NVIDIA H200", 2, "2xH200"],
  ["NVIDIA H100 80GB HBM3", 2, "2xH100"],
  ["NVIDIA H200", 3, null],
  ["NVIDIA H100 PCIe", 2, null],
  ["NVIDIA H20", 2, null],
  // Of these only the data sheet is known.
  ["NVIDIA B200", 8, null],
])("of %s x %i is %s", (gpu, devices, name) => {
  expect(shippedProfileOf(gpu, devices)).toBe(name);
});

it("is not asked for where the program is for the CPU, or is scheduled otherwise", async () => {
  const flags = { on: "cuda", devices: 2 } as const;
  for (const [given, streams] of [
    [{ ...flags, on: "cpu" }, undefined],
    [{ ...flags, schedule: "as-written" }, undefined],
    [{ ...flags, profile: "4xH200" }, undefined],
    [flags, 4],
  ] as const) {
    expect(await withOwnProfile(given, streams === undefined ? {} : { streams })).toBe(given);
  }
});

it("a name in other letters is suggested", async () => {
  const help = await profileToPredictWith({ profile: "4xh200" }).then(
    () => "",
    (error: unknown) => (error instanceof DiagnosticError ? error.diagnostics[0]?.help : error),
  );
  expect(help).toBe("did you mean 4xH200?");
});
