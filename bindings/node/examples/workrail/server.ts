// WorkRail as a server: workflows, one step at a time. Clients only hold signed tokens; each
// session has its own log of what was done.
//
//   node server.js DIR AUDIT
//
// DIR holds the `workflows`, the `sessions` and the `key` that signs tokens.
//
// The sixteen findings of its audit: every failure is thrown, and the boundary makes one envelope
// of it (1 to 5, 14, 15); suggestions are bounded and details checked there, too (11, 16); options
// are named (10); `Json` is the one type of JSON (12); the rest is in failures.ts.

import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";

import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { AuditLog, withContract } from "faultwire";
import { contract } from "faultwire/workrail";
import { z } from "zod";

import { ackFailure, tokenFailure, workflowFailure } from "./failures.js";
import { type Token, append, events, exclusively, keyOf, readToken, sign } from "./session.js";

const Start = z.object({
  workflowId: z.string(),
  /** What is known at the beginning. */
  context: z.record(z.string(), z.unknown()).default({}),
});
const Continue = z.object({
  stateToken: z.string(),
  /** Says that the step is done. Without it, the step is shown again. */
  ackToken: z.string().optional(),
  /** What the step brought. */
  output: z.record(z.string(), z.unknown()).optional(),
});

const Step = z.object({
  id: z.string(),
  prompt: z.string(),
  /** How often the step may be shown again. */
  repeats: z.number().optional(),
});
const Workflow = z.object({
  /** What must be known to begin. */
  requires: z.array(z.string()).default([]),
  steps: z.array(Step),
});
type Workflow = z.infer<typeof Workflow> & { hash: string };

async function workflow(dir: string, id: string): Promise<Workflow> {
  const path = join(dir, "workflows", `${id}.json`);
  const text = /^[A-Za-z0-9-]+$/.test(id) ? await readFile(path).catch(() => undefined) : undefined;
  if (text === undefined) {
    throw workflowFailure({ kind: "WorkflowNotFound", message: `There is no workflow ${id}` });
  }
  let read: z.infer<typeof Workflow>;
  try {
    read = Workflow.parse(JSON.parse(String(text)));
  } catch (error) {
    const message = `${id}: ${(error as Error).message}`;
    throw workflowFailure({ kind: "InvalidState", message });
  }
  const endless = read.steps.find((step) => step.repeats !== undefined && !(step.repeats > 0));
  if (endless !== undefined) {
    const message = `${id}: ${endless.id} repeats ${endless.repeats} times`;
    throw workflowFailure({ kind: "InvalidLoop", message });
  }
  return { ...read, hash: createHash("sha256").update(text).digest("hex") };
}

class WorkRail {
  readonly #dir: string;
  readonly #key: Buffer;

  constructor(dir: string, key: Buffer) {
    this.#dir = dir;
    this.#key = key;
  }

  async start({ workflowId, context }: z.infer<typeof Start>): Promise<string> {
    const known = await workflow(this.#dir, workflowId);
    const missing = known.requires.find((key) => !Object.hasOwn(context, key));
    if (missing !== undefined) {
      throw workflowFailure({ kind: "MissingContext", message: `The context lacks ${missing}` });
    }
    const session = randomUUID();
    await append(this.#path(session), 0, context);
    return this.#shown(known, { scope: "state", session, node: 0, workflow: workflowId, hash: known.hash });
  }

  async continue({ stateToken, ackToken, output }: z.infer<typeof Continue>): Promise<string> {
    const token = readToken(stateToken, this.#key, "state");
    const ack = ackToken === undefined ? undefined : readToken(ackToken, this.#key, "ack");
    if (ack !== undefined && (ack.session !== token.session || ack.node !== token.node)) {
      throw tokenFailure("TOKEN_SCOPE_MISMATCH");
    }
    const known = await workflow(this.#dir, token.workflow);
    if (known.hash !== token.hash) throw ackFailure({ kind: "workflow_hash_mismatch" });
    const path = this.#path(token.session);
    return await exclusively(path, async () => {
      const done = await events(path);
      if (token.node >= done) throw ackFailure({ kind: "missing_node_or_run" });
      if (ack === undefined) return this.#shown(known, token);
      const step = known.steps[token.node];
      if (step === undefined) throw ackFailure({ kind: "no_pending_step" });
      // An acknowledged step is not done twice, even with another output.
      if (token.node + 1 === done) await append(path, done, output ?? {});
      return this.#shown(known, { ...token, node: token.node + 1 });
    });
  }

  /** What a client sees of a session. */
  #shown(known: Workflow, token: Token): string {
    const step = known.steps[token.node];
    const stateToken = sign(token, this.#key);
    const ackToken = sign({ ...token, scope: "ack" }, this.#key);
    return JSON.stringify({ stateToken, ackToken, isComplete: step === undefined, step: step ?? null });
  }

  #path(session: string): string {
    return join(this.#dir, "sessions", session);
  }
}

const [dir, audit] = process.argv.slice(2);
if (dir === undefined || audit === undefined) throw new Error("usage: server.js DIR AUDIT");
await mkdir(join(dir, "sessions"), { recursive: true });
const rail = new WorkRail(dir, await keyOf(join(dir, "key")));
const log = AuditLog.open(audit);

serveStdio(() => {
  const server = withContract(new McpServer({ name: "workrail", version: "1.0.0" }), {
    contract,
    audit: log,
    deadlineMs: 2000,
  });
  const content = (text: string) => ({ content: [{ type: "text" as const, text }] });
  server.registerTool(
    "start_workflow",
    { description: "Starts a workflow, and shows its first step", inputSchema: Start },
    async (asked) => content(await rail.start(asked)),
  );
  server.registerTool(
    "continue_workflow",
    { description: "Shows the step of a workflow, or acknowledges it and shows the next", inputSchema: Continue },
    async (asked) => content(await rail.continue(asked)),
  );
  return server;
});

