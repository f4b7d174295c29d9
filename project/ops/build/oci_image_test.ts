/** Container images: their layout, digests and contents, and the libraries that executables need. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { gunzipSync } from "node:zlib";
import { digestBytes } from "../../base/integrity.ts";
import { librariesOf } from "./elf_libraries.ts";
import { ociImage } from "./oci_image.ts";

const FILES = [
  { path: "/app", bytes: new Uint8Array([1, 2, 3]) },
  { path: "/lib/x/libc.so.6", bytes: new Uint8Array(600).fill(7) },
];

/** Unpacks with the system's tar, which is a reader of its own. */
function unpack(bytes: Uint8Array, folder: string): void {
  writeFileSync(join(folder, "file.tar"), bytes);
  const { status, stderr } = spawnSync("tar", ["-xf", "file.tar"], { cwd: folder, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  rmSync(join(folder, "file.tar"));
}

Deno.test("an image has the layout of OCI, digests that fit, and nothing but its files", () => {
  const [outer, inner] = ["waft-image-", "waft-layer-"].map((name) => mkdtempSync(join(tmpdir(), name)));
  try {
    const options = { files: FILES, entry: "/app", name: "example.com/team/app:1.0", platform: "linux/arm64" };
    const image = ociImage(options);
    assert.deepEqual(ociImage({ ...options, files: FILES.toReversed() }), image);
    unpack(image, outer);
    const blob = (digest: string) => {
      const bytes = new Uint8Array(readFileSync(join(outer, "blobs", ...digest.split(":"))));
      assert.equal(digestBytes(bytes), digest);
      return bytes;
    };
    const json = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes));
    assert.deepEqual(json(readFileSync(join(outer, "oci-layout"))), { imageLayoutVersion: "1.0.0" });
    const { manifests: [entry] } = json(readFileSync(join(outer, "index.json")));
    assert.deepEqual(entry.platform, { architecture: "arm64", os: "linux" });
    assert.deepEqual(entry.annotations, {
      "io.containerd.image.name": "example.com/team/app:1.0",
      "org.opencontainers.image.ref.name": "1.0",
    });
    const manifest = json(blob(entry.digest));
    const config = json(blob(manifest.config.digest));
    assert.deepEqual(config.config, { User: "65532:65532", Entrypoint: ["/app"], WorkingDir: "/" });
    const [layer] = manifest.layers;
    const packed = blob(layer.digest);
    assert.equal(layer.size, packed.length);
    const tar = new Uint8Array(gunzipSync(packed));
    assert.deepEqual(config.rootfs.diff_ids, [digestBytes(tar)]);
    unpack(tar, inner);
    assert.deepEqual(readdirSync(inner, { recursive: true, encoding: "utf8" }).sort(), [
      "app",
      "lib",
      join("lib", "x"),
      join("lib", "x", "libc.so.6"),
    ]);
    for (const { path, bytes } of FILES) assert.deepEqual(new Uint8Array(readFileSync(join(inner, path))), bytes);
  } finally {
    for (const folder of [outer, inner]) rmSync(folder, { recursive: true, force: true });
  }
});

/** A program of the system that is linked dynamically on Linux. */
const PROGRAM = "/bin/ls";

Deno.test({
  name: "the libraries of an executable run it where nothing else is",
  // Other systems have other formats.
  ignore: process.platform !== "linux" || !existsSync(PROGRAM),
}, () => {
  const bytes = new Uint8Array(readFileSync(PROGRAM));
  const files = librariesOf(bytes, "/");
  const listed = spawnSync("ldd", [PROGRAM], { encoding: "utf8" }).stdout ?? "";
  const expected = [...listed.matchAll(/^\s*(\S+)(?: => \S+)? \(0x/gm)].map(([, name]) => name.split("/").at(-1))
    .filter((name) => name !== undefined && !name.startsWith("linux-vdso"));
  assert.deepEqual(files.map(({ path }) => path.split("/").at(-1)).sort(), expected.sort());
  assert.throws(() => librariesOf(bytes, "/nowhere"), /\/nowhere has no loader/);
  // A file that is cut off anywhere is an error or has no libraries.
  for (const length of [0, 10, 64, 100, 500, 1000]) {
    try {
      librariesOf(bytes.subarray(0, length), "/");
    } catch (error) {
      assert.ok(error instanceof RangeError, String(error));
    }
  }
  assert.deepEqual(librariesOf(new TextEncoder().encode("#!/bin/sh\n".repeat(20)), "/"), []);
});
