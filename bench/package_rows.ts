/**
 * npm packages that use the global `WebAssembly`, from C, C++, Rust, Go and AssemblyScript, small and big. A row is the
 * package's name and a program: the body of an async function that imports the package and returns its first result. It
 * may use `require`, and `file` for the bytes of a file below node_modules.
 */
export const PACKAGE_ROWS: readonly (readonly [name: string, program: string])[] = [
  [
    "sql.js",
    `const db = new (await require("sql.js")()).Database();
     db.run("create table t(a, b)");
     for (let i = 0; i < 200; i++) db.run("insert into t values(?, ?)", [i, "name " + i]);
     return db.exec("select count(*), max(b) from t where a % 3 = 1")[0].values;`,
  ],
  [
    "quickjs-emscripten",
    `const quickjs = await (await import("quickjs-emscripten")).getQuickJS();
     return quickjs.evalCode("const f = (n) => n < 2 ? n : f(n - 1) + f(n - 2); f(17)");`,
  ],
  [
    "esbuild-wasm",
    `globalThis.self ??= globalThis;
     const esbuild = require("esbuild-wasm/lib/browser.js");
     await esbuild.initialize({ wasmModule: new WebAssembly.Module(file("esbuild-wasm/esbuild.wasm")), worker: false });
     return (await esbuild.transform("const f = (a?: number): number => a ?? 1; export default f", { loader: "ts" })).code;`,
  ],
  [
    "@resvg/resvg-wasm",
    `const { initWasm, Resvg } = await import("@resvg/resvg-wasm");
     await initWasm(file("@resvg/resvg-wasm/index_bg.wasm"));
     const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32"><circle cx="16" cy="16" r="9"/></svg>';
     return new Resvg(svg).render().asPng().length;`,
  ],
  [
    "@chainsafe/as-sha256",
    `const { digest } = await import("@chainsafe/as-sha256");
     return [...digest(new Uint8Array(3000).fill(7))].join();`,
  ],
  [
    "@bokuweb/zstd-wasm",
    `const { init, compress, decompress } = require("@bokuweb/zstd-wasm");
     await init();
     const packed = compress(new Uint8Array(20000).map((_, i) => i % 17), 10);
     return [packed.length, decompress(packed).length];`,
  ],
  [
    "@dimforge/rapier3d-compat",
    `const { default: RAPIER } = await import("@dimforge/rapier3d-compat");
     await RAPIER.init();
     const world = new RAPIER.World({ x: 0, y: -9.81, z: 0 });
     world.createCollider(RAPIER.ColliderDesc.cuboid(10, 0.1, 10));
     const body = world.createRigidBody(RAPIER.RigidBodyDesc.dynamic().setTranslation(0, 1, 0));
     world.createCollider(RAPIER.ColliderDesc.cuboid(0.5, 0.5, 0.5), body);
     for (let k = 0; k < 60; k++) world.step();
     return body.translation().y > 0;`,
  ],
  [
    "@hpcc-js/wasm-graphviz",
    `const { Graphviz } = await import("@hpcc-js/wasm-graphviz");
     return (await Graphviz.load()).dot("digraph { a -> b -> c; a -> c }").length;`,
  ],
  [
    "@viz-js/viz",
    `const { instance } = await import("@viz-js/viz");
     return (await instance()).renderString("digraph { a -> b -> c; a -> c }", { format: "svg" }).length;`,
  ],
  [
    "@polkadot/wasm-crypto",
    `const { waitReady, blake2b } = require("@polkadot/wasm-crypto");
     await waitReady();
     return blake2b(new Uint8Array(100), new Uint8Array(0), 32).join();`,
  ],
  [
    "@rollup/wasm-node",
    `const { rollup } = require("@rollup/wasm-node");
     const source = "export const f = (x) => x * 2; const g = 1;";
     const plugin = { name: "text", resolveId: (id) => id, load: () => source };
     return (await (await rollup({ input: "a", plugins: [plugin] })).generate({ format: "esm" })).output[0].code;`,
  ],
  [
    "binaryen",
    `const { default: binaryen } = await import("binaryen");
     const module = binaryen.parseText("(module (func (export \\"f\\") (result i32) (i32.add (i32.const 1) (i32.const 2))))");
     module.optimize();
     return module.emitText();`,
  ],
  [
    "brotli-wasm",
    `const brotli = require("brotli-wasm");
     return (await brotli).compress(new Uint8Array(5000).map((_, i) => i % 13)).length;`,
  ],
  [
    "es-module-lexer",
    `const { init, parse } = await import("es-module-lexer");
     await init;
     return parse('import { a } from "b"; export const c = await import("d")').length;`,
  ],
  ["hash-wasm", `return await require("hash-wasm").blake3("text".repeat(1000));`],
  [
    "libsodium-wrappers",
    `const sodium = require("libsodium-wrappers");
     await sodium.ready;
     return sodium.to_hex(sodium.crypto_generichash(32, "text".repeat(100)));`,
  ],
  [
    "lightningcss-wasm",
    `const { default: init, transform } = await import("lightningcss-wasm");
     await init(file("lightningcss-wasm/lightningcss_node.wasm"));
     const code = new TextEncoder().encode(".a { .b & { color: rgb(255 0 0 / 50%) } }");
     return new TextDecoder().decode(transform({ filename: "a.css", code, minify: true }).code);`,
  ],
  [
    "source-map",
    `const { SourceMapConsumer } = require("source-map");
     const map = { version: 3, file: "a.js", sources: ["b.js"], names: [], mappings: "AAAA;AACA,CAAC;".repeat(300) };
     return await SourceMapConsumer.with(map, null, (consumer) => consumer.originalPositionFor({ line: 2, column: 1 }));`,
  ],
  [
    "tiktoken",
    `const encoding = require("tiktoken").get_encoding("r50k_base");
     return encoding.encode("the quick brown fox jumps over the lazy dog").length;`,
  ],
  [
    "tiny-secp256k1",
    `const secp = await import("tiny-secp256k1");
     return [...secp.pointFromScalar(new Uint8Array(32).fill(7))].join();`,
  ],
  [
    "vscode-oniguruma",
    `const { loadWASM, OnigScanner, OnigString } = require("vscode-oniguruma");
     const bytes = file("vscode-oniguruma/release/onig.wasm");
     await loadWASM({ data: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) });
     return new OnigScanner(["\\\\d+", "[a-f]+"]).findNextMatchSync(new OnigString("xyz 123 abc"), 0).index;`,
  ],
  [
    "wabt",
    `const wabt = await require("wabt")();
     return wabt.parseWat("a.wat", "(module (func (export \\"f\\") (result i32) (i32.const 1)))").toBinary({}).buffer.length;`,
  ],
  [
    "wasmoon",
    `const { LuaFactory } = require("wasmoon");
     const lua = await new LuaFactory().createEngine();
     return await lua.doString("local s = 0; for i = 1, 1000 do s = s + i % 7 end; return s");`,
  ],
  ["xxhash-wasm", `return (await require("xxhash-wasm")()).h64ToString("text".repeat(1000));`],
  [
    "yoga-layout",
    `const { loadYoga } = await import("yoga-layout/load");
     const node = (await loadYoga()).Node.create();
     node.setWidth(100);
     node.setHeight(50);
     node.calculateLayout();
     return node.getComputedLayout();`,
  ],
];
