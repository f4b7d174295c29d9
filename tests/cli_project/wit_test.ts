/** `waft wit fetch`: packages of WIT from OCI registries. In: a registry on loopback. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { pushProgram } from "../../project/packages/oci/artifact.ts";
import { parseReference } from "../../project/packages/oci/reference.ts";
import { startRegistry, type TestRegistry } from "../support/oci_registry.ts";
import { removeFolder } from "../support/remove_folder.ts";
import { waft } from "./waft.ts";

const BASE = `(component
  (type (component
    (type (instance (type u32) (export "size" (type (eq 0)))))
    (export "docs:base/types@1.0.0" (instance (type 0)))))
  (export "types" (type 0)))`;
const HTTP = `(component
  (type (component
    (type $types (instance (type u32) (export "size" (type (eq 0)))))
    (import "docs:base/types@1.0.0" (instance $base (type $types)))
    (alias export $base "size" (type $size))
    (type $api (instance
      (alias outer 1 $size (type $outer))
      (export "size" (type $own (eq $outer)))
      (export "send" (func (param "bytes" $own)))))
    (export "docs:http/api@0.2.0" (instance (type $api)))))
  (export "api" (type 0)))`;
const WORLD = `package my:app;

world app {
  import docs:http/api@0.2.0;
  export other: interface { use docs:base/types@1.0.0.{size}; get: func() -> size; }
}
`;

interface Setup {
  readonly home: string;
  readonly registry: TestRegistry;
  /** The bodies of well-known addresses, in place of none. */
  describe(body: string): void;
  fetch(...args: string[]): ReturnType<typeof waft>;
}

/** Runs `action` with a folder `wit`, and a registry that has the packages below `prefix`. */
async function withPackages(prefix: string, action: (setup: Setup) => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-wit-"));
  const registry = await startRegistry();
  try {
    const facts = { kind: "component", imports: [], exports: [] } as const;
    for (const [name, text] of [["docs/base:1.0.0", BASE], ["docs/http:0.2.0", HTTP]] as const) {
      const binary = new Uint8Array(componentToBinary(text));
      await pushProgram(parseReference(`${registry.host}/${prefix}${name}`), binary, facts);
    }
    mkdirSync(join(home, "wit"));
    writeFileSync(join(home, "wit", "world.wit"), WORLD);
    await action({
      home,
      registry,
      describe: (body) => {
        registry.replace = ({ url }, response) => {
          if (url !== "/.well-known/wasm-pkg/registry.json") return false;
          response.end(body);
          return true;
        };
      },
      fetch: (...args) => waft(["wit", "fetch", "--registry", `docs=${registry.host}`, ...args], home, home),
    });
  } finally {
    registry.close();
    removeFolder(home);
  }
}

Deno.test("wit fetch: the packages that WIT refers to, and those that they refer to, are fetched once", async () => {
  await withPackages("some/prefix/", async ({ home, registry, describe, fetch }) => {
    describe(
      JSON.stringify({ preferredProtocol: "oci", oci: { registry: registry.host, namespacePrefix: "some/prefix/" } }),
    );
    // Only the package that the world imports refers to the other one.
    writeFileSync(join(home, "wit", "world.wit"), WORLD.replace(/^ {2}export.*\n/m, ""));
    const { code, out, err } = await fetch();
    assert.equal(code, 0, err);
    const lines = out.trimEnd().split("\n");
    assert.match(
      lines[0],
      /^docs:base@1\.0\.0 oci:\/\/127\.0\.0\.1:\d+\/some\/prefix\/docs\/base:1\.0\.0@sha256:[0-9a-f]{64}$/,
    );
    assert.match(lines[1], /^docs:http@0\.2\.0 oci:/);
    const file = (name: string) => join(home, "wit", "deps", name, "package.wit");
    assert.match(
      readFileSync(file("docs-http-0.2.0"), "utf8"),
      /package docs:http@0\.2\.0;[^]*use docs:base\/types@1\.0\.0/,
    );
    // The directory is a complete package now.
    const types = await waft(["inspect", "wit"], home, home);
    assert.equal(types.code, 0, types.err);
    assert.match(types.out, /docs:http/);
    // Packages that are there stay as they are, without a request.
    writeFileSync(file("docs-base-1.0.0"), "package docs:base@1.0.0;\ninterface types { type size = u64; }\n");
    const count = registry.requests.length;
    assert.deepEqual(await fetch("wit"), { code: 0, out: "", err: "" });
    assert.equal(registry.requests.length, count);
  });
});

Deno.test("wit fetch: a registry without a description is an OCI registry itself", async () => {
  await withPackages("", async ({ fetch }) => {
    const { code, out, err } = await fetch();
    assert.equal(code, 0, err);
    assert.equal(out.trimEnd().split("\n").length, 2);
  });
});

Deno.test("wit fetch: what cannot be fetched is one line, and nothing is written", async () => {
  await withPackages("", async ({ home, registry, describe, fetch }) => {
    const world = (text: string) =>
      writeFileSync(join(home, "wit", "world.wit"), `package my:app;\nworld app { ${text} }`);
    const cases: [string, RegExp][] = [
      ["import docs:http/api@0.9.0;", /docs:http@0\.9\.0: 127\.0\.0\.1:\d+ has no such manifest/],
      ["import docs:http/api;", /docs:http: the reference to it has no version/],
      ["import other:http/api@1.0.0;", /other:http@1\.0\.0: no registry is known for "other": --registry other=HOST/],
      ["import nothing", /world\.wit:2/],
    ];
    for (const [text, message] of cases) {
      world(`import docs:base/types@1.0.0; ${text}`);
      const { code, out, err } = await fetch();
      assert.deepEqual([code, out], [1, ""], text);
      assert.match(err, message);
      assert.ok(!existsSync(join(home, "wit", "deps")));
    }
    world("import docs:http/api@0.2.0;");
    for (const body of ["{", "null", "{}", '{"oci":{"registry":1}}', "x".repeat(1 << 17)]) {
      describe(body);
      const { code, err } = await fetch();
      assert.equal(code, 1, body);
      assert.match(
        err,
        /^waft: docs:http@0\.2\.0: .*(?:is not JSON|names no OCI registry|has more than 65536 bytes)\n$/,
      );
    }
    registry.replace = () => false;
    const tag = registry.manifests.get("1.0.0");
    registry.manifests.set("0.2.0", tag ?? new Uint8Array());
    assert.match((await fetch()).err, /docs:http@0\.2\.0: the registry has docs:base@1\.0\.0 in its place/);
    assert.match((await fetch("none")).err, /none: there is no such directory/);
    assert.equal((await waft(["wit", "fetch", "--registry", "docs"], home, home)).code, 2);
    assert.ok(!existsSync(join(home, "wit", "deps")));
  });
});
