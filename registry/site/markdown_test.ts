/**
 * Markdown and markup from hostile hands.
 */
import assert from "node:assert/strict";
import { renderAuthorText, renderDocument } from "./markdown.ts";
import { escapeHtml, markup } from "./markup.ts";

Deno.test("renderAuthorText() keeps text and drops active content", () => {
  const cases: readonly (readonly [string, RegExp, RegExp])[] = [
    ["<script>x</script>", /&lt;script&gt;/, /<script/],
    ["[a](javascript:alert(1))", /\[a\]\(javascript/, /<a/],
    ["[a](JaVaScRiPt:alert(1))", /\[a\]/, /<a/],
    ["[a](&#106;avascript:alert(1))", /\[a\]/, /<a/],
    ["[a](java\nscript:x)", /a/, /href="java/],
    ["[a](data:text/html;base64,x)", /a/, /<a/],
    ["[a](/relative)", /a/, /<a/],
    ["[a](//evil.example)", /a/, /<a/],
    ["![a](https://evil.example/p.png)", /\[a\]<\/a>/, /<img/],
    ['!["><script>](https://e.example/)', /&quot;&gt;&lt;script&gt;/, /<script/],
    ['<https://a.example/"onx=1>', /a\.example/, /"onx/],
    ['```js" onclick=x\ncode\n```', /code/, /" onclick/],
    ["a \u202e b \u0007", /\\u\{202e\} b \\u\{7\}/, /[\u202e]/],
  ];
  for (const [text, must, never] of cases) {
    const html = renderAuthorText(text);
    assert.match(html, must, text);
    assert.doesNotMatch(html, never, text);
  }
  assert.equal(renderAuthorText("# A\n\n###### B"), "<h3>A</h3>\n<h6>B</h6>\n");
  const deep = renderAuthorText(`${"> ".repeat(5000)}x${"[".repeat(20_000)}`);
  assert.ok(deep.length < 1_000_000);
});

Deno.test("tables scroll, and align without inline styles", () => {
  const html = renderAuthorText('| a | b |\n| --- | ---: |\n| 1 | 2 style="text-align:left" |\n');
  assert.match(html, /^<div class="wide" tabindex="0"><table>/);
  assert.match(html, /<td class="to-right">2 style=&quot;text-align:left&quot;<\/td>/);
  assert.doesNotMatch(html, /style="/);
});

Deno.test("renderDocument() gives headings ids and resolves links", () => {
  const page = renderDocument("# T\n\n## A `b`\n\n## A b\n\n[x](other.md#y)", (l) => l.replace("other.md", "/other"));
  assert.deepEqual(page.headings, [
    { level: 1, text: "T", id: "t" },
    { level: 2, text: "A b", id: "a-b" },
    { level: 2, text: "A b", id: "a-b-2" },
  ]);
  assert.match(page.html, /<a href="\/other#y">x<\/a>/);
});

Deno.test("markup escapes every value that is not markup", () => {
  assert.equal(
    markup`<p title="${'"><b>'}">${["<i>", markup`<em>${"&"}</em>`]}</p>`.text,
    '<p title="&quot;&gt;&lt;b&gt;">&lt;i&gt;<em>&amp;</em></p>',
  );
  assert.equal(markup`${undefined}${null}${false}${0}`.text, "0");
  assert.equal(escapeHtml("a\r\nb\u202e"), "a b\\u{202e}");
});
