// Sessions: a file for each, to which a line is added with each step. Clients hold tokens of them,
// which are signed: `wr1.PAYLOAD.SIGNATURE`.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { type FileHandle, open, readFile, rm } from "node:fs/promises";

import { z } from "zod";

import { type Reason, ackFailure, tokenFailure, unhealthy } from "./failures.js";

const VERSION = "wr1";
const EVENT_VERSION = 1;

const Token = z.object({
  /** What it is for: to show where a session stands, or to say that its step is done. */
  scope: z.enum(["state", "ack"]),
  session: z.string(),
  /** How many steps were done. */
  node: z.number().int(),
  workflow: z.string(),
  hash: z.string(),
});
export type Token = z.infer<typeof Token>;

export function sign(token: Token, key: Buffer): string {
  const signed = `${VERSION}.${Buffer.from(JSON.stringify(token)).toString("base64url")}`;
  return `${signed}.${mac(key, signed).toString("base64url")}`;
}

/** The content of a token, if its signature is valid and it is for this purpose. */
export function readToken(text: string, key: Buffer, scope: Token["scope"]): Token {
  const [, version, payload, signature] = /^(wr\d+)\.([\w-]+)\.([\w-]+)$/.exec(text) ?? [];
  if (version === undefined || payload === undefined || signature === undefined) {
    throw tokenFailure("TOKEN_INVALID_FORMAT");
  }
  if (version !== VERSION) throw tokenFailure("TOKEN_UNSUPPORTED_VERSION");
  const [given, right] = [Buffer.from(signature, "base64url"), mac(key, `${version}.${payload}`)];
  if (given.length !== right.length || !timingSafeEqual(given, right)) {
    throw tokenFailure("TOKEN_BAD_SIGNATURE");
  }
  const token = Token.safeParse(JSON.parse(Buffer.from(payload, "base64url").toString()));
  if (!token.success) throw tokenFailure("TOKEN_INVALID_FORMAT");
  if (token.data.scope !== scope) throw tokenFailure("TOKEN_SCOPE_MISMATCH");
  return token.data;
}

const mac = (key: Buffer, signed: string): Buffer => createHmac("sha256", key).update(signed).digest();

/** Runs something while no other process uses the session. */
export async function exclusively<T>(path: string, work: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`;
  const held = await open(lock, "wx").catch((error: NodeJS.ErrnoException) => {
    throw error.code === "EEXIST" ? tokenFailure("TOKEN_SESSION_LOCKED") : unusable(error);
  });
  try {
    return await work();
  } finally {
    await held.close();
    await rm(lock, { force: true });
  }
}

/** How many events there are, if all of them are valid. */
export async function events(path: string): Promise<number> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT" ? ackFailure({ kind: "missing_node_or_run" }) : unusable(error);
  });
  const lines = text.split("\n").slice(0, -1);
  if (lines.length === 0) throw corrupt(0, "The event log is empty");
  lines.forEach((line, index) => {
    const event = parsed(line, index);
    if (typeof event.v === "number" && event.v > EVENT_VERSION) {
      const known = { code: "UNKNOWN_EVENT_VERSION", message: `Event ${index} has version ${event.v}` };
      throw unhealthy({ kind: "unknown_version", reason: known });
    }
    if (event.v !== EVENT_VERSION || event.index !== index) {
      throw corrupt(index, "Event log index mismatch");
    }
  });
  return lines.length;
}

/** Adds what was known at the beginning, or what a step brought. */
export async function append(path: string, index: number, brought: unknown): Promise<void> {
  const line = `${JSON.stringify({ v: EVENT_VERSION, index, brought })}\n`;
  let file: FileHandle | undefined;
  try {
    file = await open(path, "a", 0o600);
    await file.write(line);
    await file.datasync();
  } catch (error) {
    throw unusable(error as NodeJS.ErrnoException);
  } finally {
    await file?.close();
  }
}

function parsed(line: string, index: number): { v?: unknown; index?: unknown } {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw corrupt(index, (error as Error).message);
  }
}

function corrupt(index: number, message: string): Error {
  const why: Reason = { code: "STORE_INVARIANT_VIOLATION", message };
  return unhealthy({ kind: index === 0 ? "corrupt_head" : "corrupt_tail", reason: why });
}

export function unusable({ code = "EIO", message }: NodeJS.ErrnoException): Error {
  return ackFailure({ kind: "session_store_error", error: { code, message } });
}

/** The key that signs tokens; generated if it does not exist, readable only by its owner. */
export async function keyOf(path: string): Promise<Buffer> {
  const fresh = await open(path, "wx", 0o600).catch(() => undefined);
  await fresh?.write(randomBytes(64));
  await fresh?.close();
  return await readFile(path);
}
