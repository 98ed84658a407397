/** A schedule rewrite: a pure function from a Program to an equivalent Program, as a value with a name. */
import type { Program } from "../commands/program.ts";

export interface Rewrite<Choice> {
  /** The name of its section in docs/schedules.md. */
  readonly name: string;
  /** Returns the same object if it has nothing to change. */
  readonly run: (program: Program, choice: Choice) => Program;
}
