/**
 * Headless Chromium for tests: finds the installed browser, opens pages, and records their messages, transfers and
 * layout shifts.
 *
 * Out: a browser, or the reason why none is available. Pages load with an empty cache.
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Chromium's executable, if there is one: CHROMIUM, or the distributions' paths. */
export const CHROMIUM: string | undefined = process.env.CHROMIUM ?? PLACES.find((path) => existsSync(path));

/** The viewports and colour schemes under test. */
export const VIEWS: { readonly [name: string]: BrowserContextOptions } = {
  "desktop": { viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  "phone, dark": { viewport: { width: 360, height: 740 }, colorScheme: "dark", isMobile: true, hasTouch: true },
};

/** An open page with its recorded events. */
export interface OpenPage {
  readonly page: Page;
  /** Console messages, page errors, failed requests, and requests to other sites. */
  readonly complaints: string[];
  /** Bytes that the last page transferred, headers included. */
  bytes(): number;
  /** Navigates to another page with an empty cache; resets the counts and the complaints. */
  visit(url: string): Promise<void>;
}

/** Registers one test in a browser; ignored with the reason if there is none. */
export function browserTest(name: string, run: (browser: Browser) => Promise<void>): void {
  Deno.test({
    name: `browser: ${name}${CHROMIUM === undefined ? " (ignored: no Chromium; set CHROMIUM or install it)" : ""}`,
    ignore: CHROMIUM === undefined,
    // The client keeps timers and pipes open until the process ends.
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      const browser = await chromium.launch({ executablePath: CHROMIUM!, args: ["--no-sandbox"] });
      try {
        await run(browser);
      } finally {
        await browser.close();
      }
    },
  });
}

/** Opens an address in a new context, without a cache. */
export async function openPage(browser: Browser, url: string, view: BrowserContextOptions): Promise<OpenPage> {
  const context = await browser.newContext(view);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const complaints: string[] = [];
  const { origin } = new URL(url);
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("requestfailed", (request) => {
    // Navigation aborts the page's pending requests.
    if (request.failure()?.errorText !== "net::ERR_ABORTED") complaints.push(`failed: ${request.url()}`);
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) complaints.push(`leaves the site: ${request.url()}`);
  });
  let bytes = 0;
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  session.on("Network.loadingFinished", ({ encodedDataLength }) => bytes += encodedDataLength);
  const visit = async (to: string): Promise<void> => {
    bytes = 0;
    complaints.length = 0;
    await page.goto(to, { waitUntil: "load" });
  };
  await visit(url);
  return { page, complaints, visit, bytes: () => bytes };
}

/**
 * The layout shifts since the page began to load that a reader could see: each with its elements and its score, the
 * share of the screen that moved times the share by which it moved. Scores below 0.0001 are left out: on a busy machine
 * Chromium reports moves of less than a pixel.
 */
export async function layoutShifts(page: Page): Promise<string[]> {
  return await page.evaluate(`new Promise((done) => {
    const shifts = [];
    new PerformanceObserver((list) => {
      for (const { value, sources } of list.getEntries()) {
        if (value >= 0.0001) shifts.push(value + " " + sources.map((s) => s.node?.nodeName ?? "?").join(" "));
      }
    }).observe({ type: "layout-shift", buffered: true });
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(shifts), 50)));
  })`) as string[];
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The findings of axe: rule, element, message. All rules are on, best practices included. */
export async function accessibilityFindings(page: Page): Promise<string[]> {
  // Not a script element: the site's content security policy refuses it, as it should.
  await page.evaluate(`${AXE}; undefined`);
  return await page.evaluate(`axe.run(document, {
    rules: { "target-size": { enabled: true }, "color-contrast-enhanced": { enabled: false } },
  }).then(({ violations }) => violations.flatMap((v) => v.nodes.map((n) =>
    v.id + " " + n.target.join(" ") + ": " + n.failureSummary.replace(/\\s+/g, " ").slice(0, 300))))`) as string[];
}
