/** Light or dark: as the system says, until the user chooses. */

export type Theme = "light" | "dark";

const key = "braid-playground-theme";

export function startTheme(): void {
  const kept = localStorage.getItem(key);
  setTheme(kept === "light" || kept === "dark" ? kept : systemTheme());
}

export function currentTheme(): Theme {
  return document.documentElement.dataset["theme"] === "dark" ? "dark" : "light";
}

export function toggleTheme(): Theme {
  const next = currentTheme() === "dark" ? "light" : "dark";
  localStorage.setItem(key, next);
  setTheme(next);
  return next;
}

function setTheme(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
}

function systemTheme(): Theme {
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
