/** What the user's program calls its tensors. */
import type { TensorPicture } from "../compiler/parts.ts";

/** By id: of a line such as `const y = linear(x, w);` that makes one tensor. A name that the program gave counts more. */
export function variableNames(
  text: string,
  tensors: readonly Pick<TensorPicture, "id" | "name" | "source">[],
): ReadonlyMap<number, string> {
  const lines = text.split("\n");
  return new Map(
    tensors.flatMap(({ id, name, source }) => {
      const isAlone = tensors.filter((each) => each.source === source).length === 1;
      const variable = /^\s*(?:const|let|var)\s+([\p{L}_$][\p{L}\p{N}_$]*)\s*=/u.exec(lines[source - 1] ?? "")?.[1];
      return variable !== undefined && isAlone && name === `T${id}` ? [[id, variable]] : [];
    }),
  );
}
