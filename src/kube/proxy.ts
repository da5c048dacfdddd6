import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import type { buildConnector } from 'undici';

type Connector = ReturnType<typeof buildConnector>;

/** By CONNECT; TLS to an https server runs inside. The proxy's user and password are sent to it. */
export function throughProxy(proxy: string, connect: Connector, timeoutMs: number): Connector {
  return (options, callback) => {
    const { hostname, port, protocol } = options;
    const isTls = protocol === 'https:';
    const host = isIPv6(hostname) ? `[${hostname}]` : hostname;
    openTunnel(new URL(proxy), `${host}:${port || (isTls ? '443' : '80')}`, timeoutMs).then(
      (httpSocket) => (isTls ? connect({ ...options, httpSocket }, callback) : callback(null, httpSocket)),
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
    );
  };
}

function openTunnel(proxy: URL, target: string, timeoutMs: number): Promise<Socket> {
  const { username, password, protocol, hostname, port, host } = proxy;
  const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  const request = protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const call = request({
      method: 'CONNECT',
      host: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: target,
      timeout: timeoutMs,
      agent: false,
      headers: { host: target, ...(username === '' ? {} : { 'proxy-authorization': `Basic ${login}` }) },
    });
    // Without the URL of the proxy, which may have a password.
    const fail = (why: string): void => reject(new Error(`proxy ${host}: ${why}`));
    call.once('connect', ({ statusCode }, socket) => {
      if (statusCode === 200) {
        socket.setTimeout(0);
        resolve(socket);
      } else {
        socket.destroy();
        fail(`answered ${statusCode ?? 'nothing'} to CONNECT`);
      }
    });
    call.once('response', ({ statusCode }) => fail(`answered ${statusCode ?? 'nothing'} to CONNECT`));
    call.once('timeout', () => call.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    call.once('error', (error) => fail(error.message));
    call.end();
  });
}
