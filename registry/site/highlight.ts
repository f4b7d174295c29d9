/**
 * Syntax highlighting for pages: comments, strings, keywords, numbers.
 *
 * In: code and its language. Out: HTML in which every character of the code is escaped and only spans with known
 * classes are added; an unknown language stays plain. One regular expression for each language runs once over the code;
 * an unterminated token extends to the end, so the time is linear in the code. Colours are classes, since the site's
 * policy forbids inline styles.
 */
import { escapeText } from "./markup.ts";

/** The class of a token and its pattern; rules are tried in order. */
type Rule = readonly [kind: "comment" | "string" | "word" | "number" | "name", pattern: string];

const DOUBLE: Rule = ["string", String.raw`"(?:[^"\\\n]|\\.)*"?`];
const SINGLE: Rule = ["string", String.raw`'(?:[^'\\\n]|\\.)*'?`];
const NUMBER: Rule = ["number", String.raw`\b(?:0x[0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9]+)?n?)\b`];

const SCRIPT: readonly Rule[] = [
  ["comment", String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|(?![\s\S]))`],
  DOUBLE,
  SINGLE,
  ["string", "`(?:[^`\\\\]|\\\\[\\s\\S])*`?"],
  [
    "word",
    String
      .raw`\b(?:as|async|await|catch|class|const|else|export|extends|for|from|function|if|import|in|int|interface|let|` +
    String.raw`new|of|return|static|throw|try|type|typeof|using|void|while|char|unsigned|long|struct|include|define|` +
    String.raw`extern|fn|func|impl|mut|package|pub|use|var)\b`,
  ],
  NUMBER,
];
const SHELL: readonly Rule[] = [
  ["comment", String.raw`(?:^|(?<=\s))#[^\n]*`],
  DOUBLE,
  SINGLE,
  ["name", String.raw`(?<=\s)--?[A-Za-z][\w-]*`],
  ["word", String.raw`(?:^|(?<=[|;&] ))[a-z][\w.-]*`],
];
const RULES: { readonly [language: string]: readonly Rule[] } = {
  ts: SCRIPT,
  js: SCRIPT,
  c: SCRIPT,
  rust: SCRIPT,
  go: SCRIPT,
  zig: SCRIPT,
  sh: SHELL,
  json: [
    ["name", String.raw`"(?:[^"\\\n]|\\.)*"(?=\s*:)`],
    DOUBLE,
    ["word", String.raw`\b(?:true|false|null)\b`],
    NUMBER,
  ],
  wat: [
    ["comment", String.raw`;;[^\n]*|\(;[\s\S]*?(?:;\)|(?![\s\S]))`],
    DOUBLE,
    ["name", String.raw`\$[^\s()";]+`],
    ["word", String.raw`(?<=\()[a-z][a-z0-9_.]*`],
    NUMBER,
  ],
};

interface Language {
  readonly pattern: RegExp;
  readonly kinds: readonly Rule[0][];
}

const LANGUAGES = new Map<string, Language>(
  Object.entries(RULES).map(([name, rules]) => [name, {
    pattern: new RegExp(rules.map(([, p]) => `(${p})`).join("|"), "gm"),
    kinds: rules.map(([kind]) => kind),
  }]),
);

/** Code as HTML. `language` is the first word after a fence. */
export function highlight(code: string, language: string): string {
  const known = LANGUAGES.get(language);
  if (known === undefined) return escapeText(code);
  let html = "";
  let at = 0;
  for (const match of code.matchAll(known.pattern)) {
    const kind = known.kinds[match.slice(1).findIndex((group) => group !== undefined)];
    html += `${escapeText(code.slice(at, match.index))}<span class="t-${kind}">${escapeText(match[0])}</span>`;
    at = match.index + match[0].length;
  }
  return html + escapeText(code.slice(at));
}
