/**
 * The type of an option's kind: the values it accepts, and how they are read from and printed as text. kinds.ts
 * makes the kinds.
 */

/** A kind without the type of its values. */
export interface KindInfo {
  /** Whether the API takes the value. */
  readonly accepts: (value: unknown) => boolean;
  readonly expected: string;
  /** The value in usage lines, such as `n`; null for a switch, whose flag takes no value. */
  readonly argument: string | null;
  /** The text that the flag alone stands for. Another one follows an equals sign. */
  readonly alone?: string;
  /** A value as text, for the fix that a diagnostic suggests. */
  readonly example: string;
  /** The value that a text means; undefined for any other text. */
  readonly read: (text: string) => unknown;
  /** What a text that is not read was likely to mean; undefined if nobody knows. */
  readonly corrected?: (text: string) => string | undefined;
  /** Joins the texts of a repeated flag; null for a flag that is given once. */
  readonly separator: string | null;
}

export interface OptionKind<Value> extends KindInfo {
  readonly accepts: (value: unknown) => value is Value;
  readonly read: (text: string) => Value | undefined;
  readonly print: (value: Value) => string;
}

export interface ChoiceKind<T extends string> extends OptionKind<T> {
  readonly choices: readonly T[];
}

/** The name of a cotangent, and the inputs whose gradients are wanted; null for every parameter. */
export interface GivenGradients {
  readonly cotangent: string;
  readonly wrt: readonly string[] | null;
}

/** A pass of a model, and what `splitBackward` is to save: bytes, or a policy's name. */
export interface GivenHalf {
  readonly pass: "forward" | "backward";
  readonly save: "all" | "minimal" | number;
}
