/**
 * The page of `waft profile` in Chromium: light on a desktop and dark on a phone, without findings of axe or console
 * messages; keyboard, zoom, search. The profile is written here, so the shares are known. The page of counts, too.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Profile } from "../../engine/profile/profile.ts";
import { countsPageHtml } from "../../project/pages/counts_page.ts";
import { flamePageHtml } from "../../project/pages/flame_page.ts";
import { accessibilityFindings, browserTest, openPage, VIEWS } from "./browser.ts";

/** main → left (30 samples) and right (60, of which 20 in a host function), and 10 of its own. */
const PROFILE = new Profile({
  interval: 1,
  dropped: 0,
  frames: [
    { kind: "wasm", name: "main", funcIndex: 1, isInlined: false },
    { kind: "wasm", name: "left", funcIndex: 2, isInlined: true, file: "a.c", line: 3 },
    { kind: "wasm", name: "</script><img src=x onerror=alert(1)>", funcIndex: 3, isInlined: false },
    { kind: "host", name: '"env" "log"', isInlined: false },
    { kind: "wasm", name: "left", funcIndex: 2, isInlined: true, file: "a.c", line: 4 },
  ],
  stackFrames: [0, 1, 2, 3, 4],
  stackCallers: [-1, 0, 0, 2, 0],
  sampleStacks: [[0, 10], [1, 15], [2, 40], [3, 20], [4, 15]].flatMap(([stack, count]) => new Array(count).fill(stack)),
  sampleTimes: Array.from({ length: 100 }, (_, k) => k),
});

async function withPage(action: (url: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "flame-page-"));
  try {
    writeFileSync(join(folder, "p.html"), flamePageHtml(PROFILE, "m.wasm"));
    await action(pathToFileURL(join(folder, "p.html")).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

browserTest(
  "the flame graph is accessible and silent, light on a desktop, dark on a phone",
  (browser) =>
    withPage(async (url) => {
      for (const [view, options] of Object.entries(VIEWS)) {
        const { page, complaints } = await openPage(browser, url, options);
        await page.locator(".frame").first().waitFor();
        const [width, room] = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]") as number[];
        assert.ok(width! <= room!, `${view}: ${width} pixels in ${room}`);
        assert.deepEqual(await accessibilityFindings(page), [], view);
        assert.deepEqual(complaints, [], view);
        assert.equal(await page.locator("img").count(), 0);
        await page.context().close();
      }
    }),
);

browserTest("keys walk through the flame graph, zoom and search", (browser) =>
  withPage(async (url) => {
    const { page, complaints } = await openPage(browser, url, VIEWS.desktop!);
    const status = () => page.locator("#status").textContent();
    await page.locator(".frame").first().waitFor();
    assert.equal(await page.locator(".frame").count(), 5, "the lines of one function are one frame");
    await page.locator("[role=treeitem][tabindex='0']").focus();
    await page.keyboard.press("ArrowDown");
    assert.match((await status())!, /^main · 100\.0 % .* · 10\.0 % its own · 100 ms$/);
    await page.keyboard.press("ArrowDown");
    assert.match((await status())!, /^<\/script><img .* · 60\.0 % in it and its callees · 40\.0 % its own/);
    await page.keyboard.press("ArrowRight");
    assert.match((await status())!, /^left \(inlined\) · a\.c · 30\.0 %/);
    await page.keyboard.press("Enter");
    assert.equal(await page.locator(".frame").count(), 3, "the zoomed frame and those around it");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".frame").count(), 5);
    await page.keyboard.press("/");
    await page.keyboard.type("log");
    assert.equal(await page.locator(".frame.found").count(), 1);
    assert.deepEqual(await page.locator("#functions td").allTextContents(), [
      "20.0 %",
      "20.0 %",
      '"env" "log"',
      "host",
    ]);
    assert.deepEqual(complaints, []);
  }));

const COUNTS = [
  {
    title: "Functions",
    columns: ["calls", "function"],
    rows: [["1,234", "left"], ["5", "</td><img src=x onerror=alert(1)>"]],
  },
  { title: "Host functions", columns: ["calls", "ms", "function"], rows: [["7", "0.250", "env log"]] },
];

browserTest("the page of counts is accessible and silent, and its search hides rows", async (browser) => {
  const folder = mkdtempSync(join(tmpdir(), "counts-page-"));
  try {
    writeFileSync(join(folder, "p.html"), countsPageHtml(COUNTS, "m.wasm"));
    for (const [view, options] of Object.entries(VIEWS)) {
      const { page, complaints } = await openPage(browser, pathToFileURL(join(folder, "p.html")).href, options);
      const [width, room] = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]") as number[];
      assert.ok(width! <= room!, `${view}: ${width} pixels in ${room}`);
      assert.deepEqual(await accessibilityFindings(page), [], view);
      await page.keyboard.press("/");
      await page.keyboard.type("LOG");
      assert.deepEqual(await page.locator("tbody tr:visible").allInnerTexts(), ["7\t0.250\tenv log"]);
      assert.deepEqual(complaints, [], view);
      assert.equal(await page.locator("img").count(), 0);
      await page.context().close();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
