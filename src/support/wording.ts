/** Plurals and articles for messages. */

/** `1 send`, `2 sends`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** `an Allgather`, `a Reduce`: chosen by the first letter. */
export function withArticle(noun: string): string {
  return `${/^[aeio]/i.test(noun) ? "an" : "a"} ${noun}`;
}
