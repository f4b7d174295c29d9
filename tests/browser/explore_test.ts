/**
 * The page of `waft explore` in Chromium: light on a desktop and dark on a phone, without findings of axe or console
 * messages; keyboard, links between lines, the filter, a hostile name.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { accessibilityFindings, browserTest, openPage, VIEWS } from "./browser.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

/** Runs `action` with the address of the page of a module. */
async function withPage(text: string, action: (url: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "explore-page-"));
  try {
    writeFileSync(join(folder, "m.wat"), text);
    const { status, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), "explore", "m.wat"], {
      cwd: folder,
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    await action(pathToFileURL(join(folder, "m.html")).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const FILLERS = Array.from({ length: 700 }, (_, k) => `(func $filler_${k} (param i32) (drop (local.get 0)))`).join(
  "\n",
);
const MODULE = `(module
  (func $divide (param i32 i32) (result i32) (i32.div_u (local.get 0) (local.get 1)))
  (func (export "run") (param i32) (result i32) (i32.mul (call $divide (i32.const 9) (local.get 0)) (i32.const 5)))
  (func (@name "</script><img src=x onerror=alert(1)>") nop)
  ${FILLERS})`;

browserTest(
  "the page of explore is accessible and silent, light on a desktop, dark on a phone",
  (browser) =>
    withPage(MODULE, async (url) => {
      for (const [view, options] of Object.entries(VIEWS)) {
        const { page, complaints } = await openPage(browser, url, options);
        await page.locator(".line").first().waitFor();
        const [width, room] = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]") as number[];
        assert.ok(width <= room, `${view}: ${width} pixels in ${room}`);
        const ground = await page.evaluate("getComputedStyle(document.body).backgroundColor") as string;
        assert.equal(Math.max(...ground.match(/\d+/g)!.map(Number)) < 64, view.endsWith("dark"), ground);
        assert.deepEqual(await accessibilityFindings(page), [], view);
        await page.getByRole("button", { name: "Keys" }).click();
        await page.getByRole("dialog").waitFor();
        assert.deepEqual(await accessibilityFindings(page), [], `${view}: dialog`);
        assert.deepEqual(complaints, [], view);
        await page.context().close();
      }
    }),
);

browserTest(
  "keys select lines, which are linked in all panes, and change stages",
  (browser) =>
    withPage(MODULE, async (url) => {
      const { page, complaints } = await openPage(browser, url, VIEWS.desktop!);
      await page.locator(".line").first().waitFor();
      assert.equal(await page.getByRole("heading", { level: 2 }).first().textContent(), "$run", "the first export");
      const pane = (k: number) => page.locator(`#pane${k}`);
      await page.keyboard.press("1");
      for (let k = 0; k < 20; k++) {
        if (
          /^\s*i32\.mul/.test(
            await pane(1).locator("[aria-selected=true]").textContent({ timeout: 5000 }).catch(() => "") ?? "",
          )
        ) break;
        await page.keyboard.press("ArrowDown");
      }
      assert.match((await pane(2).locator(".linked").allTextContents()).join(), /MUL/);
      assert.match((await pane(3).locator(".linked").allTextContents()).join(), /lea|imul/);
      const shown = () => pane(2).getAttribute("aria-label");
      const last = await shown();
      await page.keyboard.press("2");
      await page.keyboard.press("[");
      assert.notEqual(await shown(), last);
      await page.keyboard.press("]");
      assert.equal(await shown(), last);
      await page.getByLabel("Stage of pane 3").selectOption("arm64 baseline");
      assert.match((await pane(3).allTextContents()).join(), /bl .*; \$divide/);
      await page.keyboard.press("Tab");
      assert.deepEqual(complaints, []);
    }),
);

browserTest(
  "the filter finds functions among many, and hostile names are text",
  (browser) =>
    withPage(MODULE, async (url) => {
      const { page, complaints } = await openPage(browser, url, VIEWS.desktop!);
      await page.locator(".line").first().waitFor();
      const rows = page.locator("#functions li");
      assert.equal(await rows.count(), 300);
      await page.getByRole("button", { name: "Show 300 more" }).click();
      assert.equal(await rows.count(), 600);
      await page.locator("h2").first().click();
      await page.keyboard.press("/");
      await page.keyboard.type("filler 69");
      assert.equal(await page.getByText("17 functions").count(), 1);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "$filler_69" }).waitFor();
      assert.match(page.url(), /#f\d+$/);
      await page.getByLabel("Filter functions").fill("img");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "$</script><img src=x onerror=alert(1)>" }).waitFor();
      assert.equal(await page.locator("img").count(), 0);
      assert.deepEqual(complaints, []);
    }),
);
