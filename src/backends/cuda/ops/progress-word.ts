/** The numbers by which streams report commands in their words of host memory; 0 for none. */

const passedBit = 0x8000_0000;

/** The word that a stream writes when it reaches a command. */
export function progressWord(command: number): number {
  return command + 1;
}

/** The command of a word made by `progressWord`. */
export function commandOf(word: number): number {
  return word - 1;
}

/** The word that a stream writes after that command. */
export function passedWord(word: number): number {
  return word + passedBit;
}

/** The command of a word that is not 0, and whether the stream is past it. */
export function reportedBy(word: number): { readonly command: number; readonly passed: boolean } {
  return { command: commandOf(word % passedBit), passed: word >= passedBit };
}
