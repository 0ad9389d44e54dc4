// KAIZA as a server: a workspace in which agents write under approved plans. Sessions begin with a
// role, and lock if a rule is broken. No path leads out of the workspace.
//
//   node server.mjs WORKSPACE AUDIT
//
// Plans are the files in its `docs/plans`, named by their SHA-256; `docs/reports` need none.

import { createHash, randomUUID } from "node:crypto";
import { realpathSync } from "node:fs";
import { mkdir, readFile, readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { AuditLog, withContract } from "faultwire";
import { z } from "zod";

import { find, read, refuse, sha256, unchanged, under, write } from "./place.mjs";
import { allows, patched, policyAllows } from "./plan.mjs";
import { SYSTEM_ERROR_CODES as CODES, SystemError, contract, wrapHandler } from "./system-error.mjs";

const ROLES = ["ANTIGRAVITY", "WINDSURF"];
/** Where something is written, and what allows it. */
const TARGET = {
  path: z.string().describe("A path in the workspace"),
  plan_hash: z.string().regex(/^[0-9a-f]{64}$/).optional().describe("The SHA-256 of the plan"),
  phase_id: z.string().optional().describe("The phase of the plan"),
  previous_hash: z.string().optional().describe("The SHA-256 of what is there now"),
};

class Kaiza {
  /** The session that was begun. */
  session;
  /** One writer at a time: the file must still be what the caller has seen. */
  #writing = Promise.resolve();

  constructor(root, audit) {
    Object.assign(this, { root, audit });
  }

  async begin({ role }) {
    if (this.session !== undefined && this.session.role !== role) {
      throw refuse(CODES.ROLE_MISMATCH, "The session has another role");
    }
    await under(CODES.SESSION_INITIALIZATION_FAILED, readdir(this.root));
    this.session = { id: randomUUID(), role, workspaceRoot: this.root };
    return JSON.stringify({ session_id: this.session.id });
  }

  async end() {
    this.session = undefined;
    return "ended";
  }

  async read({ path }) {
    const text = await read(await find(this.root, path));
    return JSON.stringify({ sha256: sha256(text), text });
  }

  /** Changes a file, and names plan and phase if that fails. */
  async write(target, change) {
    const { plan_hash, phase_id } = target;
    const mine = this.#writing.then(() => this.#change(target, change));
    this.#writing = mine.catch(() => undefined);
    try {
      return await mine;
    } catch (error) {
      throw SystemError.fromUnknown(error, { plan_hash, phase_id });
    }
  }

  /** Changes a file, if role, plan, policy and the file itself allow it. */
  async #change({ path, plan_hash, previous_hash }, change) {
    if (this.session === undefined) throw refuse(CODES.SESSION_NOT_INITIALIZED);
    const place = await find(this.root, path);
    await this.#authorize(place, plan_hash);
    const content = change(await unchanged(place, previous_hash));
    await policyAllows(place, content);
    await write(place, content);
    return JSON.stringify({ sha256: sha256(content) });
  }

  async #authorize(place, plan_hash) {
    const writesDocuments = this.session.role === "ANTIGRAVITY";
    if (writesDocuments ? place.lies("docs") : place.lies("docs/reports")) return;
    if (writesDocuments || place.lies("docs/plans")) {
      throw refuse(CODES.UNAUTHORIZED_ACTION, "Others write there");
    }
    await allows(this.root, plan_hash, place);
  }

  /** The newest records, if each still carries the hash of the one before it. */
  async log({ last }) {
    const text = await readFile(join(this.audit, "audit-log.jsonl"), "utf8");
    const lines = text.split("\n").slice(0, -1);
    lines.slice(1).forEach((line, at) => {
      const before = createHash("sha256").update("\0").update(lines[at]).digest("hex");
      if (!line.includes(`"prev":"${before}"`)) {
        const human_message = `Record ${at + 1} of the audit log was changed`;
        throw SystemError.invariantViolation("AUDIT_LOG_INTACT", { human_message });
      }
    });
    return lines.slice(-last).reverse().join("\n");
  }
}

function served(kaiza, log) {
  const server = withContract(new McpServer({ name: "kaiza", version: "1.0.0" }), {
    contract,
    audit: log,
    deadlineMs: 2000,
    session: () => kaiza.session ?? {},
  });
  const tool = (name, description, inputSchema, handler, annotations = {}) =>
    server.registerTool(name, { description, inputSchema, annotations }, wrapHandler(name, handler));
  const reading = { readOnlyHint: true };
  tool("begin_session", "Begins a session in a role, or begins it again", { role: z.enum(ROLES) }, (it) => kaiza.begin(it));
  tool("end_session", "Ends the session", {}, () => kaiza.end());
  tool("read_file", "Reads a file", { path: TARGET.path }, (it) => kaiza.read(it), reading);
  tool("write_file", "Writes a file under a plan", { ...TARGET, content: z.string() }, (it) =>
    kaiza.write(it, () => it.content));
  tool("apply_patch", "Applies a patch to a file under a plan", { ...TARGET, patch: z.string() }, (it) =>
    kaiza.write(it, (now) => patched(now, it.patch)));
  tool("read_audit_log", "Reads the audit log", { last: z.number().int().min(1).max(100) }, (it) => kaiza.log(it), reading);
  return server;
}

/** The program audits itself before it serves (K15). */
async function start([root, audit]) {
  const failure = (code, cause) =>
    SystemError.startupFailure(code, { human_message: cause.message, cause });
  const places = async () => {
    await readdir(root);
    await mkdir(audit, { recursive: true });
    const [workspace, records] = [await realpath(root), await realpath(audit)];
    // With the log's key, another log could be written.
    if (records.startsWith(workspace + sep)) throw new Error("The audit log cannot be in the workspace");
    return [workspace, records];
  };
  const known = await places().catch((error) => {
    throw failure(CODES.BOOTSTRAP_FAILURE, error);
  });
  try {
    return served(new Kaiza(...known), AuditLog.open(realpathSync(audit)));
  } catch (error) {
    throw failure(error.isLocked ? CODES.AUDIT_LOCK_FAILED : CODES.SELF_AUDIT_FAILURE, error);
  }
}

try {
  const server = await start(process.argv.slice(2));
  await server.connect(new StdioServerTransport());
} catch (error) {
  const failure = SystemError.fromUnknown(error, { error_code: CODES.BOOTSTRAP_FAILURE });
  console.error(SystemError.toEnvelope(failure));
  process.exitCode = 1;
}
