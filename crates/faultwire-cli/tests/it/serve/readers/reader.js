// Reads lines as a server in JavaScript would, and prints what it sees in each. A line ends where
// Node's readline ends it, so one line can be several.
const text = require("fs").readFileSync(0);
const see = (m) => {
  if (typeof m !== "object" || m === null || typeof m.method !== "string") return [];
  const p = (typeof m.params === "object" && m.params) || {};
  return [[m.method, p.name ?? null, m.id ?? null, p.arguments ?? null]];
};
let from = 0;
const out = [];
for (let at = text.indexOf(10); at >= 0; from = at + 1, at = text.indexOf(10, from)) {
  const seen = [];
  for (const part of text.subarray(from, at).toString("utf8").split(/\r|\u2028|\u2029/)) {
    let value;
    try {
      value = JSON.parse(part);
    } catch {
      continue;
    }
    for (const m of Array.isArray(value) ? value : [value]) seen.push(...see(m));
  }
  out.push(JSON.stringify(seen));
}
process.stdout.write(out.join("\n") + "\n");
