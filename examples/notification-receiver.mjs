// Receives notifications of drawbridge: checks the signature of Standard Webhooks, drops repeats, and prints a line
// for each event. Feed your system in `handle`.
// Without a certificate, it serves plain HTTP, for a proxy that terminates TLS.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';

if (![4, 6].includes(process.argv.length)) {
  console.error('usage: node notification-receiver.mjs SIGNING_KEY_FILE PORT [TLS_CERTIFICATE_FILE TLS_KEY_FILE]');
  process.exit(2);
}
const [keyFile, port, certificateFile, certificateKeyFile] = process.argv.slice(2);
const key = Buffer.from(readFileSync(keyFile, 'utf8').slice('whsec_'.length), 'base64');
const maxBytes = 1024 * 1024;
const toleranceSeconds = 300;
/** Ids of the last day, by the time in ms. Keep them in a database if you cannot miss a repeat after a restart. */
const seen = new Map();
const dayMs = 24 * 3600 * 1000;

/** Texts in `data` are what users wrote: escape them for the system that gets them. */
async function handle({ type, subject, data }) {
  console.log(JSON.stringify({ type, subject, requester: data?.requester, reason: data?.reason }));
}

function isSigned(id, timestamp, signatures, body) {
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds)) return false;
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  return signatures.split(' ').some((signature) => {
    const [version, encoded = ''] = signature.split(',');
    const found = Buffer.from(encoded, 'base64');
    return version === 'v1' && found.length === expected.length && timingSafeEqual(found, expected);
  });
}

async function receive(request, response) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > maxBytes) return response.writeHead(413, { connection: 'close' }).end();
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  const [id = '', timestamp, signatures = ''] = ['id', 'timestamp', 'signature'].map(
    (name) => request.headers[`webhook-${name}`],
  );
  if (!isSigned(id, timestamp, signatures, body)) return response.writeHead(401).end('wrong signature\n');
  for (const [old, atMs] of seen) if (Date.now() - atMs > dayMs) seen.delete(old);
  // Without an answer, drawbridge sends the event again, so it counts as seen only afterwards.
  if (!seen.has(id)) await handle(JSON.parse(body));
  seen.set(id, Date.now());
  response.writeHead(204).end();
}

const listener = (request, response) => void receive(request, response).catch(() => response.destroy());
const server = certificateFile
  ? createServer({ cert: readFileSync(certificateFile), key: readFileSync(certificateKeyFile) }, listener)
  : createHttpServer(listener);
server.listen(Number(port), () => console.log(`listening on port ${server.address().port}`));
