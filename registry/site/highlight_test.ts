/**
 * The colours of code: nothing is lost or added but spans, hostile code stays text, long code takes little time.
 */
import assert from "node:assert/strict";
import { GROWTH, growthBetween } from "../../tests/support/linear_growth.ts";
import { highlight } from "./highlight.ts";

/** The code that a reader sees. */
function textOf(html: string): string {
  return html.replace(/<[^>]*>/g, "").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'").replaceAll("&amp;", "&");
}

const LANGUAGES = ["ts", "js", "c", "sh", "json", "wat", "none", ""];

Deno.test("code: each kind of token is found where it is", () => {
  const cases: readonly (readonly [string, string, string])[] = [
    [
      "ts",
      "const a = 1; // one",
      '<span class="t-word">const</span> a = <span class="t-number">1</span>; <span class="t-comment">// one</span>',
    ],
    ["ts", '"// no comment"', '<span class="t-string">&quot;// no comment&quot;</span>'],
    [
      "sh",
      "waft run a.wasm --fuel 9 # x",
      '<span class="t-word">waft</span> run a.wasm <span class="t-name">--fuel</span> 9 <span class="t-comment"># x</span>',
    ],
    ["sh", "echo a#b", '<span class="t-word">echo</span> a#b'],
    [
      "json",
      '{"a": "b", "c": true}',
      '{<span class="t-name">&quot;a&quot;</span>: <span class="t-string">&quot;b&quot;</span>, <span class="t-name">&quot;c&quot;</span>: <span class="t-word">true</span>}',
    ],
    [
      "wat",
      "(func $f) ;; x",
      '(<span class="t-word">func</span> <span class="t-name">$f</span>) <span class="t-comment">;; x</span>',
    ],
    ["none", "a < b", "a &lt; b"],
  ];
  for (const [language, code, html] of cases) assert.equal(highlight(code, language), html);
});

Deno.test("code: hostile code stays text in every language", () => {
  const hostile = [
    "<script>alert(1)</script>",
    '"<img src=x onerror=alert(1)>"',
    "// </span><b>",
    "/* </code></pre> */ '&amp;'",
    "`${'<i>'}` --<u> $<b> (;<s>;)",
    "\"open\n# <a>\n'open",
  ];
  for (const language of LANGUAGES) {
    for (const code of hostile) {
      const html = highlight(code, language);
      assert.equal(textOf(html), code);
      assert.doesNotMatch(html.replace(/<span class="t-[a-z]+">|<\/span>/g, ""), /[<>]/);
    }
  }
});

Deno.test("code: the time is linear in the code, up to a hundred thousand characters of anything", () => {
  const pieces = [
    '"',
    "'",
    "`",
    "\\",
    "/*",
    "(;",
    '\\"',
    "\\'",
    "\\`",
    "/*/",
    "(;)",
    '"a" ',
    "| ",
    "#",
    "--a",
    "$",
    "a",
    " ",
    "\n",
    "9",
  ];
  for (const piece of pieces) {
    for (const language of LANGUAGES) {
      const costOf = (characters: number) => () => {
        const code = piece.repeat(Math.floor(characters / piece.length));
        const start = performance.now();
        highlight(code, language);
        return performance.now() - start;
      };
      const growth = growthBetween(costOf(100_000 / GROWTH), costOf(100_000));
      assert.ok(growth.linear, `${JSON.stringify(piece)} in ${language}: ${JSON.stringify(growth)}`);
    }
  }
});
