/**
 * Checks whether other users of the machine can change a file, or replace it by another one. In: metadata, or a path.
 * Out: the reason, as text that follows the path in a message; undefined if only the user and root can. Invariant:
 * every directory and symbolic link on a path is checked, because the owner of a directory can rename its entries.
 * Windows has access control lists in place of permission bits, so nothing is checked there; lists of other systems
 * count only as far as the permission bits show them.
 */
import { type FileFacts, linkFacts, linkTarget, readFile } from "./files.ts";
import { currentDirectory, currentUser } from "./process.ts";

/** Permission bits: writing by the group and by others; entries of a directory can be renamed by their owners only. */
const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;
/** Most symbolic links on the way to a file, as on Linux. */
const MAX_LINKS = 40;

/** The reason why other users could have written a file or a directory with this owner, group and mode. */
export function writableBy({ uid, gid, mode }: Pick<FileFacts, "uid" | "gid" | "mode">): string | undefined {
  return ownedBy(uid) ?? openTo(uid, gid, mode);
}

function ownedBy(uid: number): string | undefined {
  const user = currentUser();
  return user === undefined || uid === user || uid === 0 ? undefined : `belongs to another user (${uid})`;
}

function openTo(uid: number, gid: number, mode: number): string | undefined {
  if (currentUser() === undefined) return undefined;
  if ((mode & OTHERS_WRITE) !== 0) return "can be written by every user";
  if ((mode & GROUP_WRITES) === 0) return undefined;
  // A group with the number of its user is that user's own, as most systems set it up, unless others were added to it.
  if (gid !== uid && gid !== 0) return `can be written by the group ${gid}`;
  const member = otherMember(gid);
  return member && `can be written by the user ${member} of the group ${gid}`;
}

const others = new Map<number, string | undefined>();

/**
 * A member of a group other than the user and root, by the system's files of groups and users; users of directory
 * services are members only where these files name them.
 */
function otherMember(group: number): string | undefined {
  if (!others.has(group)) {
    others.set(group, memberBesides(currentUser()!, group, textOf("/etc/group"), textOf("/etc/passwd")));
  }
  return others.get(group);
}

/**
 * The name of a member of `group` other than the user `own` and root; undefined if there is none. A user is a member if
 * the line of the group names it, or if the group is its primary one; of the group 0, which system accounts have, only
 * named members count.
 */
export function memberBesides(own: number, group: number, groups: string, users: string): string | undefined {
  const accounts = users.split("\n").map((line) => line.split(":"));
  const isOther = ([, , uid]: readonly string[]) => uid !== "0" && uid !== `${own}`;
  const primary = accounts.find((account) => account[3] === `${group}` && isOther(account));
  if (primary !== undefined && group !== 0) return primary[0];
  const named = groups.split("\n").map((line) => line.split(":")).filter(([, , gid]) => gid === `${group}`)
    .flatMap(([, , , members = ""]) => members.split(",")).filter((name) => name !== "");
  return named.find((name) => isOther(accounts.find((account) => account[0] === name) ?? []));
}

/** The text of a file; empty if it does not exist or cannot be read. */
function textOf(path: string): string {
  try {
    return new TextDecoder().decode(readFile(path));
  } catch {
    return "";
  }
}

/**
 * The first directory or symbolic link on the way to `path` by which another user can replace the file, with the
 * reason; undefined if there is none. `path` itself is judged only if it is a symbolic link.
 */
export function replaceableBy(path: string): { readonly path: string; readonly reason: string } | undefined {
  if (currentUser() === undefined) return undefined;
  const names = (path.startsWith("/") ? path : `${currentDirectory()}/${path}`).split("/");
  let at = "";
  for (let links = 0; names.length > 0;) {
    const name = names.shift();
    if (name === "..") at = at.slice(0, Math.max(at.lastIndexOf("/"), 0));
    if (name === "." || name === "..") continue;
    const next = name === "" ? at || "/" : `${at}/${name}`;
    const facts = factsOf(next);
    const target = facts?.kind === "other" ? targetOf(next) : undefined;
    const reason = facts && reasonAt(facts, target !== undefined, names.length > 0);
    if (reason !== undefined) return { path: next, reason };
    if (target === undefined) at = next === "/" ? "" : next;
    else if (links++ === MAX_LINKS) return { path: next, reason: "is one of too many symbolic links" };
    else {
      if (target.startsWith("/")) at = "";
      names.unshift(...target.split("/"));
    }
  }
  return undefined;
}

function reasonAt({ uid, gid, mode }: FileFacts, isLink: boolean, isAbove: boolean): string | undefined {
  if (!isLink && !isAbove) return undefined;
  return ownedBy(uid) ?? (isLink || (mode & STICKY) !== 0 ? undefined : openTo(uid, gid, mode));
}

/** Metadata of a path; undefined if it does not exist, or if the host does not permit reading it. */
function factsOf(path: string): FileFacts | undefined {
  try {
    return linkFacts(path);
  } catch {
    return undefined;
  }
}

/** The target of a symbolic link; undefined for other paths. */
function targetOf(path: string): string | undefined {
  try {
    return linkTarget(path);
  } catch {
    return undefined;
  }
}
