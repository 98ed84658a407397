/** Links of the built site that lead to no file, or to no place in it. */
import path from "node:path";

/** `files`: the text of each page by its path, and null for other files. */
export function brokenLinks(files: ReadonlyMap<string, string | null>): readonly string[] {
  const places = new Map<string, ReadonlySet<string>>();
  const placesOf = (page: string, text: string): ReadonlySet<string> => {
    const known = places.get(page) ?? new Set([...text.matchAll(/ (?:id|name)="([^"]+)"/gu)].map(([, id = ""]) => id));
    places.set(page, known);
    return known;
  };
  return [...files].flatMap(([from, text]) =>
    [...(text?.matchAll(/<a\b[^>]*? href="([^"]*)"/gu) ?? [])].flatMap(([, href = ""]) => {
      if (/^[a-z]+:/u.test(href)) return [];
      const [to = "", place = ""] = href.split("#").map(decodeURIComponent);
      const target = to === "" ? from : path.posix.join(path.posix.dirname(from), to.replace(/\/$/u, "/index.html"));
      const page = files.get(target);
      // The playground's fragment is a program.
      const isThere =
        page !== undefined && (place === "" || target.startsWith("playground/") || isIn(place, target, page));
      return isThere ? [] : [`${from}: ${href.slice(0, 200)}`];
    }),
  );

  function isIn(place: string, target: string, page: string | null): boolean {
    return page !== null && placesOf(target, page).has(place);
  }
}
