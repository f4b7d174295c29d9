/**
 * A temporary folder for one test: `open` is the guest's directory, and its sibling `secret` must stay unreachable. In:
 * a test body. The folder is removed afterwards.
 */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WasiOptions } from "../../engine/wasi/mod.ts";
import { removeFolder } from "../support/remove_folder.ts";
import { RawGuest } from "./raw_guest.ts";

/** Descriptor of the preopened directory. */
export const ROOT = 3;

export interface Sandbox {
  guest: RawGuest;
  /** Path of the guest's directory on the host. */
  root: string;
  /** Path of the directory around it. */
  outside: string;
}

/** Runs `body` with a guest whose directory holds only `a.txt` ("alpha") and `dir/b.txt` ("beta"). */
export function withSandbox(
  body: (sandbox: Sandbox) => void,
  options: WasiOptions | ((root: string) => WasiOptions) = {},
): void {
  const outside = mkdtempSync(join(tmpdir(), "waft-wasi-"));
  const root = join(outside, "open");
  mkdirSync(join(root, "dir"), { recursive: true });
  writeFileSync(join(root, "a.txt"), "alpha");
  writeFileSync(join(root, "dir", "b.txt"), "beta");
  writeFileSync(join(outside, "secret"), "secret");
  let guest: RawGuest | undefined;
  try {
    guest = new RawGuest({
      preopens: [{ host: root, guest: "/sandbox" }],
      ...(typeof options === "function" ? options(root) : options),
    });
    body({ guest, root, outside });
    if (readFileSync(join(outside, "secret"), "utf8") !== "secret") throw new Error("the secret was changed");
  } finally {
    guest?.close();
    removeFolder(outside);
  }
}
