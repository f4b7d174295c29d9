/**
 * The work that requests cause: counted, not timed.
 *
 * Publishers choose READMEs, definitions and archives once; readers request pages repeatedly. These tests count the
 * work of a request in the registry's process: rendering, parsing, copying.
 */
import assert from "node:assert/strict";
import MarkdownIt from "markdown-it";
import { KeptLists } from "../../registry/kept_lists.ts";
import { encodeFrame, FrameReader } from "../../registry/publish/frames.ts";
import { renderStaleReadmes } from "../../registry/publish/readmes.ts";
import { escapeHtml } from "../../registry/site/markup.ts";
import type { Queries } from "../../registry/store/database.ts";
import { pluginIndex } from "../../registry/store/packages.ts";
import { CODEC, codecDefinition } from "../project/sample_plugins.ts";
import { type ProblemBody, type TestRegistry, withRegistry } from "./test_registry.ts";

const SEGMENT = CODEC.replaceAll("/", ":");
const PAGE = `/plugins/${SEGMENT}`;
const API = `/api/packages/${SEGMENT}`;

async function acme(r: TestRegistry): Promise<string> {
  return (await r.author("acme", ["github.com/acme"])).token;
}

async function page(r: TestRegistry): Promise<string> {
  return await (await fetch(r.url + PAGE)).text();
}

/** Runs `work` with a method of a prototype replaced. */
async function replacing<T extends object, K extends keyof T>(
  target: T,
  key: K,
  replacement: (original: T[K]) => T[K],
  work: () => Promise<void>,
): Promise<void> {
  const original = target[key];
  target[key] = replacement(original);
  try {
    await work();
  } finally {
    target[key] = original;
  }
}

Deno.test("the fields of an answer are sent without changes of an object Headers", () =>
  withRegistry(async (r) => {
    let changes = 0;
    await replacing(
      Headers.prototype,
      "set",
      (original) =>
        function (this: Headers, name, value) {
          changes++;
          return original.call(this, name, value);
        },
      async () => {
        for (const path of ["/healthz", "/api/packages", "/plugins", "/none"]) {
          const { headers, body } = await fetch(r.url + path);
          assert.match(headers.get("content-security-policy")!, /default-src 'none'/, path);
          assert.ok(headers.has("x-request-id") && headers.has("ratelimit"), path);
          await body?.cancel();
        }
      },
    );
    assert.equal(changes, 0);
  }));

Deno.test("a README is rendered in the check process, never by a request", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    let renders = 0;
    type Parse = (this: object, ...args: unknown[]) => never;
    await replacing(
      MarkdownIt.prototype as unknown as { parse: Parse },
      "parse",
      (original) =>
        function (...args) {
          renders++;
          return original.apply(this, args);
        },
      async () => {
        const readme = "| a | b |\n| --- | --- |\n" + "| *x* | y |\n".repeat(2000);
        assert.equal((await r.publish(token, [codecDefinition()], { "README.md": readme })).status, 201);
        for (let i = 0; i < 3; i++) {
          assert.match(await page(r), /<td><em>x<\/em><\/td>/);
          const { readme: shown } = await r.get<{ readme: { html: string } }>(API);
          assert.match(shown.html, /<td><em>x<\/em><\/td>/);
        }
      },
    );
    assert.equal(renders, 0);
  }));

Deno.test("a README whose HTML is too long is refused with its size", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    const { status, body } = await r.publish(token, [codecDefinition()], {
      "README.md": "| a | b |\n| --- | --- |\n" + "|x|y|\n".repeat(60_000),
    });
    assert.equal(status, 422);
    assert.match(
      (body as ProblemBody).errors[0].detail,
      /"README\.md" renders to \d+ bytes of HTML; at most 1048576 are accepted/,
    );
  }));

Deno.test("a README of an older registry is shown as text until it is rendered in the background", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    await r.publish(token, [codecDefinition()], { "README.md": "# Title\n\n<b>*x*</b>\n" });
    const forget = (): Promise<number> =>
      r.database.run("UPDATE releases SET readme_html = NULL, readme_renderer = NULL");
    assert.equal(await forget(), 1);
    assert.match(await page(r), /<pre tabindex="0"># Title\n\n&lt;b&gt;\*x\*&lt;\/b&gt;\n<\/pre>/);
    const { pool, settings } = r.registry.services;
    assert.equal(await renderStaleReadmes(r.database, pool, settings), 1);
    assert.match(await page(r), /<h3>Title<\/h3>\s*<p>&lt;b&gt;<em>x<\/em>&lt;\/b&gt;<\/p>/);
    assert.equal(await renderStaleReadmes(r.database, pool, settings), 0, "each is rendered once");
    await forget();
    assert.equal(await renderStaleReadmes(r.database, pool, { ...settings, readmeHtmlBytes: 10 }), 1);
    assert.match(await page(r), /<pre tabindex="0"># Title/, "HTML over the bound is not kept");
  }));

Deno.test("an index parses no more of a definition than the resolver needs", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    const property = { type: "string", description: "d".repeat(1000) };
    const configSchema = {
      type: "object",
      additionalProperties: false,
      properties: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`p${i}`, property])),
    };
    const definition = { ...codecDefinition(), configSchema } as unknown as ReturnType<typeof codecDefinition>;
    const { status, body } = await r.publish(token, [definition]);
    assert.equal(status, 201, JSON.stringify(body));
    let parsed = 0;
    await replacing(
      JSON,
      "parse",
      (original) => (text, ...more) => {
        parsed += text.length;
        return original(text, ...more) as unknown;
      },
      async () => void await (await fetch(`${r.url}/api/plugins/${CODEC.replaceAll("/", ":")}/index`)).text(),
    );
    assert.ok(parsed < 2000, `${parsed} characters`);
  }));

Deno.test("an index asks nothing again for each release", () =>
  withRegistry(async (r) => {
    await r.publish(await acme(r), [codecDefinition()]);
    const asked: string[] = [];
    const queries: Queries = {
      all(sql, ...values) {
        asked.push(sql);
        return r.database.all(sql, ...values);
      },
      run: () => assert.fail("reading changes nothing"),
    };
    assert.equal((await pluginIndex(queries, CODEC))!.releases[0].firstPublish, true);
    for (const sql of asked) {
      const values = Array<string>(sql.split("?").length - 1).fill("");
      const plan = await r.database.all(`EXPLAIN QUERY PLAN ${sql}`, ...values);
      assert.doesNotMatch(JSON.stringify(plan), /CORRELATED|SCAN/, sql);
    }
  }));

Deno.test("indexes and lists of versions are made once for each change, for single requests and for batches", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    await r.publish(token, [codecDefinition("1.0.0")]);
    const made = { indexes: 0, lists: 0 };
    const get = () => r.get<{ releases: { version: string; yanked?: object }[] }>(`/api/plugins/${SEGMENT}/index`);
    await replacing(
      r.database,
      "all",
      (original) =>
        function (this: typeof r.database, sql, ...values) {
          if (/FROM definitions d\s+JOIN releases/.test(sql)) made.indexes++;
          if (/FROM releases r LEFT JOIN yanks .* ORDER BY/s.test(sql)) made.lists++;
          return original.call(this, sql, ...values);
        },
      async () => {
        for (let k = 0; k < 3; k++) assert.equal((await get()).releases.length, 1);
        const batch = await r.get<{ indexes: unknown[] }>(
          "/api/plugins/index",
          r.json("POST", { ids: [CODEC, "github.com/acme/none"] }),
        );
        assert.deepEqual(batch.indexes, [await get(), null]);
        for (let k = 0; k < 2; k++) {
          assert.match(await page(r), /1\.0\.0/);
          assert.equal((await r.get<{ versions: number }>(API)).versions, 1);
          assert.equal((await r.get<{ versions: unknown[] }>(`${API}/versions`)).versions.length, 1);
        }
        assert.deepEqual(made, { indexes: 1, lists: 1 });
      },
    );
    await r.publish(token, [codecDefinition("1.1.0")]);
    assert.deepEqual((await get()).releases.map(({ version }) => version), ["1.1.0", "1.0.0"]);
    await r.get(`${API}/versions/1.1.0/yank`, r.json("POST", { reason: "broken", severity: "broken" }, token));
    assert.notEqual((await get()).releases[0].yanked, undefined);
    const { versions } = await r.get<{ versions: { yanked: unknown }[] }>(`${API}/versions`);
    assert.notEqual(versions[0].yanked, null);
  }));

Deno.test("requests that come together share one list", () =>
  withRegistry(async ({ database }) => {
    let made = 0;
    await replacing(
      database,
      "all",
      (original) =>
        function (this: typeof database, sql, ...values) {
          if (/FROM releases r LEFT JOIN yanks .* ORDER BY/s.test(sql)) made++;
          return original.call(this, sql, ...values);
        },
      async () => {
        const lists = new KeptLists(database);
        const found = await Promise.all(Array.from({ length: 20 }, () => lists.versions(CODEC)));
        assert.deepEqual(found, Array(20).fill([]));
      },
    );
    assert.equal(made, 1);
  }));

Deno.test("reading a message copies each byte at most twice, however small its chunks are", async () => {
  const body = new Uint8Array(1 << 20).map((_, i) => i);
  const bytes = encodeFrame({ kind: "result" }, body);
  const reader = new FrameReader(2 << 20);
  let copied = 0;
  const frames: unknown[] = [];
  type Set = (this: Uint8Array, from: ArrayLike<number>, at?: number) => void;
  await replacing(
    Uint8Array.prototype as unknown as { set: Set },
    "set",
    (original) =>
      function (from, at) {
        copied += from.length;
        original.call(this, from, at);
      },
    () => {
      for (let at = 0; at < bytes.length; at += 512) frames.push(...reader.push(bytes.subarray(at, at + 512)));
      return Promise.resolve();
    },
  );
  assert.deepEqual(frames, [{ header: { kind: "result" }, body }]);
  assert.ok(copied <= 2 * bytes.length, `${copied} of ${bytes.length}`);
});

Deno.test("messages are read whole, wherever the pipe cuts them", () => {
  const messages = [encodeFrame({ a: 1 }), encodeFrame("b", new Uint8Array([1, 2, 3])), encodeFrame(null)];
  const bytes = new Uint8Array(messages.flatMap((m) => [...m]));
  for (let size = 1; size <= bytes.length; size++) {
    const reader = new FrameReader(1000);
    const frames = [];
    for (let at = 0; at < bytes.length; at += size) frames.push(...reader.push(bytes.subarray(at, at + size)));
    assert.deepEqual(frames.map((f) => [f.header, [...f.body]]), [[{ a: 1 }, []], ["b", [1, 2, 3]], [null, []]]);
  }
  assert.throws(() => new FrameReader(10).push(encodeFrame("too long for that")), RangeError);
});

Deno.test("escaping text with long runs of spaces takes linear time", () => {
  const cost = (count: number): number => {
    const text = " ".repeat(count);
    const runs = Array.from({ length: 5 }, () => {
      const began = performance.now();
      escapeHtml(text);
      return performance.now() - began;
    });
    return Math.min(...runs);
  };
  cost(1000);
  // Linear: 16 times; quadratic: 256 times.
  assert.ok(cost(320_000) < 80 * Math.max(cost(20_000), 0.02));
  assert.equal(escapeHtml("a \r\n  b  c\n"), "a b  c ");
});
