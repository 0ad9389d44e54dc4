// A server of one tool a fault, on either TypeScript SDK: node faults.mjs sdk1|sdk2|lowlevel
// It is copied beside node_modules to run. See corpus/README.md.
import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';

const documents = JSON.parse(readFileSync(new URL('documents.json', import.meta.url)));
const text = (value, more = {}) => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }],
  ...more,
});
const fail = (message, more = {}) => { throw Object.assign(new Error(message), more); };
const structured = (value, more = {}) => text(value, { structuredContent: value, ...more });
const flag = name => z.object({ [name]: z.number() });

// Each tool: its body, and options with a zod object as `input` or `output`.
const tools = {
  ok_text: [() => text('The answer is 42.')],
  ok_structured: [() => structured({ value: 42 }), { output: flag('value') }],
  ok_empty_content: [() => ({ content: [] })],
  ok_empty_list: [() => text([])],
  ok_number: [() => text('0')],
  ok_null_error: [() => text({ ok: true, error: null, data: { id: 7 } })],
  ok_zero_errors: [() => text('0 errors, 0 warnings. All 12 checks passed.')],
  ok_status_report: [() => text({ status: 'ok', errors: [], checked: 12 })],
  ok_markdown: [() => text(documents.markdown)],
  ok_nested_errors: [() => text(documents.nested)],
  ok_log: [() => text(documents.log)],
  ok_source_code: [() => text('fn main() {\n    if let Err(e) = run() {\n        eprintln!("Error: {e}");\n        std::process::exit(1);\n    }\n}\n')],
  add: [({ a, b }) => text(String(a + b)), { input: z.object({ a: z.number(), b: z.number() }) }],
  choose: [({ level }) => text(level), { input: z.object({ level: z.enum(['low', 'high']) }) }],
  strict: [({ a }) => text(String(a)), { input: z.strictObject({ a: z.number() }) }],
  throw_secret: [() => fail('Query on postgres://admin:hunter2@127.0.0.1:5432/app failed, key sk-test-4f9a8b7c6d5e')],
  throw_string: [() => { throw 'plain string, not an Error'; }],
  throw_object: [() => { throw { code: 'E_CUSTOM', detail: 'not an Error' }; }],
  throw_undefined: [() => { throw undefined; }],
  throw_empty: [() => fail('')],
  throw_type_error: [() => undefined.missing],
  error_structured: [() => structured({ code: 'OUT_OF_STOCK', retryable: false }, { isError: true })],
  error_structured_only: [() => ({ content: [], structuredContent: { reason: 'the store is empty' }, isError: true })],
  error_empty: [() => ({ content: [], isError: true })],
  error_json_rate: [() => text({ error: { type: 'rate_limit_error', status: 429, retry_after: 30 } }, { isError: true })],
  soft_ok_false: [() => text({ ok: false, code: 'E17', message: 'The job was rejected' })],
  soft_ok_false_structured: [() => structured({ ok: false, message: 'The job was rejected' })],
  soft_success_false: [() => text({ success: false, error: 'The record is incomplete' })],
  soft_status_error: [() => text({ status: 'error', message: 'The index is broken' })],
  soft_error_object: [() => text({ error: { code: 'NOT_FOUND', message: 'No such customer' } })],
  soft_error_text: [() => text('Error: could not write the report')],
  soft_error_tag: [() => text('<error>The page could not be read</error>')],
  soft_failed_text: [() => text('Failed to save the document: the disk is full')],
  soft_traceback: [() => text('Traceback (most recent call last):\n  File "/srv/app.py", line 9, in run\n    total / count\nZeroDivisionError: division by zero')],
  soft_unauthorized: [() => text({ success: false, error: '401 Unauthorized: invalid API key' })],
  soft_rate_limited: [() => text('Error: 429 Too Many Requests. Retry after 20 seconds.')],
  soft_timeout: [() => text({ ok: false, error: 'Request timed out after 30000 ms' })],
  timeout_real: [() => fetch(process.env.HANG_URL, { signal: AbortSignal.timeout(200) })],
  timeout_text: [() => fail('Request timed out after 5000 ms')],
  connection_refused: [() => fetch('http://127.0.0.1:18643/')],
  connection_refused_cause: [() => fetch('http://127.0.0.1:18643/').catch(e => { throw e.cause; })],
  upstream_down: [() => fail('Request failed with status code 503')],
  file_not_found: [() => open('/tmp/demo-corpus/missing.txt')],
  permission_denied: [() => open('/tmp/demo-corpus/locked.txt')],
  rate_limited: [() => fail('429 Too Many Requests: rate limit exceeded, retry after 30 s', { status: 429 })],
  unauthorized: [() => fail('401 Unauthorized: the access token has expired', { status: 401 })],
  forbidden: [() => fail('403 Forbidden: the role viewer may not delete projects', { status: 403 })],
  budget: [() => fail('402 Payment Required: monthly budget of 10.00 USD exceeded')],
  locked: [() => fail('database is locked')],
  version_conflict: [() => fail('409 Conflict: expected version 4, found version 5')],
  not_ready: [() => fail('The index is still loading, try again later: service is not ready')],
  coded_error: [() => fail('Request timed out', { code: -32001, data: { timeout: 60000 } })],
  coded_domain: [() => fail('Customer 7 has open invoices', { code: 4007, data: { open: 3 } })],
  output_mismatch: [() => structured({ value: 'not a number' }), { output: flag('value') }],
  output_missing: [() => text('no structured content'), { output: flag('value') }],
  bad_result: [() => ({ content: 'not a list' })],
  print_to_stdout: [() => { console.log('debug: entering the tool'); return text('done'); }],
  sleep: [() => sleep(1500).then(() => text('woke up'))],
};

// A tool's name on the wire has no vowels, so that a reply that names its tool does not give the answer away.
const wireName = name => name.replace(/[aeiou]/g, '');

function highLevel(McpServer) {
  const server = new McpServer({ name: 'faults', version: '1' }, { capabilities: { tools: {} } });
  for (const [name, [run, { input, output } = {}]] of Object.entries(tools)) {
    const config = { description: 'A tool' };
    if (input) config.inputSchema = input;
    if (output) config.outputSchema = output;
    server.registerTool(wireName(name), config, async args => run(args));
  }
  return server;
}

function lowLevel(Server, { CallToolRequestSchema }) {
  const server = new Server({ name: 'faults', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const name = Object.keys(tools).find(name => wireName(name) === params.name);
    const [run] = tools[name] ?? fail(`Unknown tool: ${params.name}`);
    return run(params.arguments ?? {});
  });
  return server;
}

const flavour = process.argv[2];
if (flavour === 'sdk2') {
  const { McpServer } = await import('@modelcontextprotocol/server');
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
  serveStdio(() => highLevel(McpServer));
} else {
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
  const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
  const { Server } = await import('@modelcontextprotocol/sdk/server/index.js');
  const types = await import('@modelcontextprotocol/sdk/types.js');
  const server = flavour === 'sdk1' ? highLevel(McpServer) : lowLevel(Server, types);
  await server.connect(new StdioServerTransport());
}
