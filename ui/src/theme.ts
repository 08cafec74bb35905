// Light or dark: as the system says, unless the visitor chose.

import { Store } from "./store";

export type Theme = "system" | "light" | "dark";

const KEY = "telpher.theme";

export const theme = new Store<Theme>(stored());

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

function apply(): void {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset["theme"];
  else root.dataset["theme"] = theme.value;
}

export function chooseTheme(value: Theme): void {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // The choice lasts as long as the page.
  }
  document.documentElement.dataset["theme"] = value;
  theme.set(value);
  apply();
}

apply();
