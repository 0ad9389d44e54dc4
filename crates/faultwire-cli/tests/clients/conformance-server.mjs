// MCP conformance fixture: a server with the tools, prompts and resources that
// the official checker (`@modelcontextprotocol/conformance server`) asks for.
//
//   node conformance-server.mjs http PORT   Streamable HTTP at http://127.0.0.1:PORT/mcp
//   node conformance-server.mjs stdio       newline-delimited JSON-RPC over stdin/stdout
//
// Both serve both eras: legacy (initialize, sessions) and modern 2026-07-28
// (stateless, server/discover). A handler that needs input from the client
// returns `inputRequired(...)`; for legacy clients the SDK turns that into a
// request of its own (elicitation/create, sampling/createMessage, roots/list).

import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CLIENT_CAPABILITIES_META_KEY,
  McpServer,
  ResourceTemplate,
  WebStandardStreamableHTTPServerTransport,
  acceptedContent,
  completable,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  hostHeaderValidationResponse,
  inputRequired,
  inputResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

// A red pixel as PNG, and a WAV header without samples.
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=';

// Signs the state that travels through the client; a forged one gets -32602.
const stateCodec = createRequestStateCodec({ key: randomBytes(32) });

const text = (value) => ({ type: 'text', text: value });
const image = () => ({ type: 'image', data: PNG, mimeType: 'image/png' });
const embedded = (uri, mimeType, value) => ({ type: 'resource', resource: { uri, mimeType, text: value } });
const content = (...blocks) => ({ content: blocks });
const messages = (...blocks) => ({ messages: blocks.map((block) => ({ role: 'user', content: block })) });

// ---- requests for client input ---------------------------------------------

const form = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const ask = (message, requestedSchema) => inputRequired.elicit({ message, requestedSchema });
const askFor = (message, field, type = 'string') => ask(message, form({ [field]: { type } }));
const sample = (prompt, maxTokens = 100) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: text(prompt) }], maxTokens });

/** A tool that elicits `schema` once and reports what the user answered. */
const elicitOnce = (message, schema) => (_args, ctx) => {
  const answer = inputResponse(ctx.mcpReq.inputResponses, 'answer');
  if (answer.kind !== 'elicit') return inputRequired({ inputRequests: { answer: ask(message, schema) } });
  const given = JSON.stringify(answer.content ?? {});
  return content(text(`Elicitation completed: action=${answer.action}, content=${given}`));
};

/** A tool that asks for a confirmation and remembers across rounds that it did. */
const confirmWithState = async (_args, ctx) => {
  const state = ctx.mcpReq.requestState();
  if (state?.asked && acceptedContent(ctx.mcpReq.inputResponses, 'confirm')) return content(text('state-ok'));
  return inputRequired({
    inputRequests: { confirm: askFor('Please confirm', 'ok', 'boolean') },
    requestState: await stateCodec.mint({ asked: true }),
  });
};

/** Whether the client has answered every one of `inputRequests`. */
const allAnswered = (inputRequests, ctx) =>
  Object.keys(inputRequests).every((key) => inputResponse(ctx.mcpReq.inputResponses, key).kind !== 'missing');

const USER_FORM = form({
  username: { type: 'string', description: "User's response" },
  email: { type: 'string', description: "User's email address" },
});

const DEFAULTS_FORM = form(
  {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
  [],
);

const OPTIONS = ['option1', 'option2', 'option3'];
const titled = (...titles) => titles.map((title, index) => ({ const: `value${index + 1}`, title }));
const ENUMS_FORM = form(
  {
    untitledSingle: { type: 'string', enum: OPTIONS },
    titledSingle: { type: 'string', oneOf: titled('First Option', 'Second Option', 'Third Option') },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array', items: { type: 'string', enum: OPTIONS } },
    titledMulti: { type: 'array', items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') } },
  },
  [],
);

// ---- tools -----------------------------------------------------------------

const JSON_SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

// The client repeats `region` in the header Mcp-Param-Region (SEP-2243).
const HEADER_SCHEMA = {
  type: 'object',
  properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
};

/** `announce` tells the clients that a list has changed. */
function registerTools(server, announce) {
  const toolWith = (inputSchema, name, description, handler) =>
    server.registerTool(name, { description, inputSchema }, handler);
  const tool = (...definition) => toolWith(z.object({}), ...definition);

  // The checker calls the first tool of the list without arguments and expects a success.
  tool('test_simple_text', 'Returns one text block', () =>
    content(text('This is a simple text response for testing.')),
  );
  tool('test_image_content', 'Returns an image', () => content(image()));
  tool('test_audio_content', 'Returns audio', () => content({ type: 'audio', data: WAV, mimeType: 'audio/wav' }));
  tool('test_embedded_resource', 'Returns an embedded resource', () =>
    content(embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')),
  );
  tool('test_multiple_content_types', 'Returns text, an image and a resource', () =>
    content(
      text('Multiple content types test:'),
      image(),
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ),
  );
  tool('test_error_handling', 'Always fails', () => {
    throw new Error('This tool intentionally returns an error for testing');
  });

  tool('test_tool_with_logging', 'Logs three messages while it runs', async (_args, ctx) => {
    await ctx.mcpReq.log('info', 'Tool execution started');
    await sleep(50);
    await ctx.mcpReq.log('info', 'Tool processing data');
    await sleep(50);
    await ctx.mcpReq.log('info', 'Tool execution completed');
    return content(text('Logged three messages'));
  });
  tool('test_logging_tool', 'Logs one message, if the request allows it', async (_args, ctx) => {
    await ctx.mcpReq.log('info', 'Logging tool was called');
    return content(text('Done'));
  });
  tool('test_tool_with_progress', 'Reports progress 0, 50 and 100 of 100', async (_args, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progress > 0) await sleep(50);
      if (progressToken === undefined) continue;
      await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
    }
    return content(text('Progress is complete'));
  });
  tool('test_reconnection', 'Closes its legacy response stream before the result', async (_args, ctx) => {
    await sleep(50);
    ctx.http?.closeSSE?.();
    await sleep(100);
    return content(text('Reconnected'));
  });

  toolWith(z.object({ prompt: z.string() }), 'test_sampling', 'Asks the model of the client', ({ prompt }, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'answer');
    if (answer.kind !== 'sampling') return inputRequired({ inputRequests: { answer: sample(prompt) } });
    return content(text(`LLM response: ${JSON.stringify(answer.result.content)}`));
  });
  toolWith(z.object({ message: z.string() }), 'test_elicitation', 'Asks the user who they are', (args, ctx) =>
    elicitOnce(args.message, USER_FORM)(args, ctx),
  );
  tool('test_elicitation_sep1034_defaults', 'Asks with default values', elicitOnce('Please review', DEFAULTS_FORM));
  tool('test_elicitation_sep1330_enums', 'Asks with every kind of enum', elicitOnce('Please choose', ENUMS_FORM));
  tool('test_streaming_elicitation', 'Asks the user', elicitOnce('Continue?', form({ ok: { type: 'boolean' } })));
  // To a client that did not declare sampling the SDK answers -32021.
  tool('test_missing_capability', 'Needs a client with sampling', () =>
    inputRequired({ inputRequests: { answer: sample('Are you there?') } }),
  );

  tool('test_input_required_result_elicitation', 'Asks for a name and greets', (_args, ctx) => {
    const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_name', z.object({ name: z.string() }));
    if (answer) return content(text(`Hello, ${answer.name}!`));
    return inputRequired({ inputRequests: { user_name: askFor('What is your name?', 'name') } });
  });
  tool('test_input_required_result_sampling', 'Asks the model for a capital', (_args, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'capital_question');
    if (answer.kind === 'sampling') return content(text(JSON.stringify(answer.result.content)));
    return inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?') } });
  });
  tool('test_input_required_result_list_roots', 'Asks for the roots and lists them', (_args, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'client_roots');
    if (answer.kind === 'roots') return content(text(answer.roots.map((root) => root.uri).join('\n')));
    return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
  });
  tool('test_input_required_result_request_state', 'Confirms with signed state', confirmWithState);
  tool('test_input_required_result_tampered_state', 'Refuses state that was changed', confirmWithState);
  tool('test_input_required_result_multiple_inputs', 'Asks for three things at once', async (_args, ctx) => {
    const inputRequests = {
      user_name: askFor('What is your name?', 'name'),
      greeting: sample('Generate a greeting', 50),
      client_roots: inputRequired.listRoots(),
    };
    if (allAnswered(inputRequests, ctx)) return content(text('Received all three'));
    return inputRequired({ inputRequests, requestState: await stateCodec.mint({ asked: true }) });
  });
  tool('test_input_required_result_multi_round', 'Asks twice, one after the other', async (_args, ctx) => {
    const { name } = ctx.mcpReq.requestState() ?? {};
    const first = acceptedContent(ctx.mcpReq.inputResponses, 'step1');
    const second = acceptedContent(ctx.mcpReq.inputResponses, 'step2');
    if (name && second) return content(text(`${name} likes ${second.color}`));
    const [key, question, state] = first
      ? ['step2', askFor('Step 2: What is your favorite color?', 'color'), { name: first.name }]
      : ['step1', askFor('Step 1: What is your name?', 'name'), {}];
    return inputRequired({ inputRequests: { [key]: question }, requestState: await stateCodec.mint(state) });
  });
  tool('test_input_required_result_capabilities', 'Asks only for what the client can do', (_args, ctx) => {
    const capabilities = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
    const inputRequests = {};
    if (capabilities.sampling) inputRequests.greeting = sample('Generate a greeting');
    if (capabilities.elicitation) inputRequests.user_name = askFor('What is your name?', 'name');
    if (allAnswered(inputRequests, ctx)) return content(text('Nothing more to ask'));
    return inputRequired({ inputRequests });
  });

  // The lists themselves stay as they are, so that runs of the checker do not influence one another.
  tool('test_trigger_tool_change', 'Announces a change of the tool list', () => {
    announce.toolsChanged();
    return content(text('Announced'));
  });
  tool('test_trigger_prompt_change', 'Announces a change of the prompt list', () => {
    announce.promptsChanged();
    return content(text('Announced'));
  });

  const headerSchema = fromJsonSchema(HEADER_SCHEMA);
  toolWith(headerSchema, 'test_parameter_header', 'Has an argument that is also an HTTP header', ({ region }) =>
    content(text(`Region: ${region ?? 'none'}`)),
  );
  const richSchema = fromJsonSchema(JSON_SCHEMA_2020_12);
  toolWith(richSchema, 'json_schema_2020_12_tool', 'Has a schema that uses many keywords', (args) =>
    content(text(JSON.stringify(args))),
  );
}

// ---- prompts and resources -------------------------------------------------

function registerPrompts(server) {
  server.registerPrompt('test_simple_prompt', { description: 'Has no arguments' }, () =>
    messages(text('This is a simple prompt for testing.')),
  );
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description: 'Has two arguments',
      argsSchema: z.object({
        arg1: completable(z.string(), (value) => ['paris', 'park', 'party'].filter((word) => word.startsWith(value))),
        arg2: z.string(),
      }),
    },
    ({ arg1, arg2 }) => messages(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'Embeds a resource', argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri }) =>
      messages(
        embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
        text('Please process the embedded resource above.'),
      ),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'Holds an image' }, () =>
    messages(image(), text('Please analyze the image above.')),
  );
  server.registerPrompt('test_input_required_result_prompt', { description: 'Asks for a context' }, (ctx) => {
    const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_context');
    if (answer) return messages(text(`Use this context: ${answer.context}`));
    const question = askFor('What context should the prompt use?', 'context');
    return inputRequired({ inputRequests: { user_context: question } });
  });
}

function registerResources(server) {
  const fixed = [
    ['static-text', 'text/plain', { text: 'This is the content of the static text resource.' }],
    ['static-binary', 'image/png', { blob: PNG }],
    ['watched-resource', 'text/plain', { text: 'Clients may subscribe to this resource.' }],
  ];
  for (const [name, mimeType, body] of fixed) {
    const uri = `test://${name}`;
    server.registerResource(name, uri, { description: `Fixed ${name}`, mimeType }, () => ({
      contents: [{ uri, mimeType, ...body }],
    }));
  }
  const mimeType = 'application/json';
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'Data for any id', mimeType },
    (uri, { id }) => {
      const data = { id, templateTest: true, data: `Data for ID: ${id}` };
      return { contents: [{ uri: uri.href, mimeType, text: JSON.stringify(data) }] };
    },
  );
  // Legacy only; the resource never changes, so there is nothing to remember.
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
}

/** `notifier` reaches the clients of other requests; without one the own connection is told. */
function buildServer(notifier) {
  const server = new McpServer(
    { name: 'conformance-fixture', version: '1.0.0' },
    {
      capabilities: { logging: {}, resources: { subscribe: true } },
      requestState: { verify: stateCodec.verify },
    },
  );
  const announce = notifier ?? {
    toolsChanged: () => server.sendToolListChanged(),
    promptsChanged: () => server.sendPromptListChanged(),
  };
  registerTools(server, announce);
  registerPrompts(server);
  registerResources(server);
  return server;
}

// ---- HTTP ------------------------------------------------------------------

/** Keeps what a legacy session has sent, for clients that reconnect with Last-Event-ID. */
class EventLog {
  #events = [];

  async storeEvent(streamId, message) {
    this.#events.push({ streamId, message });
    return String(this.#events.length);
  }

  async getStreamIdForEventId(eventId) {
    return this.#events[Number(eventId) - 1]?.streamId;
  }

  async replayEventsAfter(lastEventId, { send }) {
    const streamId = await this.getStreamIdForEventId(lastEventId);
    for (let index = Number(lastEventId); index < this.#events.length; index += 1) {
      const event = this.#events[index];
      if (event.streamId === streamId) await send(String(index + 1), event.message);
    }
    return streamId;
  }
}

const modern = createMcpHandler(() => buildServer(modern.notify), { legacy: 'reject' });
const sessions = new Map();

async function openSession() {
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
    eventStore: new EventLog(),
    retryInterval: 500,
  });
  await buildServer().connect(transport);
  return transport;
}

async function answer(request) {
  const refusal =
    hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
    originValidationResponse(request, localhostAllowedOrigins());
  if (refusal) return refusal;
  if (new URL(request.url).pathname !== '/mcp') return new Response(null, { status: 404 });
  if (!(await isLegacyRequest(request))) return modern.fetch(request);

  // Without a session, the transport refuses everything except initialize.
  const sessionId = request.headers.get('mcp-session-id');
  const transport = sessionId ? sessions.get(sessionId) : await openSession();
  if (transport) return transport.handleRequest(request);
  const error = { code: -32001, message: 'Session not found' };
  return Response.json({ jsonrpc: '2.0', error, id: null }, { status: 404 });
}

/** Turns a node request into a web request, which is aborted when the client goes away. */
function webRequest(req, res) {
  const gone = new AbortController();
  res.on('close', () => gone.abort());
  const hasBody = req.method !== 'GET' && req.method !== 'HEAD';
  return new Request(`http://127.0.0.1${req.url}`, {
    method: req.method,
    headers: req.headers,
    body: hasBody ? Readable.toWeb(req) : undefined,
    duplex: 'half',
    signal: gone.signal,
  });
}

function serveHttp(port) {
  const server = createServer(async (req, res) => {
    try {
      const response = await answer(webRequest(req, res));
      res.writeHead(response.status, Object.fromEntries(response.headers));
      res.flushHeaders();
      await pipeline(response.body ? Readable.fromWeb(response.body) : [], res);
    } catch (error) {
      if (res.destroyed) return; // the client went away
      console.error(error);
      res.writeHead(500).end();
    }
  });
  server.listen(port, '127.0.0.1', () => console.error('ready'));
}

// ---- start -----------------------------------------------------------------

const [mode, port] = process.argv.slice(2);
if (mode === 'http' && Number(port) > 0) {
  serveHttp(Number(port));
} else if (mode === 'stdio') {
  serveStdio(() => buildServer());
} else {
  console.error('usage: node conformance-server.mjs http PORT | stdio');
  process.exitCode = 2;
}
