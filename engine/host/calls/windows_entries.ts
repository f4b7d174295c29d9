/**
 * Entries of directories by name: opening, making, removing, renaming and linking them. In: descriptors of directories
 * and names, or paths of the host. Out: descriptors, or −errno as Linux numbers it.
 *
 * Names are opened relative to the handle of their directory, one component at a time, by the functions of NT, which
 * know neither drive letters nor device names nor the current directory. Invariants: a name relative to a directory
 * contains no separator and no colon, so it names an entry of that directory and no stream; no open follows a reparse
 * point, so a path through a junction or a symbolic link cannot reach a file outside the directory; an 8.3 short name
 * does not open the file that it abbreviates.
 *
 * Sources: "NtCreateFile", "NtSetInformationFile", "File System Control Codes" of Microsoft's documentation; [MS-FSCC].
 */
import { E } from "./linux_errors.ts";
import { AT, O } from "./linux_flags.ts";
import type { Descriptors } from "./windows_descriptors.ts";
import { isWindowsName } from "./windows_names.ts";
import {
  AT_INFO,
  AT_IO_STATUS,
  AT_NAME,
  AT_OBJECT,
  AT_STRING,
  AT_WORDS,
  ATTRIBUTE,
  errorOf,
  failureOf,
  INFO,
  INFO_BYTES,
  isGood,
  NAME_BYTES,
  statusOf,
  TAG,
  type WindowsSystem,
} from "./windows_system.ts";

const STATUS_INVALID_INFO_CLASS = 0xc0000003;
const STATUS_INVALID_PARAMETER = 0xc000000d;
const STATUS_NOT_SUPPORTED = 0xc00000bb;
const STATUS_NOT_IMPLEMENTED = 0xc0000002;
/** Access rights (<winnt.h>). */
export const ACCESS = {
  LIST_OR_READ: 0x1,
  WRITE_DATA: 0x2,
  APPEND_DATA: 0x4,
  TRAVERSE: 0x20,
  READ_ATTRIBUTES: 0x80,
  WRITE_ATTRIBUTES: 0x100,
  DELETE: 0x10000,
  SYNCHRONIZE: 0x100000,
} as const;
const DISPOSITION = { OPEN: 1, CREATE: 2, OPEN_IF: 3 } as const;
const OPTION = {
  DIRECTORY: 0x1,
  WRITE_THROUGH: 0x2,
  SYNCHRONOUS: 0x20,
  NOT_DIRECTORY: 0x40,
  BACKUP: 0x4000,
  REPARSE_POINT: 0x200000,
} as const;
const SHARE_ALL = 7;
const OBJ_CASE_INSENSITIVE = 0x40;
const FSCTL_GET_REPARSE_POINT = 0x900a8;
/** FILE_DISPOSITION_DELETE, POSIX_SEMANTICS and IGNORE_READONLY_ATTRIBUTE; FILE_RENAME_REPLACE and POSIX_SEMANTICS. */
const DELETE_AT_ONCE = 0x1 | 0x2 | 0x10;
const REPLACE_AT_ONCE = 0x1 | 0x2;
const OBJECT_BYTES = 48;
/** The longest name of an entry, in UTF-16 units. */
const MAX_NAME_UNITS = 255;

/** Whether the system or the file system lacks a class of information. */
function isUnknownClass(status: number): boolean {
  return status === STATUS_INVALID_INFO_CLASS || status === STATUS_INVALID_PARAMETER ||
    status === STATUS_NOT_SUPPORTED || status === STATUS_NOT_IMPLEMENTED;
}

/** The access, sharing and options with which an entry is opened. */
interface Opening {
  readonly access: number;
  readonly disposition?: number;
  readonly options?: number;
  /** Follows a reparse point; only for paths of the host. */
  readonly follow?: boolean;
}

export class Entries {
  readonly #system: WindowsSystem;
  readonly #descriptors: Descriptors;

  constructor(system: WindowsSystem, descriptors: Descriptors) {
    this.#system = system;
    this.#descriptors = descriptors;
  }

  open(fd: number, path: string, flags: number): number {
    const writes = (flags & (O.WRONLY | O.RDWR)) !== 0;
    const reads = (flags & O.WRONLY) === 0;
    const isDirectory = (flags & O.DIRECTORY) !== 0;
    const base = (reads ? ACCESS.LIST_OR_READ | ACCESS.TRAVERSE : 0) |
      (writes ? ACCESS.WRITE_DATA | ACCESS.APPEND_DATA : 0);
    const disposition = (flags & O.CREAT) === 0
      ? DISPOSITION.OPEN
      : (flags & O.EXCL) !== 0
      ? DISPOSITION.CREATE
      : DISPOSITION.OPEN_IF;
    const options = (isDirectory ? OPTION.DIRECTORY : writes || (flags & O.CREAT) !== 0 ? OPTION.NOT_DIRECTORY : 0) |
      ((flags & O.DSYNC) !== 0 ? OPTION.WRITE_THROUGH : 0);
    if (isDirectory && writes) return this.with(fd, path, { access: 0, options: OPTION.DIRECTORY }, () => E.ISDIR);
    const opening = { disposition, options, follow: fd === AT.FDCWD };
    // The right to set times comes with the descriptor, unless the file's owner refuses it.
    let handle = this.#openName(fd, path, { ...opening, access: base | ACCESS.WRITE_ATTRIBUTES });
    if (handle === E.ACCES || handle === E.ROFS) handle = this.#openName(fd, path, { ...opening, access: base });
    return typeof handle === "number" ? handle : this.#finishOpen(handle, flags);
  }

  /** Refuses links, truncates where that is wanted, and gives the handle a number. */
  #finishOpen(handle: bigint, flags: number): number {
    const facts = this.#system.attributeTag(handle);
    if (facts.isLink) return this.#refuse(handle, E.LOOP);
    // A device, such as `nul`, opens as a directory, too.
    if ((flags & O.DIRECTORY) !== 0 && !facts.isDirectory) return this.#refuse(handle, E.NOTDIR);
    if ((flags & O.TRUNC) !== 0 && !facts.isDirectory) {
      const error = this.#system.setEnd(handle, 0n);
      if (error < 0) return this.#refuse(handle, error);
    }
    return this.#descriptors.add(handle, facts.isDirectory, (flags & O.APPEND) !== 0);
  }

  makeDirectory(fd: number, path: string): number {
    const options = OPTION.DIRECTORY;
    return this.with(fd, path, { access: 0, disposition: DISPOSITION.CREATE, options }, () => 0);
  }

  remove(fd: number, path: string, flags: number): number {
    if (path === ".") return (flags & AT.REMOVEDIR) !== 0 ? E.INVAL : E.ISDIR;
    const options = (flags & AT.REMOVEDIR) !== 0 ? OPTION.DIRECTORY : OPTION.NOT_DIRECTORY;
    if (path.endsWith("/") && options === OPTION.NOT_DIRECTORY) {
      return this.with(fd, path, { access: 0 }, () => E.ISDIR);
    }
    return this.with(fd, path, { access: ACCESS.DELETE, options }, (handle) => {
      this.#system.structures.setUint32(AT_INFO, DELETE_AT_ONCE, true);
      let status = this.#system.set(handle, INFO.DISPOSITION_EX, 4);
      if (isUnknownClass(status)) {
        this.#system.structures.setUint32(AT_INFO, 1, true);
        status = this.#system.set(handle, INFO.DISPOSITION, 1);
      }
      return failureOf(status);
    });
  }

  /** Renames or links an entry. */
  move(info: typeof INFO.RENAME_EX | typeof INFO.LINK, fd: number, path: string, to: number, target: string): number {
    const directory = this.#descriptors.opened(to);
    if (directory === undefined) return E.BADF;
    const name = target.replace(/\/+$/, "");
    if (!isWindowsName(name)) return name === "." ? E.BUSY : E.INVAL;
    if (name.length > MAX_NAME_UNITS) return E.NAMETOOLONG;
    if (info === INFO.LINK) {
      if (target !== name) {
        const found = this.with(to, name, { access: 0 }, () => 1);
        return found > 0 ? E.EXIST : E.NOENT;
      }
      return this.with(fd, path, { access: ACCESS.WRITE_ATTRIBUTES }, (handle) => {
        if (this.#system.attributeTag(handle).isDirectory) return E.PERM;
        return failureOf(this.#setName(handle, INFO.LINK, 0, directory.handle, name));
      });
    }
    if (path === ".") return E.BUSY;
    return this.with(fd, path, { access: ACCESS.DELETE }, (handle) => {
      const source = this.#system.attributeTag(handle);
      if (!source.isDirectory && target !== name) return E.NOTDIR;
      // The system replaces an entry by its short name, too.
      if (this.#isShortName(directory.handle, name)) return E.INVAL;
      const kinds = this.with(to, name, { access: 0 }, (old) => this.#system.attributeTag(old).isDirectory ? 1 : 2);
      if (kinds === 1 && !source.isDirectory) return E.ISDIR;
      if (kinds === 2 && source.isDirectory) return E.NOTDIR;
      const moved = this.#rename(handle, directory.handle, name);
      if (kinds !== 1 || (moved !== E.ACCES && moved !== E.EXIST)) return moved;
      // A file system without POSIX renames replaces no directory, not even an empty one.
      if (this.#isSame(handle, to, name)) return 0;
      const removed = this.remove(to, name, AT.REMOVEDIR);
      return removed < 0 ? removed : this.#rename(handle, directory.handle, name);
    });
  }

  /**
   * The target of a symbolic link, with slashes. A junction, and a link with an absolute target, yield a path that
   * begins with a slash, which WASI refuses as one outside every directory.
   */
  readLink(fd: number, path: string, at: number, bytes: number): number {
    return this.with(fd, path, { access: 0 }, (handle) => {
      if (!this.#system.attributeTag(handle).isLink) return E.INVAL;
      const { call, scratch, view } = this.#system;
      const status = statusOf(
        // deno-fmt-ignore
        call("NtFsControlFile", handle, 0, 0, 0, scratch + AT_IO_STATUS, FSCTL_GET_REPARSE_POINT, 0, 0, scratch + AT_INFO, INFO_BYTES),
      );
      if (!isGood(status)) return errorOf(status);
      const encoded = new TextEncoder().encode(this.#linkTarget());
      const length = Math.min(encoded.length, bytes);
      new Uint8Array(view(at, bytes).buffer).set(encoded.subarray(0, length));
      return length;
    });
  }

  /** Opens a name, uses the handle and closes it. */
  with(fd: number, name: string, opening: Opening, use: (handle: bigint) => number): number {
    const handle = this.#openName(fd, name, opening);
    if (typeof handle === "number") return handle;
    try {
      return use(handle);
    } finally {
      this.#system.call("NtClose", handle);
    }
  }

  /**
   * Opens `name` in the directory `fd`, or a path of the host: a handle, or −errno. A trailing slash needs a directory.
   */
  #openName(fd: number, name: string, opening: Opening): bigint | number {
    const { access, disposition = DISPOSITION.OPEN, options = 0, follow = false } = opening;
    let root = 0n;
    let target: string;
    let plain = name;
    if (fd === AT.FDCWD) target = this.#hostPath(name);
    else {
      const directory = this.#descriptors.opened(fd);
      if (directory === undefined) return E.BADF;
      plain = name.replace(/\/+$/, "");
      if (/^(?:\.\.\/)*\.$/.test(plain) && plain !== ".") {
        target = this.#hostPath(this.#pathAbove(directory.handle, plain));
      } else {
        if (plain !== "." && !isWindowsName(plain)) return E.INVAL;
        if (plain.length > MAX_NAME_UNITS) return E.NAMETOOLONG;
        root = directory.handle;
        target = plain === "." ? "" : plain;
      }
    }
    if (target.length > NAME_BYTES / 2 - 1) return E.NAMETOOLONG;
    const needsDirectory = plain !== name ? OPTION.DIRECTORY : 0;
    const flags = OPTION.SYNCHRONOUS | OPTION.BACKUP | (follow ? 0 : OPTION.REPARSE_POINT) | options | needsDirectory;
    const handle = this.#create(root, target, access, disposition, flags);
    if (typeof handle === "number" || root === 0n || !plain.includes("~")) return handle;
    return this.#isItsName(handle, plain) ? handle : this.#refuse(handle, E.NOENT);
  }

  /** NtCreateFile: the handle, or −errno. */
  #create(root: bigint, target: string, access: number, disposition: number, options: number): bigint | number {
    const { call, scratch } = this.#system;
    const attributes = this.#attributes(root, target);
    const wanted = access | ACCESS.SYNCHRONIZE | ACCESS.READ_ATTRIBUTES;
    const [handleAt, statusAt] = [scratch + AT_WORDS, scratch + AT_IO_STATUS];
    const status = statusOf(
      // deno-fmt-ignore
      call("NtCreateFile", handleAt, wanted, attributes, statusAt, 0, ATTRIBUTE.NORMAL, SHARE_ALL, disposition, options, 0, 0),
    );
    return isGood(status) ? this.#system.structures.getBigUint64(AT_WORDS, true) : errorOf(status);
  }

  #refuse(handle: bigint, error: number): number {
    this.#system.call("NtClose", handle);
    return error;
  }

  /** Whether this is the entry's own name, not the short one that the file system made for it. */
  #isItsName(handle: bigint, name: string): boolean {
    const { call, scratch } = this.#system;
    const length = Number(
      call("GetFinalPathNameByHandleW", handle, scratch + AT_INFO, INFO_BYTES / 2, 0) & 0xffffffffn,
    );
    const own = this.#system.wideText(AT_INFO, length);
    return own.slice(own.lastIndexOf("\\") + 1).toLowerCase() === name.toLowerCase();
  }

  /** Whether the directory has an entry with another name whose short name this is. */
  #isShortName(directory: bigint, name: string): boolean {
    if (!name.includes("~")) return false;
    const options = OPTION.SYNCHRONOUS | OPTION.BACKUP | OPTION.REPARSE_POINT;
    const handle = this.#create(directory, name, 0, DISPOSITION.OPEN, options);
    if (typeof handle === "number") return false;
    try {
      return !this.#isItsName(handle, name);
    } finally {
      this.#system.call("NtClose", handle);
    }
  }

  /** Writes OBJECT_ATTRIBUTES of `name` in the directory of handle `root`; returns its address. */
  #attributes(root: bigint, name: string): number {
    const { scratch } = this.#system;
    const view = this.#system.structures;
    for (let k = 0; k < name.length; k++) view.setUint16(AT_NAME + 2 * k, name.charCodeAt(k), true);
    view.setUint16(AT_STRING, 2 * name.length, true);
    view.setUint16(AT_STRING + 2, 2 * name.length, true);
    view.setBigUint64(AT_STRING + 8, BigInt(scratch + AT_NAME), true);
    view.setBigUint64(AT_OBJECT, BigInt(OBJECT_BYTES), true);
    view.setBigUint64(AT_OBJECT + 8, root, true);
    view.setBigUint64(AT_OBJECT + 16, BigInt(scratch + AT_STRING), true);
    view.setBigUint64(AT_OBJECT + 24, BigInt(OBJ_CASE_INSENSITIVE), true);
    view.setBigUint64(AT_OBJECT + 32, 0n, true);
    view.setBigUint64(AT_OBJECT + 40, 0n, true);
    return scratch + AT_OBJECT;
  }

  /** The path of NT for a path of the host, through the current directory. */
  #hostPath(given: string): string {
    const { call, scratch } = this.#system;
    const path = /^[A-Za-z]:$/.test(given) ? `${given}\\` : given; // else the current directory of that drive
    if (path.length * 2 >= NAME_BYTES) return "";
    for (let k = 0; k <= path.length; k++) {
      this.#system.structures.setUint16(AT_NAME + 2 * k, k < path.length ? path.charCodeAt(k) : 0, true);
    }
    const units = INFO_BYTES / 2;
    const length = Number(call("GetFullPathNameW", scratch + AT_NAME, units, scratch + AT_INFO, 0) & 0xffffffffn);
    const full = this.#system.wideText(AT_INFO, length < units ? length : 0);
    if (/^\\\\[?.]\\/.test(full)) return `\\??\\${full.slice(4)}`;
    return full.startsWith("\\\\") ? `\\??\\UNC\\${full.slice(2)}` : `\\??\\${full}`;
  }

  /** The path of an open directory with `..` steps behind it, as the host names it. */
  #pathAbove(handle: bigint, steps: string): string {
    const { call, scratch } = this.#system;
    const length = Number(
      call("GetFinalPathNameByHandleW", handle, scratch + AT_INFO, INFO_BYTES / 2, 0) & 0xffffffffn,
    );
    const base = this.#system.wideText(AT_INFO, length).replace(/^\\\\\?\\(?:UNC\\)?/, "");
    return `${base}\\${steps.replaceAll("/", "\\")}`;
  }

  /** Gives an entry another name, in place of an entry that has it. */
  #rename(handle: bigint, directory: bigint, name: string): number {
    const status = this.#setName(handle, INFO.RENAME_EX, REPLACE_AT_ONCE, directory, name);
    return failureOf(isUnknownClass(status) ? this.#setName(handle, INFO.RENAME, 1, directory, name) : status);
  }

  /** Whether this is the entry `name` of a directory. */
  #isSame(handle: bigint, fd: number, name: string): boolean {
    const identity = (of: bigint) =>
      isGood(this.#system.query(of, INFO.INTERNAL, 8)) ? this.#system.structures.getBigUint64(AT_INFO, true) : 0n;
    const own = identity(handle);
    return this.with(fd, name, { access: 0 }, (other) => identity(other) === own ? 1 : 0) === 1;
  }

  /** Sets FILE_RENAME_INFORMATION or FILE_LINK_INFORMATION: NTSTATUS. */
  #setName(handle: bigint, info: number, flags: number, directory: bigint, name: string): number {
    const view = this.#system.structures;
    view.setBigUint64(AT_INFO, BigInt(flags), true);
    view.setBigUint64(AT_INFO + 8, directory, true);
    view.setUint32(AT_INFO + 16, 2 * name.length, true);
    for (let k = 0; k < name.length; k++) view.setUint16(AT_INFO + 20 + 2 * k, name.charCodeAt(k), true);
    return this.#system.set(handle, info, 24 + 2 * name.length);
  }

  /** The target in the REPARSE_DATA_BUFFER of the scratch memory. */
  #linkTarget(): string {
    const view = this.#system.structures;
    const isSymlink = view.getUint32(AT_INFO, true) === TAG.SYMLINK;
    const [offset, length] = [view.getUint16(AT_INFO + 8, true), view.getUint16(AT_INFO + 10, true)];
    const isRelative = isSymlink && (view.getUint32(AT_INFO + 16, true) & 1) !== 0;
    const target = this.#system.wideText(AT_INFO + (isSymlink ? 20 : 16) + offset, length / 2).replaceAll("\\", "/");
    return isRelative && !/^[A-Za-z]:/.test(target) ? target : `/${target}`;
  }
}
