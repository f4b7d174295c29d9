/**
 * The documentation of each channel: pages, index record, raw Markdown, one text of everything, search.
 *
 * In: Markdown files of each channel. Out: pages by path, each rendered at its first request and kept while its source
 * stays the same. The index record has the fields of the specification ("Documentation-site index record").
 * Canary is docs/ beside this program and the pages that the program writes; other channels come from the database.
 */
import { DOCS_TOC } from "../docs_toc.ts";
import { BASE_URL } from "../../project/base/constants.ts";
import { compareVersions } from "../../project/base/version.ts";
import type { StoredDocument } from "../store/keys.ts";
import { type Heading, renderDocument, type RenderedPage, type Section } from "./markdown.ts";
import { SearchIndex } from "./search_index.ts";

/** A channel: `canary`, `nightly`, or `v` and the version of an official release. */
export interface Channel {
  readonly id: string;
  readonly label: string;
  /** The path prefix of its pages: `/`, `/nightly/`, `/v1.2.3/`. */
  readonly base: string;
  readonly pages: readonly DocumentPage[];
}

/** A page; rendered when its HTML, headings or sections are first requested. */
export class DocumentPage {
  readonly channel: string;
  /** File name without `.md`; `reference/Engine` for the page of a symbol. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Path on the site. */
  readonly path: string;
  readonly rawPath: string;
  readonly source: string;
  readonly #base: string;
  #rendered: RenderedPage | undefined;

  constructor(channel: string, base: string, name: string, source: string) {
    this.channel = channel;
    this.name = name;
    this.title = /^# +(.+)$/m.exec(source)?.[1]?.replace(/[`*]/g, "") ?? name;
    this.description = firstParagraph(source);
    this.path = name === "index" ? base : base + name;
    this.rawPath = `/raw${base}${name}.md`;
    this.source = source;
    this.#base = base;
  }

  get html(): string {
    return this.#render().html;
  }

  get headings(): readonly Heading[] {
    return this.#render().headings;
  }

  get sections(): readonly Section[] {
    return this.#render().sections;
  }

  #render(): RenderedPage {
    return this.#rendered ??= renderDocument(this.source, (link) => resolveLink(link, this.#base));
  }
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

const MAX_HITS = 30;

/** Names that channels may have. */
export const CHANNEL = /^(?:nightly|v[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?)$/;

/** All documentation that a registry serves. */
export class DocumentSite {
  readonly channels: readonly Channel[];
  readonly #baseUrl: string;
  readonly #byPath = new Map<string, DocumentPage>();
  readonly #byRawPath = new Map<string, DocumentPage>();

  /** Made at the first search of a channel, which renders its pages. */
  readonly #indexes = new Map<Channel, SearchIndex<DocumentPage>>();
  #corpus: string | undefined;

  /** `previous` is the site before: pages whose source is the same are taken over, rendered as they are. */
  constructor(
    baseUrl: string,
    sources: ReadonlyMap<string, readonly StoredDocument[]>,
    previous?: DocumentSite,
  ) {
    this.#baseUrl = baseUrl;
    const ids = [...sources.keys()].sort(compareChannels);
    this.channels = ids.map((id) => makeChannel(id, sources.get(id)!, previous?.channel(id)));
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

  /** The canonical address of a page: the one in the newest official channel that has it. */
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
    return this.#corpus ??= this.#joinPages();
  }

  #joinPages(): string {
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
      // A page of the reference lists its symbols.
      for (const p of channel.pages.filter((page) => !page.name.includes("/"))) {
        lines.push(`- [${p.title}](${this.#baseUrl}${p.rawPath}): ${p.description}`);
      }
      lines.push("");
    }
    return lines.join("\n");
  }

  /** Sections of a channel for a query, the best first. */
  search(channel: Channel, query: string): SearchHit[] {
    return this.#indexOf(channel).search(query, MAX_HITS).map(({ page, section, stems }) => ({
      page,
      excerpt: excerptOf(section, stems),
      ...(section.heading === undefined ? {} : { heading: section.heading }),
    }));
  }

  #indexOf(channel: Channel): SearchIndex<DocumentPage> {
    const known = this.#indexes.get(channel);
    if (known !== undefined) return known;
    const index = new SearchIndex(channel.pages);
    this.#indexes.set(channel, index);
    return index;
  }
}

function compareChannels(a: string, b: string): number {
  const rank = (id: string): number => id === "canary" ? 0 : id === "nightly" ? 1 : 2;
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  return rank(a) < 2 ? 0 : compareVersions(b.slice(1), a.slice(1));
}

function makeChannel(id: string, sources: readonly StoredDocument[], previous: Channel | undefined): Channel {
  const base = id === "canary" ? "/" : `/${id}/`;
  const label = id === "canary" ? "Canary channel" : id === "nightly" ? "Nightly channel" : `Official ${id}`;
  const names = DOCS_TOC.flatMap((g) => g.pages);
  /** The pages of symbols come after that of their module. */
  const rank = (name: string): number => {
    const place = names.indexOf(name.split("/")[0]);
    return place < 0 ? names.length : place;
  };
  const known = new Map((previous?.pages ?? []).map((p) => [p.name, p]));
  const page = ({ path, source }: StoredDocument): DocumentPage => {
    const name = path.replace(/\.md$/, "");
    const same = known.get(name);
    return same?.source === source ? same : new DocumentPage(id, base, name, source);
  };
  const pages = sources.map(page)
    .sort((a, b) => rank(a.name) - rank(b.name) || (a.name < b.name ? -1 : 1));
  return { id, label, base, pages };
}

/** Links to pages: by file name, or by address where a page has no file in docs/ because the program writes it. */
const PAGE_LINK = new RegExp(`^(?:(?:\\./)?([a-z0-9-]+)\\.md|${BASE_URL}/([a-z0-9-]+(?:/[\\w-]+)?))(#.*)?$`);

/** Resolves a link of a page: to the same channel's page, otherwise unchanged. */
function resolveLink(link: string, base: string): string {
  const match = PAGE_LINK.exec(link);
  const [, file, address, fragment = ""] = match ?? [];
  const name = file ?? (DOCS_TOC.some((g) => g.pages.includes(address?.split("/")[0] ?? "")) ? address : undefined);
  return name === undefined ? link : `${base}${name === "index" ? "" : name}${fragment}`;
}

/** The first paragraph after the title, as plain text. */
function firstParagraph(source: string): string {
  const block = source.split(/\n\s*\n/).map((b) => b.trim()).find((b) => b !== "" && !/^(?:#|```|\||- |>)/.test(b)) ??
    "";
  const text = block.replace(/\s+/g, " ").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*_]/g, "");
  return text.length <= 240 ? text : `${text.slice(0, 237).replace(/ [^ ]*$/, "")}…`;
}

const EXCERPT = 200;

/** The part of a section around the first word that it contains: prose if possible, else the line of code. */
function excerptOf({ text, code }: Section, words: readonly string[]): string {
  const flat = text.replace(/\s+/g, " ").trim();
  const lower = flat.toLowerCase();
  const places = words.map((w) => lower.indexOf(w)).filter((i) => i >= 0);
  if (places.length > 0 || flat !== "") return cutAround(flat, Math.min(...places, flat.length));
  const line = code.split("\n").find((l) => words.some((w) => l.toLowerCase().includes(w))) ?? "";
  return cutAround(line.trim(), 0);
}

/** At most EXCERPT characters, cut between words. */
function cutAround(text: string, place: number): string {
  if (place >= text.length) place = 0;
  const start = place < 60 ? 0 : text.indexOf(" ", place - 60) + 1;
  const rest = text.slice(start);
  const cut = rest.length <= EXCERPT ? rest : `${rest.slice(0, rest.lastIndexOf(" ", EXCERPT) + 1).trimEnd()} …`;
  return `${start > 0 ? "… " : ""}${cut}`;
}
