/**
 * The full-text index of a channel's documentation. In: pages with their sections. Out: sections by relevance, with the
 * stems by which they were found. Words match by their stems, their beginnings, and with a typing error in longer ones;
 * sections that have all words of a query come before those that have some.
 */
import MiniSearch from "minisearch";
import type { Section } from "./markdown.ts";

/** A page, as far as the index reads it. */
interface IndexedPage {
  readonly name: string;
  readonly title: string;
  readonly sections: readonly Section[];
}

/** A section that was found. */
interface FoundSection<P extends IndexedPage> {
  readonly page: P;
  readonly section: Section;
  /** The stems of the query's words, each the beginning of a word. */
  readonly stems: readonly string[];
}

/** Words that say nothing about a section, unless a query has no others. */
const STOP_WORDS = new Set("a an and are can do does for from how i in is it my of on or the to what with".split(" "));
const WORDS = /[\p{L}\p{N}]+/gu;
const MIN_STEM = 4;
const LONGEST_WORD = 40;
const MAX_WORDS = 10;
/** With fewer sections that have all words, those that have some are added. */
const ENOUGH = 5;

/** A word without its ending: "captured", "captures" and "capturing" are one word. */
function stemOf(word: string): string {
  const lower = word.toLowerCase().slice(0, LONGEST_WORD);
  const stem = lower.replace(/(?:ing|ed|es|s)$/, "");
  return (stem.length >= MIN_STEM ? stem : lower).replace(/(?<=.{4})e$/, "");
}

function wordsOf(text: string): string[] {
  return text.match(WORDS) ?? [];
}

/** The index of one channel. */
export class SearchIndex<P extends IndexedPage> {
  readonly #found: { readonly page: P; readonly section: Section }[] = [];
  readonly #index = new MiniSearch({
    fields: ["heading", "title", "text", "code"],
    tokenize: wordsOf,
    processTerm: stemOf,
    searchOptions: {
      boost: { heading: 5, title: 3, code: 0.5 },
      prefix: (word) => word.length > 2,
      fuzzy: (word) => word.length > 4 ? 0.25 : false,
      weights: { prefix: 0.5, fuzzy: 0.2 },
    },
  });

  /** Indexes all sections of `pages`. */
  constructor(pages: readonly P[]) {
    for (const page of pages) {
      for (const section of page.sections) {
        const { text, code } = section;
        const heading = section.heading?.text ?? page.title;
        this.#index.add({ id: this.#found.length, heading, title: page.title, text, code });
        this.#found.push({ page, section });
      }
    }
  }

  /** At most `most` sections, the best first. */
  search(query: string, most: number): FoundSection<P>[] {
    const all = wordsOf(query).slice(0, MAX_WORDS);
    const telling = all.filter((word) => !STOP_WORDS.has(word.toLowerCase()));
    const words = telling.length > 0 ? telling : all;
    if (words.length === 0) return [];
    const ids = this.#ids(words, "AND");
    if (ids.length < ENOUGH && words.length > 1) ids.push(...this.#ids(words, "OR").filter((id) => !ids.includes(id)));
    const stems = words.map(stemOf);
    return ids.slice(0, most).map((id) => ({ ...this.#found[id], stems }));
  }

  #ids(words: readonly string[], combineWith: "AND" | "OR"): number[] {
    return this.#index.search(words.join(" "), { combineWith }).map(({ id }) => id as number);
  }
}
