/**
 * Closes the file that is a guest's standard output, and lets the guest write to it: in a separate process, because
 * another thread could open a file at the same descriptor, and after a first write, with which the runtime opens
 * descriptors of its own. Out: the guest's error number.
 */
import { closeSync, mkdtempSync, openSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../support/remove_folder.ts";
import { RawGuest } from "./raw_guest.ts";

const folder = mkdtempSync(join(tmpdir(), "waft-files-"));
try {
  const output = openSync(join(folder, "out"), "w");
  const guest = new RawGuest({ stdio: [0, output, 2] });
  if (guest.write(1, "x") !== 0) throw new Error("the open file is not writable");
  closeSync(output);
  console.log(guest.write(1, "x"));
  guest.close();
} finally {
  removeFolder(folder);
}
