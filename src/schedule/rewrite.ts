/** A schedule rewrite: a pure function from Programs to Programs that mean the same, as a value with its name. */
import type { Program } from "../commands/program.ts";

export interface Rewrite<Choice> {
  /** As docs/schedules.md calls its section. */
  readonly name: string;
  /** The same object where it has nothing to do. */
  readonly run: (program: Program, choice: Choice) => Program;
}
