/** A process's environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;
