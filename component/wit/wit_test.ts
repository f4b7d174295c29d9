/**
 * WIT: parsing, resolution and printing, and the places of errors.
 */
import assert from "node:assert/strict";
import { WaftError } from "@waft/engine/internal/errors";
import { parseWit } from "./parse.ts";
import { describeWorld, printPackage } from "./print.ts";
import { compareVersions, type ResolveOptions, resolveWit } from "./resolve.ts";

function resolved(text: string, options: ResolveOptions = {}) {
  return resolveWit([parseWit({ file: "test.wit", text })], [], options);
}

function printed(text: string, options: ResolveOptions = {}): string {
  const { root, packages } = resolved(text, options);
  return printPackage(root, packages.values());
}

const EVERYTHING = `package a:b@1.0.0;

/// An interface.
interface i {
  /// A resource.
  resource r {
    constructor(a: u32);
    m: func(x: list<u8>) -> result<_, string>;
    s: static func() -> r;
    am: async func();
  }

  resource e;

  record rec {
    a: u32,
    /// A keyword as a name.
    %type: borrow<r>,
  }

  variant v {
    a,
    b(u32),
    c(tuple<u8, u8>),
  }

  flags f {
    x,
    y,
  }

  enum en {
    p,
    q,
  }

  type al = option<list<string>>;

  type al2 = al;

  type m = map<string, u32>;

  type fx = list<u8, 4>;

  type st = stream<u8>;

  type fu = future;

  f1: func(a: r, b: e) -> stream;
}

interface j {
  use i.{r, rec as rec2};

  ff: func(a: rec2) -> r;
}

interface k {
  @since(version = 1.0.0)
  g: func();
}

world w {
  use i.{al};
  import i;
  import k;
  import plain: func(a: string) -> u32;
  import inl: interface {
    use i.{r};

    g: func(a: r);
  }
  @external-id("lab//1")
  import lab: k;
  type t = u32;
  record wr {
    a: t,
  }
  resource wres {
    constructor();
  }

  export j;
  export run: async func() -> al;
  export oi: interface {
    h: func();
  }
}
`;

Deno.test("every construct prints as it is written", () => {
  assert.equal(printed(EVERYTHING), EVERYTHING);
});

Deno.test("comments nest, names may be keywords, and types may be defined after their use", () => {
  const text = printed(`package a:b; /* a /* b */ c */ interface %interface { // d
    type a = %list; record %list { x: u8 } }`);
  assert.match(text, /interface %interface \{\n {2}type a = %list;/);
});

Deno.test("gates leave items out", () => {
  const source = `package a:b@1.1.0; interface i {
    @unstable(feature = x) u: func();
    @since(version = 1.1.0) s: func();
    @since(version = 1.2.0) later: func();
    @since(version = 1.0.0) @deprecated(version = 1.1.0) old: func();
  }`;
  const names = (
    options: ResolveOptions,
  ) => [...resolved(source, options).root.interfaces.get("i")?.funcs.keys() ?? []];
  assert.deepEqual(names({}), ["s", "old"]);
  assert.deepEqual(names({ features: ["x"] }), ["u", "s", "old"]);
  assert.deepEqual(names({ features: ["y"] }), ["s", "old"]);
  assert.deepEqual(names({ allFeatures: true }), ["u", "s", "old"]);
});

Deno.test("a world imports the interfaces that its items use, unless it exports them for an export", () => {
  const source = (items: string) =>
    `package a:b; interface x { resource r; } interface y { use x.{r}; f: func() -> r; }
    interface z { use y.{r}; } world w { ${items} }`;
  const sides = (items: string) => {
    const world = resolved(source(items)).root.worlds.get("w");
    return [[...world?.imports.keys() ?? []], [...world?.exports.keys() ?? []]];
  };
  assert.deepEqual(sides("import z;"), [["a:b/x", "a:b/y", "a:b/z"], []]);
  assert.deepEqual(sides("export y;"), [["a:b/x"], ["a:b/y"]]);
  assert.deepEqual(sides("export x; export y;"), [[], ["a:b/x", "a:b/y"]]);
});

Deno.test("include unites worlds and renames plain names", () => {
  const source = `package a:b; interface store { get: func(); } world base { import cache: store; import store; }
    world other { import cache: func(); include base with { cache as mine } }`;
  const world = resolved(source).root.worlds.get("other");
  assert.deepEqual([...world?.imports.keys() ?? []], ["cache", "mine", "a:b/store"]);
  const item = world?.imports.get("mine");
  assert.equal(item?.kind === "interface" ? item.interface.name : undefined, "store");
});

Deno.test("packages nest in a file, and top-level use renames", () => {
  const { root, packages } = resolved(`package a:b; package c:d@0.2.0 { interface t { type x = u8; } }
    use c:d/t@0.2.0 as tt; world w { import tt; }`);
  assert.deepEqual([...packages.keys()], ["a:b", "c:d@0.2.0"]);
  assert.deepEqual([...root.worlds.get("w")?.imports.keys() ?? []], ["c:d/t@0.2.0"]);
  assert.match(JSON.stringify(describeWorld(root.worlds.get("w") ?? assert.fail())), /"interface":"c:d\/t@0\.2\.0"/);
});

/** Faults: source, the message, and line and column. */
const FAULTS: readonly (readonly [string, RegExp, number, number])[] = [
  ["package a:b", /expected `\{`, found the end of the file/, 1, 12],
  ["package a:b;\ninterface i { f: fun(); }", /expected `func`|expected a name|found `fun`/, 2, 18],
  ["package a:b; interface i { type t = t; }", /the type `t` refers to itself/, 1, 33],
  ["package a:b; interface i { record r { a: list<r> } }", /the type `r` refers to itself/, 1, 35],
  ["package a:b; interface i { f: func(a: nope); }", /the type `nope` is not defined/, 1, 39],
  ["package a:b; interface i { f: func(a: borrow<t>); type t = u8; }", /`t` is not a resource/, 1, 46],
  ["package a:b; interface i { use j.{x}; } interface j { use i.{y}; }", /depends on itself/, 1, 24],
  ["package a:b; interface i {} interface i {}", /the name `i` is already defined/, 1, 39],
  ["package a:b; interface i { f: func(); f: func(); }", /already defined/, 1, 39],
  ["package a:b; world w { import c:d/e; }", /the package c:d is not found/, 1, 35],
  ["package a:b; world w { import x; }", /the name `x` is not defined/, 1, 31],
  ["package a:b; world w { include v; } world v { include w; }", /includes itself/, 1, 20],
  ["package a:b; world v { import a: func(); } world w { import a: func(); include v; }", /rename it by `with`/, 1, 80],
  ["package a:b; interface I2x {}", /not in kebab case/, 1, 24],
  ["package a:b; interface list {}", /write the keyword as `%list`/, 1, 24],
  ["package a:b@1.x;", /is not a version/, 1, 13],
  ["package a:b; /* open", /this comment is not closed/, 1, 14],
  ["package a:b; interface i { @since(version = 1.0.0) @unstable(feature = x) f: func(); }", /cannot be both/, 1, 75],
  ["package a:b; interface i { type t = \u202e u8; }", /is not allowed/, 1, 37],
  [`package a:b; interface i { type t = ${"list<".repeat(200)}u8`, /nested too deeply/, 1, 537],
  ["interface i {}", /declares no package/, 1, 1],
];

for (const [source, message, line, column] of FAULTS) {
  Deno.test(`WIT fault at ${line}:${column}: ${message.source}`, () => {
    assert.throws(() => resolved(source), (error) => {
      assert.ok(error instanceof WaftError, String(error));
      assert.match(error.message, message);
      assert.deepEqual([error.place.line, error.place.column], [line, column]);
      assert.equal(error.place.file, "test.wit");
      return true;
    });
  });
}

Deno.test("versions compare by precedence", () => {
  const sorted = [
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.10",
    "1.2.0",
  ];
  for (let i = 1; i < sorted.length; i++) assert.ok(compareVersions(sorted[i - 1], sorted[i]) < 0, sorted[i]);
  assert.equal(compareVersions("1.0.0+a", "1.0.0+b"), 0);
});
