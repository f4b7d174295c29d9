/**
 * The documentation, for each channel, as pages, as an index record, as raw Markdown and as one text.
 *
 * In: Markdown files of each channel. Out: everything rendered once, looked up by path. The index record has the fields of
 * the specification ("Documentation-site index record"). Canary is what lies in docs/ beside this program; other channels
 * come from the database. Design: §4.
 */
import { DOCS_TOC } from "../docs_toc.ts";
import { compareVersions } from "../../project/base/version.ts";
import type { StoredDocument } from "../store/keys.ts";
import { type Heading, renderDocument } from "./markdown.ts";

/** A channel: `canary`, `nightly`, or `v` and the version of an official release. */
export interface Channel {
  readonly id: string;
  readonly label: string;
  /** Where its pages begin: `/`, `/nightly/`, `/v1.2.3/`. */
  readonly base: string;
  readonly pages: readonly DocumentPage[];
}

/** A rendered page. */
export interface DocumentPage {
  readonly channel: string;
  /** File name without `.md`. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Path on the site. */
  readonly path: string;
  readonly rawPath: string;
  readonly headings: readonly Heading[];
  readonly html: string;
  readonly source: string;
}

/** One page of the index record. */
export interface IndexPage {
  readonly path: string;
  readonly title: string;
  readonly description: string;
  readonly section: string;
  readonly url: string;
  readonly markdown: string;
  readonly headings: readonly string[];
}

/** A hit of a search. */
export interface SearchHit {
  readonly page: DocumentPage;
  readonly heading?: Heading;
  readonly excerpt: string;
}

/** Names that channels may have. */
export const CHANNEL = /^(?:nightly|v[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?)$/;

/** All documentation that a registry serves. */
export class DocumentSite {
  readonly channels: readonly Channel[];
  readonly #baseUrl: string;
  readonly #byPath = new Map<string, DocumentPage>();
  readonly #byRawPath = new Map<string, DocumentPage>();

  constructor(baseUrl: string, sources: ReadonlyMap<string, readonly StoredDocument[]>) {
    this.#baseUrl = baseUrl;
    const ids = [...sources.keys()].sort(compareChannels);
    this.channels = ids.map((id) => makeChannel(id, sources.get(id)!));
    for (const channel of this.channels) {
      for (const page of channel.pages) {
        this.#byPath.set(page.path, page);
        this.#byRawPath.set(page.rawPath, page);
        this.#byRawPath.set(page.path.endsWith("/") ? `${page.path}index.md` : `${page.path}.md`, page);
      }
    }
  }

  /** The page at a path of the site. */
  page(path: string): DocumentPage | undefined {
    return this.#byPath.get(path);
  }

  /** The page whose raw Markdown is at a path. */
  rawPage(path: string): DocumentPage | undefined {
    return this.#byRawPath.get(path);
  }

  /** A channel. */
  channel(id: string): Channel | undefined {
    return this.channels.find((c) => c.id === id);
  }

  /** The channels that have a page of that name. */
  channelsWith(name: string): Channel[] {
    return this.channels.filter((c) => c.pages.some((p) => p.name === name));
  }

  /** The newest official channel, if there is one. */
  newestOfficial(): Channel | undefined {
    return this.channels.filter((c) => c.id.startsWith("v")).sort((a, b) =>
      compareVersions(b.id.slice(1), a.id.slice(1))
    )[0];
  }

  /** Where search engines should send people for a page: the newest official one that has it. */
  canonicalPath(page: DocumentPage): string {
    if (page.channel.startsWith("v")) return page.path;
    return this.newestOfficial()?.pages.find((p) => p.name === page.name)?.path ?? page.path;
  }

  /** The index record, of one channel or of all. */
  index(channel?: Channel): object {
    const channels = channel === undefined ? this.channels : [channel];
    const pages = channels.flatMap((c) =>
      c.pages.map((p): IndexPage => ({
        path: `${c.base.slice(1)}${p.name}.md`,
        title: p.title,
        description: p.description,
        section: c.label,
        url: this.#baseUrl + p.path,
        markdown: this.#baseUrl + p.rawPath,
        headings: p.headings.filter((h) => h.level === 2 || h.level === 3).map((h) => h.text),
      }))
    );
    pages.sort((a, b) => a.path < b.path ? -1 : a.path > b.path ? 1 : 0);
    return { schemaVersion: 1, canonicalUrl: `${this.#baseUrl}${channel?.base ?? "/"}`, pages };
  }

  /** Every page of every channel as one text. */
  corpus(): string {
    const pages = this.channels.flatMap((c) => c.pages);
    const parts = pages.map((p) =>
      `Source: ${this.#baseUrl}${p.path}\nMarkdown: ${this.#baseUrl}${p.rawPath}\n\n${p.source.trimEnd()}\n`
    );
    return [`Pages: ${pages.length}\n`, ...parts].join("\n---\n\n");
  }

  /** The short list for language models: titles with links to Markdown. */
  overview(): string {
    const lines = [
      "# waft",
      "",
      "> A WebAssembly runtime and compiler in TypeScript, its plugins and its registry.",
      "",
    ];
    for (const channel of this.channels) {
      lines.push(`## ${channel.label}`, "");
      for (const p of channel.pages) lines.push(`- [${p.title}](${this.#baseUrl}${p.rawPath}): ${p.description}`);
      lines.push("");
    }
    return lines.join("\n");
  }

  /** Sections of a channel that hold every word of a query, the best first. */
  search(channel: Channel, query: string): SearchHit[] {
    const words = query.toLowerCase().split(/\s+/).filter((w) => w !== "").slice(0, 10);
    if (words.length === 0) return [];
    const hits: { hit: SearchHit; score: number }[] = [];
    for (const page of channel.pages) {
      for (const section of sectionsOf(page)) {
        const text = section.text.toLowerCase();
        const title = `${section.heading?.text ?? ""} ${page.title}`.toLowerCase();
        if (!words.every((w) => text.includes(w) || title.includes(w))) continue;
        const score = words.reduce(
          (sum, w) => sum + (title.includes(w) ? 10 : 0) + Math.min(5, text.split(w).length),
          0,
        );
        const excerpt = excerptOf(section.text, words);
        hits.push({
          hit: { page, excerpt, ...(section.heading === undefined ? {} : { heading: section.heading }) },
          score,
        });
      }
    }
    return hits.sort((a, b) => b.score - a.score).slice(0, 30).map((h) => h.hit);
  }
}

function compareChannels(a: string, b: string): number {
  const rank = (id: string): number => id === "canary" ? 0 : id === "nightly" ? 1 : 2;
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  return rank(a) < 2 ? 0 : compareVersions(b.slice(1), a.slice(1));
}

function makeChannel(id: string, sources: readonly StoredDocument[]): Channel {
  const base = id === "canary" ? "/" : `/${id}/`;
  const label = id === "canary" ? "Canary channel" : id === "nightly" ? "Nightly channel" : `Official ${id}`;
  const names = DOCS_TOC.flatMap((g) => g.pages);
  const rank = (name: string): number => names.includes(name) ? names.indexOf(name) : names.length;
  const pages = sources.map(({ path, source }) => makePage(id, base, path.replace(/\.md$/, ""), source))
    .sort((a, b) => rank(a.name) - rank(b.name) || (a.name < b.name ? -1 : 1));
  return { id, label, base, pages };
}

function makePage(channel: string, base: string, name: string, source: string): DocumentPage {
  const { html, headings } = renderDocument(source, (link) => resolveLink(link, base));
  const title = headings.find((h) => h.level === 1)?.text ?? name;
  return {
    channel,
    name,
    title,
    description: firstParagraph(source),
    path: name === "index" ? base : base + name,
    rawPath: `/raw${base}${name}.md`,
    headings,
    html,
    source,
  };
}

/** A link of a page: to another page of the same channel, or as it is. */
function resolveLink(link: string, base: string): string {
  const match = /^(?:\.\/)?([a-z0-9-]+)\.md(#.*)?$/.exec(link);
  if (match === null) return link;
  return `${base}${match[1] === "index" ? "" : match[1]}${match[2] ?? ""}`;
}

/** The first paragraph after the title, as plain text. */
function firstParagraph(source: string): string {
  const block = source.split(/\n\s*\n/).map((b) => b.trim()).find((b) => b !== "" && !/^(?:#|```|\||- |>)/.test(b)) ??
    "";
  const text = block.replace(/\s+/g, " ").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*_]/g, "");
  return text.length <= 240 ? text : `${text.slice(0, 237).replace(/ [^ ]*$/, "")}…`;
}

interface Section {
  readonly heading?: Heading;
  readonly text: string;
}

/** A page cut at its headings, as source text; code counts, fences do not. */
function sectionsOf(page: DocumentPage): Section[] {
  const sections: Section[] = [];
  let lines: string[] = [];
  let heading: Heading | undefined;
  let next = 0;
  let fenced = false;
  const push = (): void => {
    sections.push({ text: lines.join(" "), ...(heading === undefined ? {} : { heading }) });
    lines = [];
  };
  for (const line of page.source.split("\n")) {
    if (line.startsWith("```")) fenced = !fenced;
    else if (!fenced && /^#{1,6} /.test(line)) {
      if (next > 0) push();
      heading = page.headings[next++];
    } else lines.push(line);
  }
  push();
  return sections;
}

function excerptOf(text: string, words: readonly string[]): string {
  // As a reader sees it: without the marks of tables, code, emphasis and links.
  const flat = text.replace(/\|(?:\s*:?-+:?\s*\|)+/g, " ").replace(/\\?\||`|\*\*/g, " ").replace(
    /\]\([^)\s]*\)|\[/g,
    " ",
  )
    .replace(/\s+/g, " ").trim();
  const lower = flat.toLowerCase();
  const at = Math.max(0, Math.min(...words.map((w) => lower.indexOf(w)).filter((i) => i >= 0), flat.length) - 60);
  const cut = flat.slice(at, at + 200);
  return `${at > 0 ? "…" : ""}${cut}${at + 200 < flat.length ? "…" : ""}`;
}
