/**
 * The lexer: kinds of tokens, their ends, comments, annotations, places, and adversarial texts.
 */
import assert from "node:assert/strict";
import { K } from "./keywords.ts";
import { readTokens } from "./lexer.ts";

const KIND_NAMES = [
  ...["END", "LEFT", "RIGHT", "KEYWORD", "ID", "STRING", "NAT", "INT", "FLOAT"],
  ...["ANNOTATION", "RESERVED", "ERROR"],
];

/** Kinds and texts of all tokens but the final two: `KEYWORD module`. */
function tokensOf(text: string | Uint8Array): string[] {
  const tokens = readTokens(text);
  const found: string[] = [];
  for (let i = 0; i < tokens.count - 2; i++) found.push(`${KIND_NAMES[tokens.kinds[i]]} ${tokens.textOf(i)}`);
  assert.equal(tokens.kinds[tokens.count - 1], tokens.kinds[tokens.count - 2]);
  if (tokens.problem !== "") found.push(`ERROR ${tokens.problem}`);
  return found;
}

/** The kind of a text that should be one token. */
function kindOf(text: string): string {
  const tokens = readTokens(text);
  assert.equal(tokens.count, 3, text);
  return KIND_NAMES[tokens.kinds[0]];
}

Deno.test("words, parentheses and strings are tokens", () => {
  assert.deepEqual(tokensOf('(module $m(func "a b"\t0))'), [
    ...["LEFT (", "KEYWORD module", "ID $m", "LEFT (", "KEYWORD func", 'STRING "a b"', "NAT 0", "RIGHT )", "RIGHT )"],
  ]);
});

Deno.test("numbers are natural, signed or floating-point, or no token at all", () => {
  const rows: [string, string[]][] = [
    ["NAT", ["0", "007", "1_000", "0x0", "0xaF_0"]],
    ["INT", ["-0", "+1", "-0x1f"]],
    [
      "FLOAT",
      [
        "1.",
        "1.5",
        "1e5",
        "1E+5",
        "-1.5e-5",
        "0x1.",
        "0x1.8p3",
        "0xAp-1",
        "inf",
        "-inf",
        "nan",
        "+nan:0x1_2",
        "1_0.0_1",
      ],
    ],
    [
      "RESERVED",
      [
        ...[
          "1_",
          "1__0",
          "0x",
          "0x_1",
          "0xg",
          "1.e",
          "1._5",
          "1.5_",
          ".5",
          "+",
          "-",
          "1e",
          "1e+",
          "0x1.5e5p",
          "0x1p1f",
        ],
        ...["+nan:0x", "-nan:1", "0drop", "-infinity", "Func", "@a", "0x1p0x1", "1e1.0"],
      ],
    ],
    ["KEYWORD", ["nan:0x", "infx", "nan:canonical", "nanx", "i32.const0", "offset=1"]],
  ];
  for (const [kind, texts] of rows) for (const text of texts) assert.equal(kindOf(text), kind, text);
});

Deno.test("a keyword's value is its opcode's id or its own number, −1 for other words", () => {
  const tokens = readTokens("i32.const module ref.eq select select(t) bla end");
  const values = Array.from(tokens.values.subarray(0, 5));
  assert.deepEqual(values.slice(0, 4), [K["i32.const"], K.module, K["ref.eq"], K.select]);
  // A row's variant name is not a keyword: this is `select`, `(`, `t`, `)`.
  assert.equal(values[4], K.select);
  assert.deepEqual(tokensOf("bla"), ["KEYWORD bla"]);
  assert.equal(readTokens("bla").values[0], -1);
});

Deno.test("one identifier is one symbol, quoted or escaped or not", () => {
  const tokens = readTokens('$a $"a" $"\\61" $"\\u{61}" $b');
  const [plain, ...others] = Array.from(tokens.values.subarray(0, 5));
  assert.deepEqual(others.slice(0, 3), [plain, plain, plain]);
  assert.notEqual(others[3], plain);
  assert.equal(tokens.symbols.text(plain), "a");
});

Deno.test("tokens that touch form one invalid token, but parentheses and comments separate them", () => {
  for (const text of ['"a""b"', '"a"x', '0"a"', '$l"a"', '$"l"0', 'data"a"', '$"a"$"b"']) {
    assert.deepEqual(tokensOf(text), [`RESERVED ${text}`]);
  }
  assert.deepEqual(tokensOf("nop(;c;)nop;;c"), ["KEYWORD nop", "KEYWORD nop"]);
  assert.deepEqual(tokensOf(",;["), ["RESERVED ,", "RESERVED ;", "RESERVED ["]);
  assert.deepEqual(tokensOf('$ $""'), ["RESERVED $", 'RESERVED $""']);
});

Deno.test("comments nest, and lines end at any newline", () => {
  assert.deepEqual(tokensOf("(; (; ;) ;; (; ;) ;)a"), ["KEYWORD a"]);
  assert.deepEqual(tokensOf(";; a\rb ;; c\nd"), ["KEYWORD b", "KEYWORD d"]);
  assert.deepEqual(tokensOf("a (; (; ;)"), ["KEYWORD a", "ERROR unclosed comment"]);
});

Deno.test("lexing stops at unreadable text, with a reason", () => {
  const rows: [string | Uint8Array, string][] = [
    ["a \x01", "illegal character"],
    ["a \x7f", "illegal character"],
    ["a é", "illegal character"],
    [Uint8Array.of(0x61, 0x20, 0xff), "malformed UTF-8 encoding"],
    [Uint8Array.of(0x61, 0x20, 0x22, 0xc0, 0x80, 0x22), "malformed UTF-8 encoding"],
    ['a "b', "unclosed string"],
    ['a "b\nc"', "unclosed string"],
    ['a "\x02"', "illegal character in a string"],
    ['a "\\x"', "illegal escape in a string"],
    ['a "\\4"', "illegal escape in a string"],
    ['a "\\u{d800}"', "illegal escape in a string"],
    ['a "\\u{110000}"', "illegal escape in a string"],
    ['a "\\u{1__0}"', "illegal escape in a string"],
    ['a "\\u{}"', "illegal escape in a string"],
    ['a $"b\n"', "empty identifier: its quoted name is not closed on the line"],
    ['a $"\\ff"', "malformed UTF-8 encoding in an identifier"],
    ["a (@", "empty annotation id"],
    ['a (@"")', "empty annotation id"],
    ["a (@x (", "unclosed annotation"],
    ['a (@x ")', "unclosed string"],
  ];
  for (const [text, problem] of rows) assert.deepEqual(tokensOf(text), ["KEYWORD a", `ERROR ${problem}`], String(text));
});

Deno.test("annotations are skipped unless waft reads them", () => {
  assert.deepEqual(tokensOf('(@a x (y ")" ; ) $ [ (@x) ;; )\n )b'), ["KEYWORD b"]);
  assert.deepEqual(tokensOf('(@name "x")'), ["ANNOTATION (@name", 'STRING "x"', "RIGHT )"]);
  assert.deepEqual(tokensOf('(@"custom" (@b))'), ['ANNOTATION (@"custom"', "RIGHT )"]);
});

Deno.test("places count lines by newline and columns by character", () => {
  const text = 'é "é"\r\nb\n\rc d';
  const tokens = readTokens(text.slice(2));
  const places = Array.from(tokens.starts.subarray(0, 4), (start) => tokens.placeOf(start));
  assert.deepEqual(places, [
    { line: 1, column: 1 },
    { line: 2, column: 1 },
    { line: 4, column: 1 },
    { line: 4, column: 3 },
  ]);
  const wide = readTokens('"é€😀" x');
  assert.deepEqual(wide.placeOf(wide.starts[1]), { line: 1, column: 7 });
});

Deno.test("a million nested comments, annotations or parentheses need no call stack", () => {
  const many = 1_000_000;
  assert.deepEqual(tokensOf("(;".repeat(many)), ["ERROR unclosed comment"]);
  assert.deepEqual(tokensOf("(;".repeat(many) + ";)".repeat(many)), []);
  assert.deepEqual(tokensOf("(@a ".repeat(many)), ["ERROR unclosed annotation"]);
  assert.equal(readTokens("(".repeat(many)).count, many + 2);
});

Deno.test("a lone surrogate is not text", () => {
  assert.throws(() => readTokens('\n é"\ud800"'), {
    message: /^malformed UTF-8 encoding/,
    place: { line: 2, column: 4 },
  });
});
