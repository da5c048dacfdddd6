import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { paths, tokenHeader } from './wire.ts';

export type Verdict =
  /** A file of the page. */
  | { readonly asset: string }
  /** An authorized call. */
  | { readonly path: string; readonly query: URLSearchParams }
  | { readonly status: number; readonly message: string; readonly allow?: string };

const methods: Readonly<Record<string, readonly string[]>> = {
  [paths.start]: ['GET'],
  [paths.run]: ['POST'],
  [paths.live]: ['GET'],
  [paths.request]: ['GET'],
  [paths.cast]: ['GET'],
  [paths.journal]: ['GET', 'POST', 'PUT', 'DELETE'],
  [paths.verdict]: ['GET'],
  [paths.awake]: ['POST'],
};

const pagePath =
  /^\/(?:(?:ask|mine|decide|open|recordings|audit|bindings|inventory|health)?|(?:ask|requests)\/[^/]+\/[^/]+\/[^/]+)$/;

const assetTypes: Readonly<Record<string, string>> = { html: 'text/html', js: 'text/javascript', css: 'text/css' };

/**
 * What a request gets. Who can open a connection to the port is any program of this machine, and
 * any page in a browser of it, also one that DNS rebinding gave this address.
 */
export function guard(
  { method = '', url = '', headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>,
  { port, token }: { readonly port: number; readonly token: string },
): Verdict {
  const host = `127.0.0.1:${port}`;
  if (headers.host !== host) return { status: 421, message: `this server is only at http://${host}` };
  const end = url.indexOf('?');
  const path = end < 0 ? url : url.slice(0, end);
  const allowed = path.startsWith('/api/') ? methods[path] : ['GET', 'HEAD'];
  if (!allowed) return { status: 404, message: 'no such path' };
  if (!allowed.includes(method)) return { status: 405, message: 'wrong method', allow: allowed.join(', ') };
  if (!path.startsWith('/api/')) return assetOf(path);
  const { origin, 'sec-fetch-site': site } = headers;
  if ((site !== undefined && site !== 'same-origin') || (origin !== undefined && origin !== `http://${host}`))
    return { status: 403, message: 'the call comes from another page' };
  if (!isEqual(String(headers[tokenHeader] ?? ''), token))
    return { status: 401, message: 'the token is not that of this console; open the page from the terminal again' };
  return { path, query: new URLSearchParams(end < 0 ? '' : url.slice(end + 1)) };
}

function assetOf(path: string): Verdict {
  if (pagePath.test(path)) return { asset: '/index.html' };
  if (path === '/player') return { asset: '/player.html' };
  return /^\/\w+\.(?:js|css)$/.test(path) ? { asset: path } : { status: 404, message: 'no such path' };
}

/** Takes the same time for every wrong token. */
function isEqual(given: string, token: string): boolean {
  const [a, b] = [given, token].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

/** Of every answer. */
export const safeHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': policy("'self'"),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

/** The player is WebAssembly, which only its own document may compile. */
export const assetHeaders = (asset: string): Record<string, string> => ({
  'content-type': `${assetTypes[asset.split('.').at(-1) ?? '']}; charset=utf-8`,
  ...(asset === '/player.html' ? { 'content-security-policy': policy("'self' 'wasm-unsafe-eval'") } : {}),
});

function policy(scripts: string): string {
  return `default-src 'none'; script-src ${scripts}; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'`;
}
