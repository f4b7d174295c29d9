/**
 * Changes of the registry, newest first: a page, and the same as a feed (Atom, RFC 4287).
 */
import { segmentOfId } from "../../names.ts";
import { changesOf } from "../../routes/changes.ts";
import { type Call, knownQuery } from "../../services.ts";
import { type Change, listChanges } from "../../store/changes.ts";
import { layout } from "../layout.ts";
import { type Markup, markup } from "../markup.ts";
import { notesText } from "../readme.ts";

const TITLE = "Changes";
const DESCRIPTION = "Plugins as they are published, yanked, deprecated and transferred.";
const FEED = { type: "application/atom+xml", href: "/changes.atom" } as const;
const ON_PAGE = 50;
const TRANSFERRED = "Another account publishes the next releases.";

/** Renders the page. */
export async function changesPage(call: Call): Promise<string> {
  const { changes, nextCursor } = await changesOf(call, ON_PAGE);
  const next = new URLSearchParams(call.url.search);
  if (nextCursor !== null) next.set("cursor", nextCursor);
  return layout(call.services, {
    title: TITLE,
    description: DESCRIPTION,
    section: "plugins",
    canonical: "/changes",
    hidden: call.url.search !== "",
    alternates: [FEED],
    body: markup`
    <main id="main" class="prose">
      <h1>${TITLE}</h1>
      <p class="lead">${DESCRIPTION} Also as a <a href="${FEED.href}">feed</a>.</p>
      ${
      changes.length === 0
        ? markup`<p>Nothing has been published.</p>`
        : markup`<ol class="cards">${changes.map(card)}</ol>`
    }
      ${nextCursor !== null && markup`<p><a rel="next" href="/changes?${next.toString()}">Older changes</a></p>`}
    </main>
  `,
  });
}

function card(c: Change): Markup {
  const isYank = c.change === "yanked" && c.yanked !== null;
  return markup`
    <li>
      <div class="title">
        <h2><a href="${addressOf(c)}">${nameOf(c)}</a></h2>
        ${
    isYank
      ? markup`<span class="badge warn">yanked: ${c.yanked.severity}</span>`
      : c.change === "published"
      ? markup`<span class="badge">published</span>`
      : markup`<span class="badge warn">${c.change}</span>`
  }${c.change === "published" && c.yanked !== null && markup`<span class="badge warn">yanked since</span>`}
      </div>
      ${isYank && markup`<p>${c.yanked.reason}</p>`}
      ${c.deprecated !== null && markup`<p>${c.deprecated}</p>`}
      ${c.notes !== null && markup`<pre class="notes" tabindex="0">${notesText(c.notes)}</pre>`}
      ${c.change === "transferred" && markup`<p>${TRANSFERRED}</p>`}
      <ul class="meta">
        <li>${c.name}</li>
        <li><time datetime="${c.at}">${c.at.slice(0, 16).replace("T", " ")} UTC</time></li>
        ${c.publisher !== "" && markup`<li>published by ${c.publisher}</li>`}
      </ul>
    </li>
  `;
}

/** Renders the feed: the newest changes, without pages. */
export async function changesFeed(call: Call): Promise<string> {
  knownQuery(call, []);
  const { settings, database } = call.services;
  const { changes } = await listChanges(database, { limit: ON_PAGE });
  return markup`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <id>${settings.baseUrl}/changes</id>
  <title>${TITLE} of ${new URL(settings.baseUrl).host}</title>
  <subtitle>${DESCRIPTION}</subtitle>
  <updated>${changes[0]?.at ?? "1970-01-01T00:00:00.000Z"}</updated>
  <link rel="self" type="${FEED.type}" href="${settings.baseUrl}${FEED.href}"/>
  <link rel="alternate" type="text/html" href="${settings.baseUrl}/changes"/>
${changes.map((c) => feedEntry(c, settings.baseUrl))}</feed>
`.text;
}

function feedEntry(c: Change, baseUrl: string): Markup {
  const address = baseUrl + addressOf(c);
  const more = c.change === "yanked" && c.yanked !== null
    ? ` (${c.yanked.severity}): ${c.yanked.reason}`
    : c.deprecated !== null
    ? `: ${c.deprecated}`
    : c.change === "transferred"
    ? `: ${TRANSFERRED}`
    : "";
  const release = c.version === null ? c.name : `${c.name} ${c.version}`;
  // A package may be transferred, or deprecated, more than once.
  const change = c.version === null ? `${c.change}-${c.at}` : c.change;
  return markup`  <entry>
    <id>${address}#${change}</id>
    <title>${nameOf(c)} ${c.change}</title>
    <updated>${c.at}</updated>
    <link rel="alternate" type="text/html" href="${address}"/>
    <author><name>${c.publisher || c.name}</name></author>
    <summary>${release} was ${c.change}${more}</summary>${
    c.notes !== null && markup`
    <content type="text">${notesText(c.notes)}</content>`
  }
  </entry>
`;
}

function addressOf(c: Change): string {
  const page = `/plugins/${segmentOfId(c.name)}`;
  return c.version === null ? page : `${page}/v/${c.version}`;
}

function nameOf(c: Change): string {
  return c.version === null ? c.displayName : `${c.displayName} ${c.version}`;
}
