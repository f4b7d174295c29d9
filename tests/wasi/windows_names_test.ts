/**
 * Names on Windows: separators, drives, streams, devices, short names, letter case, trailing dots and spaces, and
 * junctions lead nowhere outside of the guest's directory, and to no entry but the one that they name. The rule for
 * names is checked on every system, its effects on Windows.
 */
import { equal, ok, throws } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, parse } from "node:path";
import { isWindowsName } from "../../engine/host/calls/windows_names.ts";
import { systemName } from "../../engine/host/process.ts";
import { ERRNO } from "../../engine/wasi/abi.ts";
import { ROOT, withSandbox } from "./sandbox.ts";

const IS_WINDOWS = systemName() === "win32";
const CREATE = 1;

/** Names that no entry has: each of them means something else to some function of Windows. */
const HOSTILE = [
  "..\\secret",
  "dir\\..\\..\\secret",
  "\\secret",
  "\\\\server\\share",
  "\\\\?\\C:\\secret",
  "C:",
  "C:secret",
  "c:\\windows",
  "a.txt:stream",
  "a.txt::$DATA",
  ":stream",
  "dir::$INDEX_ALLOCATION",
  "con",
  "CON",
  "nul.txt",
  "aux.tar.gz",
  "com1",
  "lpt²",
  "conin$",
  "prn ",
  "a.txt.",
  "a.txt ",
  "a.txt. .",
  "a?txt",
  "a*",
  "<a",
  'a"',
  "a|b",
  "a\u0001",
];

/** Names that look like those, and are plain. */
const PLAIN = ["a.txt", ".hidden", "console", "com10", "nully.txt", "a b", "~", "a~b", "ä.txt", "日本", "...a"];

Deno.test("names that mean something else on Windows are told from plain ones", () => {
  for (const name of HOSTILE) equal(isWindowsName(name), false, JSON.stringify(name));
  for (const name of ["", "..", "a/b", "a\0"]) equal(isWindowsName(name), false, JSON.stringify(name));
  for (const name of PLAIN) equal(isWindowsName(name), true, name);
});

Deno.test({ name: "Windows: hostile names are refused, create nothing and open nothing", ignore: !IS_WINDOWS }, () => {
  withSandbox(({ guest, root, outside }) => {
    const before = [readdirSync(root).sort().join(), readdirSync(outside).sort().join()];
    for (const name of HOSTILE) {
      for (const path of [name, `dir/${name}`]) {
        for (const oflags of [0, CREATE]) {
          const { errno } = guest.open(ROOT, path, { oflags });
          ok(errno === ERRNO.inval || errno === ERRNO.perm, `${JSON.stringify(path)}: ${errno}`);
        }
        ok(guest.onPath("path_create_directory", ROOT, path) !== 0, path);
        ok(guest.onPath("path_unlink_file", ROOT, path) !== 0, path);
      }
    }
    equal(readFileSync(join(root, "a.txt"), "utf8"), "alpha");
    equal([readdirSync(root).sort().join(), readdirSync(outside).sort().join()].join(), before.join());
    equal(readdirSync(join(root, "dir")).join(), "b.txt");
  });
});

Deno.test({ name: "Windows: nothing but a directory is preopened", ignore: !IS_WINDOWS }, () => {
  withSandbox(({ root }) => {
    for (
      const host of [
        "con",
        "nul",
        "conin$",
        join(root, "nul"),
        join(root, "a.txt"),
        join(root, "a.txt::$DATA"),
        join(root, "dir:stream"),
        "\\\\.\\pipe\\waft",
        "\\\\?\\nul",
        "\\\\127.0.0.1\\none",
        "",
      ]
    ) {
      throws(
        () => withSandbox(() => {}, { preopens: [{ host, guest: "/" }] }),
        /^Error: The directory .* (?:is not a directory|does not exist|cannot be opened)$/,
        host,
      );
    }
  });
});

Deno.test({ name: "Windows: no path leads above the root of a drive or to another one", ignore: !IS_WINDOWS }, () => {
  withSandbox(({ guest, root }) => {
    const below = root.slice(parse(root).root.length).replaceAll("\\", "/");
    equal(guest.read(guest.open(ROOT, `${below}/a.txt`, { rights: 2n }).fd).text, "alpha");
    for (const path of ["..", "../..", `../${below}/a.txt`, `${below}/${"../".repeat(40)}x`]) {
      equal(guest.open(ROOT, path).errno, ERRNO.perm, path);
    }
    for (const path of ["C:", "c:/windows", "Z:\\", "??/C:"]) equal(guest.open(ROOT, path).errno, ERRNO.inval, path);
  }, (root) => ({ preopens: [{ host: parse(root).root, guest: "/" }] }));
});

Deno.test({ name: "Windows: plain names work, and letter case does not matter", ignore: !IS_WINDOWS }, () => {
  withSandbox(({ guest, root }) => {
    for (const name of PLAIN.slice(1)) {
      equal(guest.open(ROOT, name, { oflags: CREATE }).errno, 0, name);
      ok(existsSync(join(root, name)), name);
    }
    equal(guest.open(ROOT, "A.TXT").errno, 0);
    equal(guest.open(ROOT, "DIR/B.txt").errno, 0);
    equal(guest.open(ROOT, "a.TXT", { oflags: CREATE | 4 }).errno, ERRNO.exist);
  });
});

Deno.test({ name: "Windows: 8.3 short names open no file", ignore: !IS_WINDOWS }, () => {
  withSandbox(({ guest, root }) => {
    writeFileSync(join(root, "a rather long name.json"), "long");
    equal(guest.open(ROOT, "a rather long name.json").errno, 0);
    for (const short of ["ARATHE~1.JSO", "arathe~1.jso", "A RAT~1.JSO"]) {
      equal(guest.open(ROOT, short).errno, ERRNO.noent, short);
      equal(guest.onPath("path_unlink_file", ROOT, short), ERRNO.noent, short);
    }
  });
});

/** The short name of an entry; undefined on volumes without short names. */
function shortNameOf(path: string): string | undefined {
  const { stdout } = spawnSync("cmd", ["/d", "/c", `for %I in ("${path}") do @echo %~snxI`], {
    encoding: "utf8",
    windowsVerbatimArguments: true,
  });
  const text = stdout.trim();
  return text.includes("~") ? text : undefined;
}

Deno.test({ name: "Windows: a rename replaces nothing by its short name", ignore: !IS_WINDOWS }, () => {
  withSandbox(({ guest, root }) => {
    const rename = (to: string) => guest.call("path_rename", ROOT, ...guest.string("a.txt"), ROOT, ...guest.string(to));
    const link = (to: string) => guest.call("path_link", ROOT, 0, ...guest.string("a.txt"), ROOT, ...guest.string(to));
    writeFileSync(join(root, "waft-lock.json"), "{}");
    writeFileSync(join(root, "a rather long name.json"), "long");
    for (const name of ["waft-lock.json", "a rather long name.json"]) {
      const short = shortNameOf(join(root, name));
      if (short === undefined) continue;
      for (const spelling of [short, short.toLowerCase()]) {
        equal(rename(spelling), ERRNO.inval, spelling);
        ok(link(spelling) !== 0, spelling);
      }
    }
    equal(readFileSync(join(root, "waft-lock.json"), "utf8"), "{}");
    equal(readFileSync(join(root, "a rather long name.json"), "utf8"), "long");
    equal(readFileSync(join(root, "a.txt"), "utf8"), "alpha");
    equal(rename("a~b.txt"), 0);
  }, { protect: { names: ["waft-lock.json"] } });
});

Deno.test({ name: "Windows: protected names are protected in every spelling", ignore: !IS_WINDOWS }, () => {
  withSandbox(({ guest, root }) => {
    writeFileSync(join(root, "waft-lock.json"), "{}");
    for (const name of ["waft-lock.json", "WAFT-LOCK.JSON", "Waft-Lock.json"]) {
      equal(guest.open(ROOT, name, { oflags: CREATE }).errno, ERRNO.perm, name);
      equal(guest.onPath("path_unlink_file", ROOT, name), ERRNO.perm, name);
    }
    for (const name of ["waft-lock.json.", "waft-lock.json ", "waft-lock.json::$DATA"]) {
      ok(guest.open(ROOT, name, { oflags: CREATE }).errno !== 0, name);
    }
    equal(readFileSync(join(root, "waft-lock.json"), "utf8"), "{}");
  }, { protect: { names: ["waft-lock.json"] } });
});

/** Makes a junction; false where the system makes none, as under Wine. */
function makeJunction(target: string, path: string): boolean {
  try {
    symlinkSync(target, path, "junction");
    return readdirSync(path).length >= 0;
  } catch {
    return false;
  }
}

Deno.test({ name: "Windows: a junction does not lead out", ignore: !IS_WINDOWS }, () => {
  withSandbox(({ guest, root, outside }) => {
    if (!makeJunction(outside, join(root, "way"))) return; // no junctions here
    for (const path of ["way/secret", "way", "way/"]) {
      ok(guest.open(ROOT, path).errno !== 0, path);
    }
  });
});
