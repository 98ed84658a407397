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

/** Without a warning, but for `ignored` ones. */
export async function explained(asked: readonly string[], ignored?: RegExp): Promise<Explained> {
  const written = ["--profile", "4xH200", "--schedule", "as-written", "--json"];
  const { status, out, err } = await cli("explain", ...asked, ...written);
  expect([status, ignored === undefined ? err : err.replace(ignored, "")]).toEqual([0, ""]);
  return JSON.parse(out) as Explained;
}
