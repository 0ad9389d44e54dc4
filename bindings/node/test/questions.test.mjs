// What the protocol asks of clients in the shape of an error or a result is no failure.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client as ClientV2, InMemoryTransport as MemoryV2 } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { InMemoryTaskMessageQueue, InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { CallToolResultSchema, UrlElicitationRequiredError } from "@modelcontextprotocol/sdk/types.js";
import { McpServer as McpServerV2, acceptedContent, createMcpHandler, inputRequired } from "@modelcontextprotocol/server";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { withContract } from "faultwire";

import { records, scratch } from "./lib/connect.mjs";

test("a URL elicitation passes as the error that it is, and is not recorded", async () => {
  const audit = scratch();
  const server = withContract(new McpServer({ name: "s", version: "1" }), { audit });
  const elicitations = [{ mode: "url", message: "Sign in", url: "https://example.com/", elicitationId: "1" }];
  server.registerTool("ask", { inputSchema: {} }, () => { throw new UrlElicitationRequiredError(elicitations); });
  const client = new Client({ name: "test", version: "1" });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  const error = await client.callTool({ name: "ask" }).catch((e) => e);
  assert.equal(error.code, -32042);
  assert.deepEqual(error.elicitations, elicitations);
  assert.deepEqual(records(audit).filter((record) => record.type === "fault"), []);
});

/** A server that asks for a name before it greets. */
function greeter(audit) {
  const server = withContract(new McpServerV2({ name: "s", version: "2" }), { audit });
  const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  server.registerTool("greet", {}, (_args, context) => {
    const { mcpReq } = context ?? _args;
    const given = acceptedContent(mcpReq.inputResponses, "who");
    if (given) return { content: [{ type: "text", text: `Hello ${given.name}` }] };
    return inputRequired({ inputRequests: { who: inputRequired.elicit({ message: "Who?", requestedSchema }) } });
  });
  return server;
}

/** A client that answers. */
function answering(options) {
  const client = new ClientV2({ name: "test", version: "1" }, { ...options, capabilities: { elicitation: {} } });
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { name: "Ada" } }));
  return client;
}

test("a result that requires input passes, in both eras", async () => {
  const audit = scratch();
  const legacy = answering({});
  const [here, there] = MemoryV2.createLinkedPair();
  await Promise.all([greeter(audit).connect(there), legacy.connect(here)]);
  assert.equal((await legacy.callTool({ name: "greet" })).content[0].text, "Hello Ada");

  const handler = createMcpHandler(() => greeter(audit));
  const modern = answering({ versionNegotiation: { mode: "auto" } });
  await modern.connect(new StreamableHTTPClientTransport(new URL("http://localhost/mcp"), { fetch: (url, init) => handler.fetch(new Request(url, init)) }));
  assert.equal((await modern.callTool({ name: "greet" })).content[0].text, "Hello Ada");
  assert.deepEqual(records(audit).filter((record) => record.type === "fault"), []);
});

test("a tool that runs as a task of 1.x passes, and so does its result", async () => {
  const [taskStore, taskMessageQueue] = [new InMemoryTaskStore(), new InMemoryTaskMessageQueue()];
  const capabilities = { tasks: { requests: { tools: { call: {} } }, list: {}, cancel: {} } };
  const server = withContract(new McpServer({ name: "s", version: "1" }, { capabilities, taskStore, taskMessageQueue }), { audit: false });
  const result = { content: [{ type: "text", text: "done" }] };
  server.experimental.tasks.registerToolTask("slow", { inputSchema: {}, execution: { taskSupport: "required" } }, {
    createTask: async (_args, { taskStore: tasks }) => {
      const task = await tasks.createTask({ ttl: 60_000, pollInterval: 20 });
      setTimeout(() => tasks.storeTaskResult(task.taskId, "completed", result), 50);
      return { task };
    },
    getTask: (_args, { taskId, taskStore: tasks }) => tasks.getTask(taskId),
    getTaskResult: (_args, { taskId, taskStore: tasks }) => tasks.getTaskResult(taskId),
  });
  const client = new Client({ name: "test", version: "1" });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  await client.listTools();
  const told = [];
  for await (const message of client.experimental.tasks.callToolStream({ name: "slow", arguments: {} }, CallToolResultSchema)) told.push(message);
  assert.equal(told[0].type, "taskCreated");
  assert.deepEqual(told.at(-1).result.content, result.content);
  taskStore.cleanup();
  await client.close();
});
