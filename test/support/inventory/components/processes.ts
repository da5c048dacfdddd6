import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Configuration of a component in any language. */
export interface ComponentSettings {
  readonly component: string;
  readonly apiUrl: string;
  readonly apiCaFile?: string;
  readonly callbackUrl: string;
  /** User name of the allowed caller. */
  readonly serverAccount: string;
  /** Token for TokenReviews. */
  readonly reviewToken: string;
  /** Seconds between a 202 and the first heartbeat; Python only. Default 0.1. */
  readonly heartbeatDelaySeconds?: number;
}

/** A component that serves HTTP on a loopback address. */
export interface RunningComponent {
  readonly url: string;
  close(): Promise<void>;
}

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export async function startPython(settings: ComponentSettings): Promise<RunningComponent> {
  const child = spawn('python3', [file('player.py')], {
    env: environment(settings),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const endWithThisProcess = (): void => void child.kill('SIGKILL');
  process.once('exit', endWithThisProcess);
  child.once('exit', () => process.off('exit', endWithThisProcess));
  const port = await Promise.race([
    once(createInterface(child.stdout), 'line').then(([line]) => Number(line)),
    once(child, 'exit').then(() => Promise.reject(new Error('the component in Python ended'))),
  ]);
  return { url: `http://127.0.0.1:${port}`, close: () => end(child) };
}

/** Starts a listener that runs `sh` for each call. */
export async function startShell(settings: ComponentSettings): Promise<RunningComponent> {
  const server = createServer((request, response) => {
    if (request.url !== '/v1/reconcile') return void response.writeHead(404).end();
    runShell(request, settings).then(
      ({ status, body }) => {
        const later = status === 503 ? { 'retry-after': '1' } : {};
        const close = status >= 400 ? { connection: 'close' } : {};
        response.writeHead(status, { 'content-type': 'application/json', ...later, ...close }).end(body);
      },
      () => response.writeHead(500).end(),
    );
  });
  return { url: await listening(server), close: () => closed(server) };
}

async function runShell(request: IncomingMessage, settings: ComponentSettings) {
  const env = { ...environment(settings), AUTHORIZATION: request.headers.authorization ?? '' };
  const child = spawn('sh', [file('player.sh')], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  // The process may answer before it has read the whole request.
  child.stdin.on('error', () => undefined);
  request.pipe(child.stdin);
  let text = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) text += String(chunk);
  const [status = '', ...body] = text.split('\n');
  if (!/^\d{3}$/.test(status)) throw new Error(`the shell printed ${JSON.stringify(text.slice(0, 80))}`);
  return { status: Number(status), body: body.join('\n') };
}

export async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export async function closed(server: Server): Promise<void> {
  if (!server.listening) return;
  const done = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await done;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

function environment(settings: ComponentSettings): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    COMPONENT: settings.component,
    API_URL: settings.apiUrl,
    ...(settings.apiCaFile === undefined ? {} : { API_CA_FILE: settings.apiCaFile }),
    CALLBACK_URL: settings.callbackUrl,
    SERVER_ACCOUNT: settings.serverAccount,
    REVIEW_TOKEN: settings.reviewToken,
    ...(settings.heartbeatDelaySeconds === undefined
      ? {}
      : { HEARTBEAT_DELAY_SECONDS: String(settings.heartbeatDelaySeconds) }),
  };
}
