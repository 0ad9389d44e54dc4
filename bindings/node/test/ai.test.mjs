// What a model reads of a tool's failure, through the Vercel AI SDK.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { generateText, stepCountIs } from "ai";
import * as mocks from "ai/test";
import { withContract } from "faultwire";
import { aiTools } from "faultwire/ai";
import * as errors from "faultwire/standard";

const Model = Object.entries(mocks).filter(([name]) => /^MockLanguageModelV\d$/.test(name)).sort().at(-1)[1];
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const text = (words) => ({ content: [{ type: "text", text: words }] });

/** What the model reads as the output of a tool that it calls. */
async function read(tool) {
  const server = withContract(new McpServer({ name: "s", version: "1" }), { audit: false });
  server.registerTool("warm", { inputSchema: {} }, () => text("21 degrees"));
  server.registerTool("missing", { inputSchema: {} }, () => { throw errors.notFound({ message: "No city Oslö" }); });
  server.registerTool("crashes", { inputSchema: {} }, () => { throw new Error("secret=hunter2hunter2"); });
  const client = new Client({ name: "test", version: "1" });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  const prompts = [];
  const model = new Model({
    doGenerate: async ({ prompt }) => {
      prompts.push(prompt);
      const call = { type: "tool-call", toolCallId: "1", toolName: tool, input: "{}" };
      const isFirst = prompts.length === 1;
      return {
        content: isFirst ? [call] : [{ type: "text", text: "done" }],
        finishReason: { unified: isFirst ? "tool-calls" : "stop", raw: undefined },
        usage,
        warnings: [],
      };
    },
  });
  await generateText({ model, tools: await aiTools(client), prompt: "?", stopWhen: stepCountIs(3) });
  return prompts.at(-1).at(-1).content[0].output;
}

test("the model reads the code, the message and what to do", async () => {
  assert.deepEqual(await read("warm"), { type: "text", value: "21 degrees" });
  const missing = "ToolCallError: missing failed, called once (never_retried): not_found: No city Oslö. Check the name or path, and list what exists if in doubt.";
  assert.deepEqual(await read("missing"), { type: "error-text", value: missing });
  const crashes = (await read("crashes")).value;
  assert.ok(!crashes.includes("hunter2"), crashes);
});
