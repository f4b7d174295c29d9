/**
 * Templates of `waft init` by language. In: a name. Out: the files of a project that builds, runs and tests its program
 * with one command each. Invariant: every file is text, and nothing is fetched before such a command.
 */
import { VERSION } from "../../base/version_string.ts";

/** A template. */
export interface Template {
  readonly name: string;
  readonly about: string;
  /** The files besides waft.json, by their paths; `id` is a name for packages. */
  readonly files: (id: string) => Readonly<Record<string, string>>;
  /** The commands that build, run and test the program. */
  readonly commands: readonly string[];
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
const WAFT = `^${VERSION}`;

/** The templates, in the order in which they are offered. */
export const TEMPLATES: readonly Template[] = [
  {
    name: "typescript",
    about: "a host program in TypeScript that embeds the engine",
    commands: ["npm install", "npm start", "npm test"],
    files: (id) => ({
      "package.json": json({
        name: id,
        private: true,
        type: "module",
        engines: { node: ">=22.18" },
        scripts: { start: "node main.ts", test: "node --test" },
        dependencies: { "@waft/engine": WAFT },
      }),
      "module.wat": `(module
  (func $gcd (export "gcd") (param $a i32) (param $b i32) (result i32)
    (if (result i32) (i32.eqz (local.get $b))
      (then (local.get $a))
      (else (return_call $gcd (local.get $b) (i32.rem_u (local.get $a) (local.get $b)))))))
`,
      "gcd.ts": `import { readFileSync } from "node:fs";
import { NewEngine } from "@waft/engine";

const engine = NewEngine({ interruptible: true });
const module = engine.compile(readFileSync(new URL("module.wat", import.meta.url), "utf8"));

/** The greatest common divisor; a guest that runs for longer than a second is stopped. */
export function gcd(a: number, b: number): number {
  return module.instantiate<{ gcd(a: number, b: number): number }>().call({ deadline: 1000 }, "gcd", a, b);
}
`,
      "main.ts": `import { gcd } from "./gcd.ts";

console.log(gcd(1071, 462));
`,
      "gcd.test.ts": `import assert from "node:assert/strict";
import { test } from "node:test";
import { gcd } from "./gcd.ts";

test("the greatest common divisor", () => {
  assert.equal(gcd(1071, 462), 21);
  assert.equal(gcd(0, 5), 5);
});
`,
      ".gitignore": "/node_modules/\n",
    }),
  },
  {
    name: "assemblyscript",
    about: "a module in AssemblyScript, with its tests in JavaScript",
    commands: ["npm install", "npm run build", "npm start", "npm test"],
    files: (id) => ({
      "package.json": json({
        name: id,
        private: true,
        type: "module",
        scripts: {
          build: "asc assembly/index.ts -o build/module.wasm -O --debug --sourceMap",
          start: "waft run --invoke gcd build/module.wasm 1071 462",
          test: "npm run build && node --test",
        },
        devDependencies: { "@waft/cli": WAFT, "@waft/engine": WAFT, "assemblyscript": "^0.28.0" },
      }),
      "assembly/index.ts": `/** The greatest common divisor. */
export function gcd(a: u32, b: u32): u32 {
  while (b != 0) {
    const rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
`,
      "assembly/tsconfig.json": json({ extends: "assemblyscript/std/assembly.json", include: ["./**/*.ts"] }),
      "tests/gcd.test.js": `import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { NewEngine } from "@waft/engine";

test("the greatest common divisor", () => {
  const bytes = readFileSync(new URL("../build/module.wasm", import.meta.url));
  const instance = NewEngine().compile(bytes).instantiate();
  assert.equal(instance.call({}, "gcd", 1071, 462), 21);
});
`,
      ".gitignore": "/node_modules/\n/build/\n",
    }),
  },
  {
    name: "c",
    about: "a module in C, without a library",
    commands: ["make", "make run", "make test"],
    files: () => ({
      "Makefile": `CC = clang
CFLAGS = --target=wasm32 -O2 -g -Wall -nostdlib
LDFLAGS = -Wl,--no-entry

build/module.wasm: src/module.c
\t@mkdir -p build
\t$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $<

run: build/module.wasm
\twaft run --invoke gcd build/module.wasm 1071 462

test: build/module.wasm
\ttest "$$(waft run --invoke gcd build/module.wasm 1071 462)" = 21
\ttest "$$(waft run --invoke gcd build/module.wasm 0 5)" = 5

clean:
\trm -rf build

.PHONY: run test clean
`,
      "src/module.c": `/* The greatest common divisor. */
__attribute__((export_name("gcd"))) unsigned gcd(unsigned a, unsigned b) {
  while (b != 0) {
    unsigned rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
`,
      ".gitignore": "/build/\n",
    }),
  },
  {
    name: "rust",
    about: "a program in Rust for WASI; cargo runs it and its tests on waft",
    commands: ["cargo build", "cargo run -- 1071 462", "cargo test"],
    files: (id) => ({
      "Cargo.toml": `[package]
name = "${id}"
version = "0.1.0"
edition = "2021"

[profile.release]
debug = true
`,
      ".cargo/config.toml": `[build]
target = "wasm32-wasip1"

[target.wasm32-wasip1]
runner = "waft run --dir .::/"
`,
      "src/main.rs": `/// The greatest common divisor.
fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn main() {
    let numbers: Vec<u32> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    println!("{}", numbers.into_iter().fold(0, gcd));
}

#[cfg(test)]
mod tests {
    use super::gcd;

    #[test]
    fn divides_both() {
        assert_eq!(gcd(1071, 462), 21);
        assert_eq!(gcd(0, 5), 5);
    }
}
`,
      ".gitignore": "/target/\n",
    }),
  },
  {
    name: "http",
    about: "an HTTP component in Rust, which waft serves",
    commands: ["make", "make run", "make test"],
    files: (id) => ({
      "Cargo.toml": `[package]
name = "${id}"
version = "0.1.0"
edition = "2021"

[lib]
crate-type = ["cdylib"]

[dependencies]
wasi = "0.14"
`,
      "Makefile": `COMPONENT = target/wasm32-wasip2/release/${id.replaceAll("-", "_")}.wasm

build:
\tcargo build --release --target wasm32-wasip2

run: build
\twaft serve $(COMPONENT)

# Starts the server on a free port, asks it once, and ends it.
test: build
\t@waft serve --addr 127.0.0.1:0 $(COMPONENT) 2> target/address & server=$$!; \\
\ttrap "kill $$server" EXIT; \\
\tuntil grep -q http target/address; do kill -0 $$server || exit 1; sleep 0.1; done; \\
\ttest "$$(curl -fsS "$$(sed -n 's/^Listening on //p' target/address)ada")" = "hello from /ada"

.PHONY: build run test
`,
      "src/lib.rs": `use wasi::http::types::{
    Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam,
};

struct Handler;

impl wasi::exports::http::incoming_handler::Guest for Handler {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_else(|| "/".into());
        let response = OutgoingResponse::new(Fields::new());
        let body = response.body().expect("the body is taken once");
        ResponseOutparam::set(out, Ok(response));
        let stream = body.write().expect("the stream is taken once");
        stream.blocking_write_and_flush(format!("hello from {path}\\n").as_bytes()).expect("the client reads");
        drop(stream);
        OutgoingBody::finish(body, None).expect("the body is complete");
    }
}

wasi::http::proxy::export!(Handler);
`,
      ".gitignore": "/target/\n",
    }),
  },
];

/** A name for packages of any language, from the name of a project. */
export function packageId(name: string): string {
  const id = name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^[-0-9]+|-+$/g, "");
  return id === "" ? "program" : id;
}

/** The README of a project. */
export function templateReadme(name: string, { about, commands }: Template): string {
  return `# ${name}\n\n${about[0].toUpperCase()}${about.slice(1)}.\n\n\`\`\`sh\n${commands.join("\n")}\n\`\`\`\n`;
}
