// The official TypeScript client, 2.x, in the era that the plan asks for.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const plan = JSON.parse(process.argv[2]);
const parts = createRequire(`${plan.parts}/npm/`);
const load = name => import(pathToFileURL(parts.resolve(name).replace(/\.cjs$/, '.mjs')));
const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const client = new Client({ name: 'typescript-2', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
const [command, ...args] = plan.command ?? [];
const transport = plan.url
    ? new StreamableHTTPClientTransport(new URL(plan.url), { requestInit: { headers: plan.headers } })
    : new StdioClientTransport({ command, args, env: { ...process.env, ...plan.env } });
try {
    await client.connect(transport);
} catch (error) {
    // Only who expects that wants to read of it.
    if (!plan.may_fail) throw error;
    console.log(JSON.stringify({ failed: error.message }));
    process.exit(0);
}
const got = { results: [], era: client.getNegotiatedProtocolVersion?.(), tools: (await client.listTools()).tools };
for (const [name, given] of plan.calls) {
    try {
        got.results.push(await client.callTool({ name, arguments: given }));
    } catch (error) {
        got.results.push({ raised: { code: error.code, message: error.message, data: error.data } });
    }
}
await client.close();
console.log(JSON.stringify(got));
