/**
 * The site in Chromium: search, plugins and their comparison, documentation, small screens, dark mode, keyboard
 * navigation. Every page has no console messages, no findings of axe, a small transfer size and no layout shifts.
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { codecDefinition, kvDefinition } from "../project/sample_plugins.ts";
import type { IndexPage } from "../../registry/site/documents.ts";
import { type TestRegistry, withRegistry } from "../registry/test_registry.ts";
import { accessibilityFindings, browserTest, layoutShifts, type OpenPage, openPage, VIEWS } from "./browser.ts";

const README = `# Key-value store

Stores *values*. | wide

| Function | Result that is rather long, as tables of authors tend to be when they explain what comes back |
| --- | ---: |
| \`get(key, key_length, to, room)\` | the value's size, or -4 |

\`\`\`ts
const a_very_long_line_of_code = await something.that({ does: "not fit", on: "a phone", of: "any kind", at: "all" });
\`\`\`
`;

async function withSite(run: (r: TestRegistry) => Promise<void>): Promise<void> {
  await withRegistry(async (r) => {
    const { token } = await r.author("acme", ["github.com/acme"]);
    const older = kvDefinition("1.2.3");
    const newer = {
      ...kvDefinition("1.3.0"),
      authorities: [...older.authorities, { name: "random", mode: "required" as const, reason: "Makes keys." }],
    };
    const files = { "README.md": README };
    for (const definitions of [[codecDefinition("2.0.1")], [older], [newer]]) {
      assert.equal((await r.publish(token, definitions, files)).status, 201);
    }
    const yank = r.json("POST", { reason: "Loses values", severity: "broken" }, token);
    await r.get("/api/packages/github.com:acme:kv/versions/1.2.3/yank", yank);
    await run(r);
  }, { settings: { rates: { read: 1e6, search: 1e6, installs: 1e6, write: 1e6, refused: 1e6 } } });
}

/** One page of each kind. */
const KINDS = [
  "/",
  "/getting-started",
  "/faq",
  "/comparison",
  "/commands",
  "/exploring",
  "/profiling",
  "/reference",
  "/reference/Module",
  "/performance",
  "/nightly/security",
  "/search?q=plugin",
  "/plugins",
  "/plugins?q=nothing+like+this",
  "/plugins/github.com:acme:kv",
  "/plugins/github.com:acme:kv/v/1.2.3",
  "/plugins/github.com:acme:kv/compare/1.2.3...1.3.0",
  "/contracts/github.com:acme:contracts:kv@1",
  "/changes",
  "/errors/version.unknown",
  "/nowhere",
];

function complaintsOf({ complaints, page }: OpenPage): string[] {
  // Chromium reports the status of a missing page on the console.
  return new URL(page.url()).pathname === "/nowhere"
    ? complaints.filter((c) => !c.includes("status of 404"))
    : complaints;
}

browserTest(
  "every kind of page is accessible, silent, small and stable; light on a desktop, dark on a phone",
  (browser) =>
    withSite(async (r) => {
      for (const [view, options] of Object.entries(VIEWS)) {
        const opened = await openPage(browser, r.url, options);
        const { page } = opened;
        for (const path of KINDS) {
          await opened.visit(r.url + path);
          const at = `${path} (${view})`;
          assert.deepEqual(await layoutShifts(page), [], `${at}: nothing moves`);
          const [width, room] = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]") as number[];
          assert.ok(width <= room, `${at}: ${width} pixels in ${room}`);
          assert.equal(await page.evaluate("document.scripts.length"), 1, `${at}: one script`);
          const ground = await page.evaluate("getComputedStyle(document.body).backgroundColor") as string;
          const light = Math.max(...ground.match(/\d+/g)!.map(Number));
          assert.equal(light < 64, view.endsWith("dark"), `${at}: the background is ${ground}`);
          assert.deepEqual(await accessibilityFindings(page), [], at);
          assert.deepEqual(complaintsOf(opened), [], at);
          assert.ok(opened.bytes() > 1000 && opened.bytes() < 100_000, `${at}: ${opened.bytes()} bytes`);
        }
        // The checks above detect a fault.
        await page.evaluate("document.querySelector('h1').insertAdjacentHTML('afterend', '<img src=data:>')");
        assert.match((await accessibilityFindings(page)).join(), /image-alt/);
        await page.evaluate("document.querySelector('h1').style.marginTop = '100px'");
        assert.notDeepEqual(await layoutShifts(page), []);
        await page.context().close();
      }
    }),
);

browserTest(
  "every page of the documentation is small and loads without complaints",
  (browser) =>
    withSite(async (r) => {
      const { pages } = await r.get<{ pages: IndexPage[] }>("/data/docs.json");
      // Of the pages of symbols, each tenth: they are written by one function.
      const canary = pages.filter((p) => p.section === "Canary channel")
        .filter(({ path }, k) => !path.includes("/") || k % 10 === 0);
      assert.ok(canary.length > 10);
      const opened = await openPage(browser, r.url, VIEWS["phone, dark"]);
      for (const { url, title } of canary) {
        await opened.visit(url);
        assert.equal(await opened.page.locator("h1").count(), 1, url);
        const [width, room] = await opened.page.evaluate(
          "[document.documentElement.scrollWidth, innerWidth]",
        ) as number[];
        assert.ok(width <= room, `${title}: ${width} pixels in ${room}`);
        assert.deepEqual(opened.complaints, [], url);
        assert.ok(opened.bytes() < 100_000, `${url}: ${opened.bytes()} bytes`);
      }
    }),
);

browserTest(
  "a visitor searches, finds a plugin, reads its requested permissions, compares versions",
  (browser) =>
    withSite(async (r) => {
      const { page, complaints } = await openPage(browser, r.url, VIEWS.desktop);
      await page.getByRole("link", { name: "Plugins", exact: true }).click();
      assert.equal(await page.getByRole("status").textContent(), "2 plugins");
      await page.getByRole("combobox", { name: "Authority" }).selectOption("fs.write");
      await page.getByRole("button", { name: "Show" }).click();
      assert.match((await page.getByRole("status").textContent())!, /^1 plugin /);
      assert.equal(
        await page.getByRole("combobox", { name: "Authority" }).inputValue(),
        "fs.write",
        "the choice is kept",
      );
      await page.getByRole("link", { name: "KV" }).click();
      await page.getByRole("row", { name: /fs\.write/ }).waitFor();
      assert.match((await page.getByRole("row", { name: /^1\.2\.3/ }).textContent())!, /yanked: broken/);
      await page.getByRole("link", { name: "compare with 1.2.3" }).click();
      assert.match((await page.getByRole("status").textContent())!, /asks for more: random/);
      assert.deepEqual(complaints, []);

      const searchbox = page.getByRole("searchbox", { name: "Search documentation and plugins" });
      await searchbox.fill("lockfile conflict");
      await searchbox.press("Enter");
      assert.match((await page.getByRole("status").textContent())!, /^[1-9][0-9]* sections? and 0 plugins found/);
      await page.getByRole("main").getByRole("link", { name: /lockfile/i }).first().click();
      assert.match(page.url(), /\/lockfile/);
    }),
);

browserTest(
  "the playground compiles while the text changes, runs functions, ends endless ones, and names faults",
  (browser) =>
    withSite(async (r) => {
      for (const [view, options] of Object.entries(VIEWS)) {
        const opened = await openPage(browser, `${r.url}/playground`, options);
        const { page } = opened;
        const state = page.locator("#state"), code = page.locator("#code"), result = page.locator("#result");
        await state.filter({ hasText: "Valid: " }).waitFor();
        assert.match((await code.textContent())!, /^L0:\n0000 {2}test ecx, ecx\n/);
        await page.locator("#stage").selectOption("arm64 optimizing");
        assert.match((await code.textContent())!, /\budiv\b/);
        await page.locator("#stage").selectOption("translated");
        assert.match((await code.textContent())!, /REM_U/);
        await page.getByRole("button", { name: "Run" }).click();
        await result.filter({ hasText: /^21$/ }).waitFor();
        await page.locator("#example").selectOption("A call of the host");
        await page.locator("#export option", { hasText: "count" }).waitFor({ state: "attached" });
        await page.getByRole("button", { name: "Run" }).click();
        await result.filter({ hasText: "console.log(4)" }).waitFor();
        const module = page.getByLabel("Text", { exact: true });
        await module.fill('(module (func (export "spin") (loop (br 0))))');
        await page.locator("#values").fill("");
        await page.locator("#export option", { hasText: "spin" }).waitFor({ state: "attached" });
        await page.getByRole("button", { name: "Run" }).click();
        await result.filter({ hasText: "Ended after 3 seconds" }).waitFor();
        await module.fill("(module (func (result i32) nop))");
        await state.filter({ hasText: "InvalidError" }).waitFor();
        assert.equal(await module.getAttribute("aria-invalid"), "true");
        assert.deepEqual(await layoutShifts(page), [], `${view}: nothing moves`);
        const [width, room] = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]") as number[];
        assert.ok(width <= room, `${view}: ${width} pixels in ${room}`);
        assert.deepEqual(await accessibilityFindings(page), [], view);
        assert.deepEqual(opened.complaints, [], view);
        await page.context().close();
      }
    }),
);

browserTest(
  "the key / goes to the search, except in fields; the keyboard reaches it",
  (browser) =>
    withSite(async (r) => {
      const { page, complaints } = await openPage(browser, `${r.url}/wasi`, VIEWS.desktop);
      await page.keyboard.press("/");
      const field = page.getByRole("searchbox", { name: "Search documentation and plugins" });
      assert.equal(await page.evaluate("document.activeElement.name"), "q");
      await page.keyboard.type("a/b");
      assert.equal(await field.inputValue(), "a/b");
      await field.fill("captured stdout");
      await page.keyboard.press("Enter");
      await page.getByRole("main").getByRole("link", { name: /capture the standard output/ }).first().click();
      assert.match(page.url(), /\/faq#/);
      assert.deepEqual(complaints, []);
    }),
);

browserTest("a click copies a whole code block as plain text", (browser) =>
  withSite(async (r) => {
    const { page, complaints } = await openPage(browser, `${r.url}/getting-started`, VIEWS.desktop);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const block = page.locator(".code").filter({ hasText: "(module" }).first();
    await block.hover();
    await block.getByRole("button", { name: "Copy" }).click();
    await block.getByRole("button", { name: "Copied" }).waitFor();
    const copied = await page.evaluate("navigator.clipboard.readText()") as string;
    assert.equal(copied, (await block.locator("pre").textContent())!.trimEnd());
    assert.match(copied, /^\(module\n/);
    await block.getByRole("button", { name: "Copy" }).waitFor();
    assert.deepEqual(complaints, []);
  }));

browserTest(
  "the performance page fits a phone: the result comes first, bars have readable labels",
  (browser) =>
    withSite(async (r) => {
      const { page } = await openPage(browser, `${r.url}/performance`, VIEWS["phone, dark"]);
      const first = page.getByRole("main").getByRole("paragraph").filter({ hasText: /\S/ }).nth(1);
      assert.match((await first.textContent())!, /times V8's time/);
      const size = await page.evaluate(
        "parseFloat(getComputedStyle(document.querySelector('.plot li span')).fontSize)",
      ) as number;
      assert.ok(size >= 13, `${size} pixels`);
      const [plot, table] = await page.evaluate(
        "['.plot', 'table'].map((s) => document.querySelector(s).getBoundingClientRect().top)",
      ) as number[];
      assert.ok(plot < table, "the plot comes before the table");
    }),
);

browserTest(
  "links lead through the documentation page by page and across channels",
  (browser) =>
    withSite(async (r) => {
      const { page, complaints } = await openPage(browser, `${r.url}/getting-started`, VIEWS.desktop);
      const seen = [await page.title()];
      for (let next = page.locator("a[rel=next]"); await next.count() > 0; next = page.locator("a[rel=next]")) {
        await Promise.all([page.waitForEvent("domcontentloaded"), next.click()]);
        seen.push(await page.title());
        assert.ok(seen.length < 100);
      }
      assert.equal(new Set(seen).size, seen.length, "no page occurs twice");
      const { pages } = await r.get<{ pages: IndexPage[] }>("/data/docs.json");
      assert.equal(
        seen.length,
        pages.filter((p) => p.section === "Canary channel" && !p.path.includes("/")).length - 1,
        "all but the first page, and those of symbols",
      );
      const navigation = page.getByRole("navigation", { name: "Documentation" });
      await navigation.getByRole("link", { name: "Security model" }).click();
      await navigation.getByRole("link", { name: "Nightly channel" }).click();
      assert.equal(new URL(page.url()).pathname, "/nightly/security", "the same page of the other channel");
      await page.getByRole("link", { name: /Read it for Official/ }).click();
      assert.match(new URL(page.url()).pathname, /^\/v[0-9.]+\/security$/);
      await page.getByRole("navigation", { name: "On this page" }).getByRole("link").last().click();
      assert.match(page.url(), /#./);
      assert.deepEqual(complaints, []);
      await page.context().close();

      const phone = await openPage(browser, `${r.url}/getting-started`, VIEWS["phone, dark"]);
      await phone.page.getByRole("link", { name: "All pages", exact: true }).tap();
      assert.ok(await phone.page.getByRole("link", { name: "Configuration" }).first().isVisible());
    }),
);

/** The focused element: its text or name, and whether the focus is visible. */
async function focused(page: Page): Promise<{ readonly text: string; readonly isVisible: boolean }> {
  return await page.evaluate(`(() => {
    const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
    return {
      text: (e.getAttribute("aria-label") ?? e.textContent).trim(),
      isVisible: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 && box.right > 0 && box.width > 0,
    };
  })()`) as { readonly text: string; readonly isVisible: boolean };
}

browserTest(
  "the keyboard reaches every control, and the focus is always visible",
  (browser) =>
    withSite(async (r) => {
      const { page } = await openPage(browser, `${r.url}/plugins/github.com:acme:kv`, VIEWS.desktop);
      const order: string[] = [];
      for (;;) {
        await page.keyboard.press("Tab");
        const { text, isVisible } = await focused(page);
        if (await page.evaluate("document.activeElement === document.body")) break;
        assert.ok(isVisible, `the focus on "${text}" is visible`);
        order.push(text);
        assert.ok(order.length < 200, "the focus order ends");
      }
      const total = await page.evaluate("document.querySelectorAll('a[href], button, input, select').length") as number;
      assert.ok(order.length >= total, `${order.length} stops for ${total} links and fields`);
      assert.deepEqual(order.slice(0, 7), [
        "Skip to content",
        "waft",
        "Docs",
        "API",
        "Plugins",
        "Playground",
        "Search documentation and plugins",
      ]);

      await page.goto(`${r.url}/getting-started`);
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.waitForURL(/#main$/);
      await page.keyboard.press("Tab");
      const inMain = await page.evaluate("document.querySelector('main').contains(document.activeElement)");
      assert.equal(inMain, true, "the skip link leads into the main part");

      await page.goto(r.url);
      for (let i = 0; i < 7; i++) await page.keyboard.press("Tab");
      await page.keyboard.type("grants");
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/search\?q=grants/);
      const first = page.getByRole("main").getByRole("listitem").getByRole("link").first();
      const title = await first.textContent();
      for (let i = 0; i < 40 && (await focused(page)).text !== title; i++) await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.waitForURL((url) => url.pathname !== "/search");
    }),
);
