/**
 * The order of the documentation's pages; a test fails for a page that is not listed here.
 *
 * Pages are `docs/<name>.md`; those of GENERATED_PAGES are written by the program itself (site/generated_pages.ts).
 */

/** A group of pages in the navigation. */
interface TocGroup {
  readonly title: string;
  readonly pages: readonly string[];
}

/** Pages of the API reference, which are written from the sources of the packages. */
export const REFERENCE_PAGES: readonly string[] = [
  "reference",
  "reference-wasi",
  "reference-threads",
  "reference-program",
  "reference-runner",
  "reference-extism",
  "reference-counts",
  "reference-recording",
  "reference-node-wasi",
  "reference-webassembly",
  "reference-component",
  "reference-component-wasi",
  "reference-component-program",
  "reference-component-runner",
  "reference-component-install",
];

/** All pages in order. */
export const DOCS_TOC: readonly TocGroup[] = [
  { title: "Start", pages: ["index", "getting-started", "installing", "configuration", "faq", "troubleshooting"] },
  {
    title: "Use",
    pages: [
      "embedding",
      "untrusted",
      "extism",
      "components",
      "serve",
      "oci",
      "fleet",
      "wasi",
      "strings",
      "languages",
      "proposals",
      "artifacts",
      "inspecting",
      "exploring",
      "profiling",
      "debugging",
      "recording",
      "control",
      "manifest",
      "lockfile",
    ],
  },
  { title: "Plugins", pages: ["plugin-authoring", "registry"] },
  {
    title: "Reference",
    pages: [...REFERENCE_PAGES, "commands", "settings", "plugin-abi", "registry-api"],
  },
  { title: "Understand", pages: ["performance", "comparison", "security", "architecture"] },
];

/** Pages that the program writes from its tables. */
export const GENERATED_PAGES: readonly string[] = ["commands", "performance", "plugin-abi", "registry-api", "settings"];
