/**
 * The order of the documentation's pages. A page that is not listed here is a mistake that a test finds.
 *
 * Pages are `docs/<name>.md`; those of GENERATED_PAGES are written by the program itself (site/generated_pages.ts).
 */

/** A group of pages in the navigation. */
export interface TocGroup {
  readonly title: string;
  readonly pages: readonly string[];
}

/** All pages in order. */
export const DOCS_TOC: readonly TocGroup[] = [
  { title: "Start", pages: ["index", "getting-started", "installing", "configuration"] },
  { title: "Use", pages: ["commands", "embedding", "artifacts", "control", "manifest", "settings", "lockfile"] },
  { title: "Plugins", pages: ["plugin-authoring", "plugin-abi", "registry", "registry-api"] },
  { title: "Understand", pages: ["performance", "security", "architecture"] },
];

/** Pages that the program writes. */
export const GENERATED_PAGES: readonly string[] = ["commands", "performance", "plugin-abi", "registry-api", "settings"];
