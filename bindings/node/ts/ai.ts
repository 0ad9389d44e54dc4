/** Tools of a server for the Vercel AI SDK: `faultwire/ai`. */

import { type AnyClient, type CallOptions, callTool } from "./client.js";

/** What is used of the package `ai`. */
interface AiSdk {
  dynamicTool(tool: object): unknown;
  jsonSchema(schema: unknown): unknown;
}

interface ListedTool {
  name: string;
  description?: string | undefined;
  inputSchema: unknown;
}

/** What the AI SDK tells a tool of its call. */
interface Execution {
  abortSignal?: AbortSignal | undefined;
}

/** A content block of a result. */
interface Block {
  type: string;
  text?: string;
}

/**
 * The tools of a server, for `generateText` and its kin. Calls that fail are waited for and sent
 * again as the contract allows (A7). If a call fails for good, the model reads the code, the
 * message and what to do instead.
 *
 * ```ts no-run
 * import { aiTools } from "faultwire/ai";
 *
 * const tools = await aiTools(client);
 * const { text } = await generateText({ model, tools, prompt: "How warm is it in Oslo?" });
 * ```
 */
export async function aiTools<T = Record<string, never>>(
  client: AnyClient,
  options: Omit<CallOptions, "signal"> = {},
): Promise<T> {
  // The compiler must not look for it: only those who call this have it.
  const name = "ai";
  const { dynamicTool, jsonSchema } = (await import(name)) as AiSdk;
  const { tools } = (await client.listTools()) as { tools: ListedTool[] };
  const made = tools.map(({ name: tool, description, inputSchema }) => {
    const execute = async (given: unknown, { abortSignal }: Execution): Promise<unknown> => {
      const call = { name: tool, arguments: given as Record<string, unknown> };
      const known = abortSignal === undefined ? options : { ...options, signal: abortSignal };
      return plainly(await callTool(client, call, known));
    };
    return [tool, dynamicTool({ description, inputSchema: jsonSchema(inputSchema), execute })];
  });
  return Object.fromEntries(made) as T;
}

/** A result as a model reads it best: its text, if it is all text. */
function plainly(result: unknown): unknown {
  const { content } = (result ?? {}) as { content?: Block[] };
  if (!Array.isArray(content) || content.some(({ type }) => type !== "text")) return result;
  return content.map(({ text }) => text).join("\n");
}
