/**
 * The first page: reasons, figures with their measurements, installation, a sample of a terminal, and the rest of
 * docs/index.md.
 */
import { BASE_URL } from "../../../project/base/constants.ts";
import type { Services } from "../../services.ts";
import type { DocumentPage } from "../documents.ts";
import { layout } from "../layout.ts";
import { escapeText, type Markup, markup, trusted } from "../markup.ts";
import { headlines } from "../performance_page.ts";

/** Commands and their output; a test runs the first two. */
export const TERMINAL: readonly { readonly command: string; readonly output: string }[] = [
  { command: "waft run gcd.wat 1071 462", output: "21" },
  {
    command: "waft run --fuel 1000 endless.wat",
    output: "waft: endless.wat: trap: out of fuel (--fuel 1000)\n    at spin (1:44)",
  },
  {
    command: "waft add plugins.waft.example/kv",
    output: `  + caller.memory.read  required  Reads keys and values
  + fs.write  /store    optional  Keeps the store
Allow plugins.waft.example/kv?
  ○ everything that it requests  ○ select  ● no, change nothing`,
  },
];

/** Renders the first page of the canary channel. */
export function homePage(services: Services, page: DocumentPage): string {
  // The hero repeats the title and the first paragraph.
  const rest = page.html.replace(/<h1[^>]*>[\s\S]*?<\/h1>\s*<p>[\s\S]*?<\/p>/, "");
  return layout(services, {
    title: page.title,
    description: page.description,
    canonical: services.documents.canonicalPath(page),
    alternates: [{ type: "text/markdown", href: page.rawPath }],
    body: markup`
    <main id="main" class="home">
      <div class="hero">
        <div>
          <h1>WebAssembly that you can stop</h1>
          <p class="lead">
            waft runs packages, plugins and scripts that you did not write inside your Deno, Node or Bun process, at the
            speed of V8, and ends them at a deadline, at a limit of memory, or when their fuel is used up. It is one
            package in TypeScript that compiles to machine code: no build step, no Worker for each guest, no second
            process.
          </p>
          ${figureList()}
          <div class="code"><pre tabindex="0"><code>npm install @waft/engine</code></pre></div>
          <p class="actions">
            <a class="button" href="/getting-started">Get started</a>
            <a class="button quiet" href="/playground">Playground</a>
            <a class="button quiet" href="/untrusted">Untrusted code</a>
          </p>
          <p>The command installs by <code>curl -fsSL ${installerBase(services)}/install.sh | sh</code>. No release is
            published yet: <a href="/getting-started">install from a checkout</a> until then.</p>
        </div>
        <figure class="terminal">
          <figcaption>In a terminal</figcaption>
          <pre tabindex="0"><code>${
      TERMINAL.map(({ command, output }) => trusted(`<b>$ ${escapeText(command)}</b>\n${escapeText(output)}\n\n`))
    }</code></pre>
        </figure>
      </div>
      <div class="prose">${trusted(rest)}</div>
    </main>`,
  });
}

/** The figures, each with a link to its measurement. */
function figureList(): Markup | false {
  const figures = headlines();
  return figures.length > 0 && markup`
          <ul class="figures">${
    figures.map(({ value, meaning, href }) =>
      markup`<li><strong>${value}</strong> <a href="${href}">${meaning}</a></li>`
    )
  }</ul>`;
}

/** A registry without releases has no script of a release to offer. */
function installerBase({ settings }: Services): string {
  return settings.releases === undefined ? BASE_URL : settings.baseUrl;
}
