/**
 * The site on loopback: every page of every channel, the index record, raw Markdown, corpus, plugins, comparison,
 * errors.
 */
import assert from "node:assert/strict";
import { CODEC, codecDefinition, definition, KV, kvDefinition } from "../project/sample_plugins.ts";
import { compareReleases, fileChange } from "../../registry/site/pages/compare_page.ts";
import { findRelease } from "../../registry/store/packages.ts";
import { OUTPUT_SCHEMAS } from "../../project/output_schemas.ts";
import { DocumentSite, type IndexPage } from "../../registry/site/documents.ts";
import { EXAMPLES } from "../../registry/site/pages/playground_page.ts";
import { type TestRegistry, withRegistry } from "./test_registry.ts";

interface IndexRecord {
  readonly schemaVersion: number;
  readonly canonicalUrl: string;
  readonly pages: readonly IndexPage[];
}

async function text(r: TestRegistry, path: string, status = 200): Promise<string> {
  const response = await fetch(path.startsWith("http") ? path : r.url + path, { headers: { accept: "text/html" } });
  const body = await response.text();
  assert.equal(response.status, status, `${path}: ${body.slice(0, 200)}`);
  return body;
}

/** Required elements of every page, and forbidden ones. */
function checkPage(html: string, path: string): void {
  assert.match(html, /^<!doctype html>/i, path);
  assert.match(html, /<html lang="en">/, path);
  assert.match(html, /<title>[^<]+<\/title>/, path);
  assert.equal(html.match(/<main id="main"/g)?.length, 1, `${path}: one main`);
  assert.equal(html.match(/<h1/g)?.length, 1, `${path}: one h1`);
  const own = /<script src="\/static\/site\.[0-9a-f]{12}\.js" defer><\/script>/;
  assert.match(html, own, `${path}: the one script`);
  const others = html.replace(own, "").replace(/<script src="\/static\/playground\.[0-9a-f]{12}\.js" defer>/, "");
  assert.doesNotMatch(others, /<script|\sstyle=|\son[a-z]+=/i, `${path}: nothing inline`);
  // In the API reference, and in excerpts of it, it is a word of the comments.
  const slip = /reference|search/.test(path) ? /\[object/ : /undefined|\[object/;
  assert.doesNotMatch(html.replace(/<code[\s\S]*?<\/code>/g, ""), slip, path);
  assert.doesNotMatch(html, /="[^"]*\bNaN\b[^"]*"/, path);
  for (const [image] of html.matchAll(/<img\b[^>]*>/g)) assert.match(image, /\balt="/, path);
  for (const [field] of html.matchAll(/<(?:input|select)\b[^>]*>/g)) {
    const labelled = /aria-label=/.test(field) || html.slice(0, html.indexOf(field)).lastIndexOf("<label") >
        html.slice(0, html.indexOf(field)).lastIndexOf("</label");
    assert.ok(labelled, `${path}: ${field} has a label`);
  }
  const ids = [...html.matchAll(/\sid="([^"]+)"/g)].map((m) => m[1]);
  assert.equal(new Set(ids).size, ids.length, `${path}: ids are unique`);
  let level = 1;
  for (const [, next] of html.replace(/<aside[\s\S]*?<\/aside>|<nav[\s\S]*?<\/nav>/g, "").matchAll(/<h([1-6])/g)) {
    assert.ok(Number(next) <= level + 1, `${path}: h${next} after h${level}`);
    level = Number(next);
  }
  const { length } = new TextEncoder().encode(html);
  // The longest page is the one of all commands, which grows with them.
  assert.ok(length < 160_000, `${path} has ${length} bytes`);
}

Deno.test("the index record has the specification's shape and every address in it resolves", () =>
  withRegistry(async (r) => {
    const record = await r.get<IndexRecord>("/data/docs.json");
    assert.deepEqual(Object.keys(record), ["schemaVersion", "canonicalUrl", "pages"]);
    assert.equal(record.schemaVersion, 1);
    assert.equal(record.canonicalUrl, `${r.url}/`);
    const sections = new Set(record.pages.map((p) => p.section));
    assert.deepEqual([...sections].sort(), ["Canary channel", "Nightly channel", "Official v0.1.0"]);
    assert.deepEqual(record.pages.map((p) => p.path), record.pages.map((p) => p.path).sort());
    const corpus = await text(r, "/llms-full.txt");
    assert.ok(corpus.startsWith(`Pages: ${record.pages.length}\n`));
    for (const page of record.pages) {
      assert.deepEqual(Object.keys(page), ["path", "title", "description", "section", "url", "markdown", "headings"]);
      const html = await text(r, page.url);
      if (!/registry-api/.test(page.path)) checkPage(html, page.path);
      for (const heading of page.headings) assert.equal(typeof heading, "string");
      const raw = await fetch(page.markdown);
      assert.equal(raw.headers.get("content-type"), "text/markdown; charset=utf-8");
      const source = await raw.text();
      assert.ok(source.startsWith("# "), page.path);
      assert.ok(corpus.includes(source.trimEnd()), `${page.path} is part of the corpus`);
      const beside = page.url.endsWith("/") ? `${page.url}index.md` : `${page.url}.md`;
      assert.equal(await (await fetch(beside)).text(), source);
    }
    for (const name of ["index", "getting-started", "configuration"]) {
      for (const base of ["/", "/nightly/", "/v0.1.0/"]) await text(r, base + (name === "index" ? "" : name));
    }
    const nightly = await r.get<IndexRecord>("/nightly/data/docs.json");
    assert.ok(nightly.pages.every((p) => p.section === "Nightly channel"));
  }));

Deno.test("channels say which they are, and missing pages say where they exist", () =>
  withRegistry(async (r) => {
    assert.match(await text(r, "/nightly/configuration"), /class="badge">nightly</);
    assert.match(
      await text(r, "/nightly/configuration"),
      /class="banner">This page is about the nightly channel\. <a href="\/v0\.1\.0\/configuration">/,
    );
    assert.match(await text(r, "/configuration"), /<link rel="canonical" href="[^"]*\/v0\.1\.0\/configuration">/);
    for (const path of ["/configuration", "/v0.1.0/configuration"]) {
      assert.doesNotMatch(await text(r, path), /class="banner"/, `${path} is the default or the newest release`);
    }
    await r.database.run("DELETE FROM documents WHERE channel = 'nightly' AND path = 'lockfile.md'");
    const missing = await text(r, "/v9.9.9/lockfile", 404);
    assert.match(missing, /other channels/);
    checkPage(missing, "404");
    const redirect = await fetch(`${r.url}/nightly`, { redirect: "manual" });
    assert.equal(redirect.status, 308);
    assert.equal(redirect.headers.get("location"), "/nightly/");
    for (const [from, to] of [["/nightly/index", "/nightly/"], ["/index", "/"]]) {
      const moved = await fetch(r.url + from, { redirect: "manual" });
      assert.deepEqual([moved.status, moved.headers.get("location")], [308, to], from);
      await moved.body?.cancel();
    }
  }));

/** Excerpts of the results of a search. */
function excerptsOf(html: string): string[] {
  return [...html.matchAll(/<li>\s*<h3>[\s\S]*?<\/h3>\s*<p>([\s\S]*?)<\/p>/g)].map((m) => m[1]);
}

Deno.test("one search finds documentation, the API reference and plugins, with clean excerpts", () =>
  withRegistry(async (r) => {
    const { token } = await r.author("acme", ["github.com/acme"]);
    await r.publish(token, [{ ...codecDefinition("2.0.1"), description: "Encodes memory" }]);
    const memory = await text(r, "/search?q=memory");
    checkPage(memory, "search");
    assert.match(memory, /sections and 1 plugin found/);
    assert.match(memory, /<a href="\/plugins\/github\.com:acme:codec">/);
    assert.match(await text(r, "/search?q=codec"), /0 sections and 1 plugin|1 plugin found/);
    const symbol = await text(r, "/search?q=instantiateAsync");
    assert.match(symbol, /href="\/reference\/Module#module-instantiateasync"/);
    for (const query of ["memory", "authority", "lockfile", "the", "registry", "--dir", "wasm"]) {
      for (const excerpt of excerptsOf(await text(r, `/search?q=${query}`))) {
        assert.doesNotMatch(excerpt, /```|^\||\|[ -]*\||\*\*|\]\(|:--|&lt;\/?code/, `${query}: ${excerpt}`);
        assert.ok(excerpt.length < 400, excerpt);
      }
    }
  }));

Deno.test("pages carry cards for other sites, and links to the repository where that is known", async () => {
  await withRegistry(async (r) => {
    const page = await text(r, "/lockfile");
    const tag = (name: string): string | undefined =>
      new RegExp(`<meta property="${name}" content="([^"]*)">`).exec(page)?.[1];
    assert.match(tag("og:title")!, /^The lockfile/);
    assert.ok(tag("og:description")!.length > 20);
    assert.equal(tag("og:url"), `${r.url}/v0.1.0/lockfile`);
    const card = await fetch(tag("og:image")!);
    assert.equal(card.headers.get("content-type"), "image/png");
    assert.equal((await card.arrayBuffer()).byteLength > 1000, true);
    assert.doesNotMatch(page, /Edit this page|>Repository</);
  });
  const repositoryUrl = "https://git.example/waft";
  await withRegistry(async (r) => {
    const page = await text(r, "/lockfile");
    assert.match(page, /<a href="https:\/\/git\.example\/waft\/edit\/main\/docs\/lockfile\.md">Edit this page<\/a>/);
    assert.match(page, /<a href="https:\/\/git\.example\/waft">Repository<\/a>/);
    for (const path of ["/commands", "/reference", "/v0.1.0/lockfile"]) {
      assert.doesNotMatch(await text(r, path), /Edit this page/, `${path} has no source to edit`);
    }
    for (const [path, revision] of [["/reference/Engine", "main"], ["/v0.1.0/reference/Engine", "v0.1.0"]]) {
      const link = new RegExp(`<a href="${repositoryUrl}/blob/${revision}/engine/api/engine\\.ts#L[0-9]+">Source</a>`);
      assert.match(await text(r, path), link);
    }
  }, { settings: { repositoryUrl } });
});

Deno.test("headings link to themselves, and new authority is marked as a warning", () =>
  withRegistry(async (r) => {
    assert.match(
      await text(r, "/lockfile"),
      /<h2 id="strict-reading"><a class="anchor" href="#strict-reading">Strict reading<\/a><\/h2>/,
    );
    const { token } = await r.author("acme", ["github.com/acme"]);
    const before = kvDefinition("1.2.3");
    const random = { name: "random", mode: "required" as const, reason: "Makes keys." };
    await r.publish(token, [codecDefinition("2.0.1")]);
    await r.publish(token, [before]);
    await r.publish(token, [{ ...kvDefinition("1.3.0"), authorities: [...before.authorities, random] }]);
    const more = await text(r, "/plugins/github.com:acme:kv/compare/1.2.3...1.3.0");
    assert.match(more, /<li class="grown"><strong>added<\/strong>[\s\S]*random[\s\S]*new authority<\/span>/);
    const less = await text(r, "/plugins/github.com:acme:kv/compare/1.3.0...1.2.3");
    assert.doesNotMatch(less, /class="grown"/);
  }));

Deno.test("a page is rendered once while its source stays the same", () => {
  const sources = (lockfile: string): ReadonlyMap<string, { path: string; source: string }[]> =>
    new Map([["canary", [{ path: "index.md", source: "# Waft\n\nText." }, { path: "lockfile.md", source: lockfile }]]]);
  const first = new DocumentSite("https://waft.sh", sources("# Lockfile\n\nOld."));
  const second = new DocumentSite("https://waft.sh", sources("# Lockfile\n\nNew."), first);
  assert.equal(second.page("/"), first.page("/"));
  assert.match(second.page("/lockfile")!.html, /New\./);
});

Deno.test("the playground's compiler may compile WebAssembly, its page may not; every example is in the page", () =>
  withRegistry(async (r) => {
    const html = await text(r, "/playground");
    checkPage(html, "playground");
    for (const { name } of EXAMPLES) assert.match(html, new RegExp(`>${name}</option>`));
    const policies = await Promise.all(["/playground", "/playground/compiler.js"].map(async (path) => {
      const answer = await fetch(r.url + path);
      await answer.body?.cancel();
      return answer.headers.get("content-security-policy")!;
    }));
    assert.deepEqual(policies.map((policy) => policy.includes("wasm-unsafe-eval")), [false, true]);
    assert.match(policies[1], /^default-src 'none'/);
  }));

Deno.test("search ranks by relevance, and finds words by stem, beginning and with a typing error", () => {
  const page = (title: string, text: string) => ({ path: `${title}.md`, source: `# ${title}\n\n${text}\n` });
  const site = new DocumentSite(
    "https://waft.sh",
    new Map([["canary", [
      page("Streams", "Output can be captured: stdout goes to a function.\n\n## Capturing\n\nThe rest of stdout."),
      page("Sandboxes", "Runs untrusted packages, in the language JavaScript or others."),
      page("Packages", "Each of the packages is signed. JavaScript is not needed."),
      page("Limits", "Deadlines of calls."),
    ]]]),
  );
  const found = (query: string) =>
    site.search(site.channels[0], query).map(({ page, heading }) => `${page.title}: ${heading?.text}`);
  assert.equal(found("captured stdout")[0], "Streams: Capturing", "a heading counts most");
  assert.equal(found("sandbox untrusted javascript")[0], "Sandboxes: Sandboxes", "all words come before some");
  assert.ok(found("sandbox untrusted javascript").includes("Packages: Packages"), "some words are found, too");
  assert.deepEqual(found("deadl"), ["Limits: Limits"], "a beginning");
  assert.deepEqual(found("deadlnies"), ["Limits: Limits"], "a typing error");
  assert.deepEqual(found("packages")[0], "Packages: Packages");
  assert.deepEqual([found("xylophone"), found("?!"), found("")], [[], [], []]);
});

Deno.test("the first page says why, with figures that lead to their measurements; /docs leads to the first steps", () =>
  withRegistry(async (r) => {
    const home = await text(r, "/");
    assert.match(home, /<code>npm install @waft\/engine<\/code>/);
    const figures = [...home.matchAll(/<li><strong>[0-9.]+ [×%]<\/strong> <a href="(\/performance)#([a-z-]+)">/g)];
    assert.equal(figures.length, 3);
    const measured = await text(r, "/performance");
    for (const [, , id] of figures) assert.match(measured, new RegExp(`<h2 id="${id}">`));
    for (
      const [from, to] of [
        ["/docs", "/getting-started"],
        ["/docs/", "/getting-started"],
        ["/docs/wasi", "/wasi"],
        ["/docs/wasi.md", "/wasi"],
      ]
    ) {
      const moved = await fetch(r.url + from, { redirect: "manual" });
      assert.deepEqual([moved.status, moved.headers.get("location")], [308, to], from);
      await moved.body?.cancel();
    }
    await text(r, "/docs/nothing", 404);
  }));

Deno.test("search finds sections and shows the query escaped", () =>
  withRegistry(async (r) => {
    const found = await text(r, "/search?q=strict+reading");
    assert.match(found, /href="\/lockfile#strict-reading"/);
    checkPage(found, "search");
    const hostile = await text(r, `/search?q=${encodeURIComponent('"><script>alert(1)</script>')}`);
    checkPage(hostile, "hostile search");
    await text(r, `/search?q=${"x".repeat(101)}`, 400);
    await text(r, "/search?q=a&other=1", 400);
  }));

Deno.test("plugin pages: list, filters, page, versions, contract, comparison", () =>
  withRegistry(async (r) => {
    const { token } = await r.author("acme", ["github.com/acme"]);
    assert.equal((await r.publish(token, [codecDefinition("2.0.1")])).status, 201);
    const before = kvDefinition("1.2.3");
    const after = {
      ...kvDefinition("1.3.0"),
      authorities: [
        ...before.authorities.filter((a) => a.name !== "clock.wall").map((a) =>
          a.name === "fs.write" ? { ...a, scope: { roots: ["/"] } } : a
        ),
        { name: "random", mode: "required" as const, reason: "Makes <b>keys</b>." },
      ],
    };
    assert.equal((await r.publish(token, [before], { "README.md": "# KV\n\nStores things." })).status, 201);
    assert.equal((await r.publish(token, [after], { "README.md": "# KV\n\nStores things." })).status, 201);
    assert.equal(
      (await r.publish(token, [definition("github.com/acme/none", "1.0.0", { stability: "deprecated" })])).status,
      201,
    );

    const list = await text(r, "/plugins?sort=name");
    checkPage(list, "/plugins");
    assert.match(list, /3 plugins/);
    assert.match(await text(r, "/plugins?authority=random"), /1 plugin\b/);
    assert.match(
      await text(r, "/plugins?q=&category=&authority=&kind=&stability=deprecated&platform=&sort=name"),
      /1 plugin\b/,
    );
    const page = await text(r, "/plugins/github.com:acme:kv");
    checkPage(page, "/plugins/kv");
    assert.match(page, /<code>fs\.write<\/code>/);
    assert.match(page, /Makes &lt;b&gt;keys&lt;\/b&gt;\./);
    assert.match(page, new RegExp(`<code>waft add github\\.com/acme/kv --registry ${r.url}</code>`));
    assert.match(
      await text(r, "/plugins/github.com:acme:kv/v/1.2.3"),
      /<code>waft add github\.com\/acme\/kv@1\.2\.3 --registry /,
    );
    assert.match(page, /Stores things\./);
    checkPage(await text(r, "/plugins/github.com:acme:kv/v/1.2.3"), "version");
    checkPage(await text(r, "/plugins/github.com:acme:none"), "deprecated");
    const contract = await text(r, "/contracts/github.com:acme:contracts:kv@1");
    checkPage(contract, "contract");
    assert.match(contract, /get: \(i32, i32, i32\)/);
    const compare = await text(r, "/plugins/github.com:acme:kv/compare/1.2.3...1.3.0");
    checkPage(compare, "compare");
    assert.match(compare, /asks for more/);
    const row = (path: string): string =>
      new RegExp(`<code>${path}</code></th>\\s*<td data-label="Change">([a-z]*)</td>`).exec(compare)![1];
    assert.equal(row("README\\.md"), "same");
    assert.equal(row("waft\\.json"), "changed", "of the same size, but other bytes");
    assert.deepEqual([fileChange(undefined, { path: "a", size: 1 }), fileChange({ path: "a", size: 1 }, undefined)], [
      "added",
      "removed",
    ]);
    assert.equal(fileChange({ path: "a", size: 1 }, { path: "a", size: 1 }), "", "unknown without digests");
    const differences = compareReleases(
      (await findRelease(r.database, KV, "1.2.3"))!,
      (await findRelease(r.database, KV, "1.3.0"))!,
    );
    assert.deepEqual(differences.map((d) => [d.subject, d.change, d.text.split(" ")[0]]), [
      ["authority", "removed", "clock.wall"],
      ["authority", "widened", "fs.write:"],
      ["authority", "added", "random"],
    ]);
    assert.match(await text(r, "/plugins/github.com:acme:kv/compare/1.3.0...1.3.0"), /asks for no new authority/);
    await text(r, "/plugins/github.com:acme:kv/compare/1.3.0...9.9.9", 404);
    await text(r, "/plugins/github.com:acme:kv/compare/x", 400);
    await text(r, "/plugins/github.com:acme:unknown", 404);
    const redirect = await fetch(`${r.url}/plugins/github.com/acme/kv`, { redirect: "manual" });
    assert.equal(redirect.headers.get("location"), "/plugins/github.com:acme:kv");
    assert.match(await text(r, "/sitemap.xml"), /plugins\/github\.com:acme:kv/);
    assert.ok((await text(r, "/plugins/github.com:acme:kv")).includes(CODEC));
  }));

Deno.test("changes: a page and a feed, with hostile text escaped", () =>
  withRegistry(async (r) => {
    assert.match(await text(r, "/changes"), /Nothing has been published/);
    assert.match(await text(r, "/changes.atom"), /<updated>1970-01-01T00:00:00\.000Z<\/updated>/);
    const { token } = await r.author("acme", ["github.com/acme"]);
    for (let i = 0; i < 51; i++) {
      r.clock.at += 600_000;
      assert.equal((await r.publish(token, [codecDefinition(`2.0.${i}`)])).status, 201);
    }
    const yank = { reason: "\u0001</summary><b>&\u202e", severity: "security" };
    r.clock.at += 1000;
    await r.get("/api/packages/github.com:acme:codec/versions/2.0.50/yank", r.json("POST", yank, token));

    const page = await text(r, "/changes");
    assert.match(
      page,
      /<span class="badge warn">yanked: security<\/span>\s*<\/div>\s*<p>\S*&lt;\/summary&gt;&lt;b&gt;&amp;/,
    );
    assert.equal([...page.matchAll(/href="\/plugins\/github\.com:acme:codec\/v\/2\.0\.\d+"/g)].length, 50);
    const older = /<a rel="next" href="([^"]+)">Older changes/.exec(page)![1]!.replaceAll("&amp;", "&");
    const rest = await text(r, older);
    assert.deepEqual([...rest.matchAll(/\/v\/([\d.]+)"/g)].map((m) => m[1]), ["2.0.1", "2.0.0"]);
    assert.doesNotMatch(rest, /Older changes/);

    const response = await fetch(`${r.url}/changes.atom`);
    const feed = await response.text();
    assert.equal([...feed.matchAll(/<entry>/g)].length, 50);
    assert.match(feed, /<id>[^<]+\/plugins\/github\.com:acme:codec\/v\/2\.0\.50#yanked<\/id>/);
    assert.match(feed, /\(security\): \S*&lt;\/summary&gt;&lt;b&gt;&amp;/);
    assert.match(page, /<link rel="alternate" type="application\/atom\+xml" href="\/changes\.atom">/);
    // deno-lint-ignore no-control-regex -- characters that XML does not allow
    assert.doesNotMatch(feed, /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u202e]/);
    assert.equal(new Set([...feed.matchAll(/<id>([^<]+)<\/id>/g)].map((m) => m[1])).size, 51);
  }));

Deno.test("schemas, style, robots, health and security headers", () =>
  withRegistry(async (r) => {
    for (const name of ["schema", "lock.schema", "catalog.schema"]) {
      const schema = await (await fetch(`${r.url}/schemas/v1/${name}.json`)).json() as { $id: string };
      assert.equal(schema.$id, `https://waft.sh/schemas/v1/${name}.json`);
    }
    await text(r, "/schemas/v1/other.json", 404);
    for (const command of Object.keys(OUTPUT_SCHEMAS)) {
      const path = `/schemas/v1/output/${command}.schema.json`;
      const schema = await (await fetch(r.url + path)).json() as { $id: string };
      assert.equal(schema.$id, `https://waft.sh${path}`);
    }
    for (const wrong of ["fly.schema.json", "__proto__.schema.json", "add.json"]) {
      await text(r, `/schemas/v1/output/${wrong}`, 404);
    }
    const home = await text(r, "/");
    const sheet = /href="(\/static\/site\.[0-9a-f]{12}\.css)"/.exec(home)![1];
    const style = await fetch(r.url + sheet);
    assert.equal(style.headers.get("cache-control"), "public, max-age=31536000, immutable");
    const css = await style.text();
    assert.match(css, /prefers-color-scheme: dark/);
    let depth = 0;
    for (const [brace] of css.matchAll(/[{}]/g)) {
      depth += brace === "{" ? 1 : -1;
      assert.ok(depth >= 0 && depth <= 2, "the style sheet's braces match");
    }
    assert.equal(depth, 0);
    assert.equal(await text(r, "/healthz"), "ok\n");
    assert.equal(await text(r, "/readyz"), "ready\n");
    assert.match(await text(r, "/robots.txt"), /Sitemap: /);
    const { headers } = await fetch(r.url);
    assert.match(headers.get("content-security-policy")!, /default-src 'none'; style-src 'self'; script-src 'self'; /);
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.ok(headers.has("ratelimit"));
    assert.match(headers.get("x-request-id")!, /^[0-9a-f]{16}$/);
    assert.equal(headers.get("cross-origin-resource-policy"), "same-origin");
    const open = await fetch(`${r.url}/api/keys`);
    assert.equal(open.headers.get("cross-origin-resource-policy"), "cross-origin");
    assert.equal(open.headers.get("access-control-allow-origin"), "*");
    await open.body?.cancel();
    const head = await fetch(r.url, { method: "HEAD" });
    assert.equal(head.status, 200);
  }));

Deno.test("metrics count requests by route, on a listener of their own", () =>
  withRegistry(async (r) => {
    await text(r, "/plugins");
    await text(r, "/plugins/github.com:acme:none", 404);
    assert.equal((await fetch(`${r.url}/metrics`)).status, 404);
    const metrics = await (await fetch(r.registry.metricsUrl!)).text();
    assert.match(metrics, /waft_registry_requests_total\{route="GET \/plugins",status="2xx"\} 1/);
    assert.match(metrics, /waft_registry_requests_total\{route="GET \/plugins\/:name",status="4xx"\} 1/);
    assert.match(metrics, /waft_registry_request_seconds_count\{route="GET \/plugins"\} 1/);
  }, { metricsPort: 0 }));
