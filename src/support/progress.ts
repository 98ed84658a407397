/** What long work says about itself, for whoever shows it. It changes no result. */

/** Announces the next step, such as `lowering`; of steps that can be counted, how many are done. */
export type OnProgress = (label: string, done?: number, of?: number) => void;

/** Steps that are announced together: a message for each would take as long as the steps. */
const interval = 4096;

/** Counts up to `of` steps. Costs a comparison where nobody listens. */
export function countingSteps(onProgress: OnProgress | undefined, label: string, of: number): () => void {
  if (onProgress === undefined) return () => {};
  let done = 0;
  onProgress(label, done, of);
  return () => {
    done++;
    if (done % interval === 0 && done <= of) onProgress(label, done, of);
  };
}
