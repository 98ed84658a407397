/** What `explain` says as JSON of a program as written on 4 H200. */
import { expect } from "vitest";
import { cli } from "./captured-cli.ts";

export interface Explained {
  readonly milliseconds: number;
  readonly alternatives: readonly {
    readonly change: string;
    readonly options?: object;
    readonly milliseconds: number | null;
  }[];
}

export async function explained(...asked: readonly string[]): Promise<Explained> {
  const written = ["--profile", "4xH200", "--schedule", "as-written", "--json"];
  const { status, out, err } = await cli("explain", ...asked, ...written);
  // Annotations to be edited may be warned of.
  expect([status, err.replace(/^warning\[annotations-conflict\][^]*$/u, "")]).toEqual([0, ""]);
  return JSON.parse(out) as Explained;
}
