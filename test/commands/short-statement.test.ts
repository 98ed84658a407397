import { expect, it } from "vitest";
import { shortStatement } from "../../src/commands/command-text.ts";

it.each([
  [
    "T6_l_float[iS1{4}] (DeviceMesh{0 1})\n   = linear(T5_g_float[iS2{4}] (DeviceMesh{0 1}),\n            T1_g_float[iS3{4}] (DeviceMesh{0 1})      )",
    "T6 = linear(T5, T1)",
  ],
  [
    "SetCurrentStream to Stream ( streamIdx % numberOfStreams )",
    "SetCurrentStream to Stream ( streamIdx % numberOfStreams )",
  ],
])("%j is short: %j", (statement, short) => {
  expect(shortStatement(statement)).toBe(short);
});
