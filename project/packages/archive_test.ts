/**
 * Archives: a written archive reads back; each abuse is refused with its code. Rows build raw tar entries by hand.
 */
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { ARCHIVE_LIMITS, readArchive, writeArchive } from "./archive.ts";
import { ProjectError } from "../base/diagnostic.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

interface Entry {
  readonly name: string | Uint8Array;
  readonly data?: Uint8Array;
  readonly type?: string;
  readonly size?: number;
  readonly link?: string;
  readonly prefix?: string;
  readonly magic?: string;
  readonly sum?: number;
  readonly padding?: number;
}

function entry(e: Entry): Uint8Array {
  const data = e.data ?? encode("x");
  const header = new Uint8Array(512);
  header.set(typeof e.name === "string" ? encode(e.name) : e.name, 0);
  header.set(encode("0000644\0"), 100);
  header.set(encode(`${(e.size ?? data.length).toString(8).padStart(11, "0")}\0`), 124);
  header.set(encode(e.type ?? "0"), 156);
  header.set(encode(e.link ?? ""), 157);
  header.set(encode(e.magic ?? "ustar\u000000"), 257);
  header.set(encode(e.prefix ?? ""), 345);
  header.set(encode("        "), 148);
  const sum = e.sum ?? header.reduce((a, b) => a + b, 0);
  header.set(encode(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
  const body = new Uint8Array(Math.ceil(data.length / 512) * 512);
  if (e.padding !== undefined) body.fill(e.padding);
  body.set(data);
  return Uint8Array.of(...header, ...body);
}
const tar = (...entries: Uint8Array[]): Uint8Array =>
  Uint8Array.of(...entries.flatMap((e) => [...e]), ...new Uint8Array(1024));
function gzip(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(gzipSync(bytes));
}
const one = (e: Entry): Uint8Array => gzip(tar(entry(e)));

function refuse(name: string, make: () => Uint8Array, code: string): void {
  Deno.test(`archive refused: ${name}`, () => {
    assert.throws(() => readArchive(make()), (error) => {
      assert.ok(error instanceof ProjectError, String(error));
      assert.deepEqual(error.diagnostics.map((d) => d.code), [`archive.${code}`]);
      assert.equal(error.exitCode, 5);
      return true;
    });
  });
}

Deno.test("archive: written files are read back, and the bytes do not depend on order or time", () => {
  const files = new Map([
    ["waft.json", encode("{}")],
    ["a/b.wasm", new Uint8Array(70_000).fill(7)],
    ["empty", new Uint8Array(0)],
    [`${"d".repeat(90)}/${"e".repeat(90)}`, encode("long")],
    ["ö/ß.txt", encode("utf-8")],
  ]);
  const packed = writeArchive(files);
  assert.deepEqual([...readArchive(packed)].sort(), [...files].sort());
  assert.deepEqual(writeArchive(new Map([...files].reverse())), packed);
  assert.deepEqual([...packed.subarray(3, 10)], [0, 0, 0, 0, 0, packed[8], 0xff]);
});

for (
  const [name, path] of [
    ["climbing", "../x"],
    ["climbing inside", "a/../../x"],
    ["absolute", "/etc/passwd"],
    ["drive letter", "C:x"],
    ["drive path", "C:/x"],
    ["backslash", "a\\b"],
    ["dot segment", "./x"],
    ["empty segment", "a//b"],
    ["folder name", "a/"],
    ["control character", "a\nb"],
    ["bidi control", "a\u202eb"],
    ["zero width", "a\u200bb"],
    ["Windows device", "aux"],
    ["Windows device with extension", "lib/NUL.txt"],
    ["Windows device behind a space", "lib/con .txt"],
    ["Windows device with a superscript", "lpt²"],
    ["Windows console", "CONIN$"],
    ["drive, stream and path", "C:x:y\\z"],
    ["network share", "\\\\server\\share"],
    ["trailing dot", "a./b"],
    ["trailing space", "b "],
    ["alternate stream", "a:b"],
    ["empty name", ""],
    ["too deep", "a/".repeat(16) + "b"],
  ] as const
) refuse(name, () => one({ name: path }), "path");
refuse("NUL in a name", () => one({ name: "a\0b" }), "path");
refuse("name that is not UTF-8", () => one({ name: Uint8Array.of(0xff, 0x61) }), "path");
refuse("too long a path", () => one({ name: "a".repeat(100), prefix: "b".repeat(120) }), "path");
refuse("climbing through the prefix field", () => one({ name: "x", prefix: ".." }), "path");
for (
  const [name, type] of [
    ["hard link", "1"],
    ["symbolic link", "2"],
    ["character device", "3"],
    ["block device", "4"],
    ["directory", "5"],
    ["pipe", "6"],
    ["PAX header", "x"],
    ["PAX global header", "g"],
    ["GNU long name", "L"],
    ["sparse file", "S"],
    ["unknown type", "Z"],
  ] as const
) refuse(name, () => one({ name: "a", type }), "entry-type");
refuse("plain file with a link target", () => one({ name: "a", link: "b" }), "entry-type");
refuse("duplicate name", () => gzip(tar(entry({ name: "a" }), entry({ name: "a" }))), "duplicate");
refuse("names that differ in case", () => gzip(tar(entry({ name: "a" }), entry({ name: "A" }))), "duplicate");
refuse(
  "names that differ in normal form",
  () => gzip(tar(entry({ name: "\u00e9" }), entry({ name: "e\u0301" }))),
  "duplicate",
);
for (const [one, other] of [["ß", "ss"], ["ẞ", "ß"], ["ẞ", "ss"], ["ſet", "set"], ["ﬁle", "file"]]) {
  refuse(
    `names that some systems fold: ${one} and ${other}`,
    () => gzip(tar(entry({ name: one }), entry({ name: other }))),
    "duplicate",
  );
}
refuse("a file that is also a folder", () => gzip(tar(entry({ name: "a" }), entry({ name: "a/b" }))), "duplicate");
refuse("old tar format", () => one({ name: "a", magic: "ustar  \0" }), "tar");
refuse("wrong header checksum", () => one({ name: "a", sum: 5 }), "tar");
refuse("size beyond the end", () => one({ name: "a", size: 100_000 }), "tar");
refuse("binary size field", () => {
  const e = entry({ name: "a" });
  e[124] = 0x80;
  return gzip(tar(e));
}, "tar");
refuse("hidden bytes in the padding", () => one({ name: "a", padding: 1 }), "tar");
refuse("no end mark", () => gzip(entry({ name: "a" })), "tar");
refuse("bytes after the end mark", () => gzip(Uint8Array.of(...tar(entry({ name: "a" })), 1)), "trailing");
refuse("several gzip members", () => Uint8Array.of(...one({ name: "a" }), ...one({ name: "b" })), "trailing");
refuse("bytes after gzip", () => Uint8Array.of(...one({ name: "a" }), 0), "trailing");
refuse("no gzip", () => encode("PK\u0003\u0004 this is a zip file"), "gzip");
refuse("empty", () => new Uint8Array(0), "gzip");
refuse("cut off", () => one({ name: "a" }).subarray(0, -9), "gzip");
refuse("damaged", () => {
  const bytes = one({ name: "a", data: encode("some text, some text") });
  bytes[bytes.length - 6] ^= 1;
  return bytes;
}, "gzip");
refuse("wrong length field", () => {
  const bytes = one({ name: "a" });
  bytes[bytes.length - 1] ^= 1;
  return bytes;
}, "gzip");
refuse("gzip header with a name", () => {
  const bytes = one({ name: "a" });
  bytes[3] = 8;
  return bytes;
}, "gzip");
refuse("bomb by ratio", () => gzip(new Uint8Array(20 << 20)), "bomb");
refuse("bomb by count", () => {
  const header = entry({ name: "a", data: new Uint8Array(0) });
  const many = new Uint8Array(512 * (ARCHIVE_LIMITS.files + 3));
  for (let i = 0; i <= ARCHIVE_LIMITS.files; i++) {
    header.set(encode(i.toString(36).padStart(3, "0")), 0);
    header.set(encode("        "), 148);
    header.set(encode(`${header.reduce((a, b) => a + b, 0).toString(8).padStart(6, "0")}\0 `), 148);
    many.set(header, i * 512);
  }
  // Incompressible filling keeps the ratio below its bound, so that the count is the reason for refusal.
  return gzip(many);
}, "too-many");
refuse("too large", () => new Uint8Array(ARCHIVE_LIMITS.packedBytes + 1), "too-large");

Deno.test("archive: every cut and every flipped bit of a small archive gives a clear error or the same files", () => {
  const files = new Map([["waft.json", encode('{"plugins":{}}')]]);
  const packed = writeArchive(files);
  const judge = (bytes: Uint8Array): void => {
    try {
      assert.deepEqual(readArchive(bytes), files);
    } catch (error) {
      assert.ok(error instanceof ProjectError, String(error));
    }
  };
  for (let i = 0; i < packed.length; i++) {
    judge(packed.subarray(0, i));
    for (let bit = 0; bit < 8; bit++) {
      const changed = packed.slice();
      changed[i] ^= 1 << bit;
      judge(changed);
    }
  }
});
