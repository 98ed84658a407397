/**
 * By default, V8 optimizes functions so early that it compiles many of them again and again, as they meet further kinds
 * of nodes: half of the processor's time of `explain`. It is called once the program is loaded, because modules and
 * threads that start later do without what Node has compiled ahead.
 */
import { setFlagsFromString } from "node:v8";

export function optimizeLater(): void {
  setFlagsFromString("--interrupt-budget=700000");
}
