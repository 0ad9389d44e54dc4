// Places in a workspace. No path leads out of it, links included.

import { createHash, randomUUID } from "node:crypto";
import { lstat, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";

import { SYSTEM_ERROR_CODES as CODES, SystemError } from "./system-error.mjs";

/** Larger files are not read as a whole. */
const LARGEST = 8 << 20;

export const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

export const refuse = (code, human_message, cause) =>
  SystemError.toolFailure(code, { human_message, cause });

/** What a promise gives; a failure of it is one of this code. */
export const under = (code, promise) =>
  promise.catch((cause) => {
    throw refuse(code, undefined, cause);
  });

const isWithin = (root, path) => path === root || path.startsWith(root + sep);

/** The place of a path, whether something is there or not. */
export async function find(root, path) {
  if (path.split(/[/\\]/).includes("..")) throw refuse(CODES.PATH_TRAVERSAL_BLOCKED);
  const named = resolve(root, path);
  if (!isWithin(root, named)) throw refuse(CODES.OUTSIDE_WORKSPACE);
  if (named === root || path.includes("\0")) throw refuse(CODES.INVALID_PATH, "That is no file");
  const found = await lstat(named).catch((error) => {
    if (error.code === "ENOENT") return undefined;
    throw refuse(CODES.INVALID_PATH, undefined, error);
  });
  // A link counts as its target; a dangling link could be pointed anywhere.
  const absolute = found
    ? await under(CODES.INVALID_PATH, realpath(named))
    : join(await under(CODES.PATH_NOT_FOUND, realpath(dirname(named))), basename(named));
  if (!isWithin(root, absolute)) throw refuse(CODES.OUTSIDE_WORKSPACE);
  return { absolute, relative: relative(root, absolute), lies: (directory) => isWithin(join(root, directory), absolute) };
}

/** The text of the file there. */
export async function read(place) {
  const bytes = await bytesOf(place);
  if (bytes === undefined) throw refuse(CODES.FILE_NOT_FOUND);
  return textOf(bytes, CODES.FILE_READ_FAILED);
}

export function textOf(bytes, code) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw refuse(code, "The file is no UTF-8 text", cause);
  }
}

/** What is there now, if it is still what the caller has seen. */
export async function unchanged(place, seen) {
  const found = await lstat(place.absolute).catch(() => undefined);
  if (found?.isDirectory()) throw refuse(CODES.FILE_WRITE_FAILED, "That is a directory");
  const bytes = await bytesOf(place);
  if (bytes === undefined && seen === undefined) return Buffer.alloc(0);
  if (bytes === undefined) throw refuse(CODES.FILE_NOT_FOUND);
  if (seen === undefined) throw refuse(CODES.FILE_ALREADY_EXISTS);
  if (seen !== sha256(bytes)) throw refuse(CODES.HASH_MISMATCH);
  return bytes;
}

/** Nothing, or a regular file: a pipe could block. */
async function bytesOf({ absolute }) {
  const found = await lstat(absolute).catch((error) => {
    if (error.code === "ENOENT") return undefined;
    throw refuse(CODES.FILE_READ_FAILED, undefined, error);
  });
  if (found === undefined) return undefined;
  if (!found.isFile() || found.size > LARGEST) {
    throw refuse(CODES.FILE_READ_FAILED, `That is no plain file of at most ${LARGEST} bytes`);
  }
  return await under(CODES.FILE_READ_FAILED, readFile(absolute));
}

/** Replaces a file atomically; it keeps its mode. */
export async function write({ absolute }, content) {
  const mode = await lstat(absolute).then((found) => found.mode & 0o777, () => 0o644);
  if ((mode & 0o222) === 0) throw refuse(CODES.INSUFFICIENT_PERMISSIONS);
  const beside = join(dirname(absolute), `.kaiza-${randomUUID()}`);
  try {
    await writeFile(beside, content, { flag: "wx", mode });
    await rename(beside, absolute);
  } catch (cause) {
    await rm(beside, { force: true });
    throw refuse(CODES.FILE_WRITE_FAILED, undefined, cause);
  }
}
