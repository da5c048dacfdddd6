// An attacker that reaches the server's ports and nothing else, as a process of its own: `attacker.ts JSON` with an `Attack`.
// It attacks until it is killed. Each second it prints one line with its counts so far. It encodes its bodies once, so that its processor
// time goes into sending them.
import { Agent, get as httpGet } from 'node:http';
import { request } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/**
 * What one connection does: stay silent before TLS, or after it, leave a body of 4 MB unfinished, send reviews of 3.8 MB, send reviews
 * with a million groups, or send small reviews, each with other names.
 */
export type AttackRole = 'silent' | 'idle' | 'body' | 'large' | 'groups' | 'small';

export interface Attack {
  readonly host: string;
  /** Port of the webhooks. */
  readonly webhooks: number;
  /** A webhook's path. */
  readonly path: string;
  /** Addresses that the connections come from, in turn. */
  readonly sources: readonly string[];
  /** Connections to the webhooks, over all sources. */
  readonly connections: number;
  /** Each source deals these out to its connections, in turn. */
  readonly roles: readonly AttackRole[];
  /** Ports of health and metrics. If there is one, each source holds 32 connections to it, or scrapes it. */
  readonly health?: number;
  readonly metrics?: number;
}

const attack = JSON.parse(process.argv[2] ?? '') as Attack;
const { host, sources } = attack;
/** Milliseconds until a closed connection is opened again. */
const againMs = 50;
const done = { opened: 0, closed: 0, answered: 0, refused: 0, scrapes: 0 };

const head = `POST ${attack.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
const review = (userInfo: object, name: string, note = ''): string =>
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
        spec: { templateName: name, note },
      },
    },
  });
const eve = { username: 'eve', groups: ['devs'] };
const large = Buffer.from(review(eve, 'large', 'é'.repeat(1_900_000)));
const groups = Buffer.from(review({ ...eve, groups: Array.from({ length: 1_000_000 }, () => '') }, 'groups'));
const unfinished = Buffer.concat([
  Buffer.from(`${head}Content-Length: 4000000\r\n\r\n`),
  groups.subarray(0, 3_900_000),
]);
let names = 0;
const small = (): string => review({ ...eve, username: `eve-${names}` }, `n-${names++}`);

const keepOpen = (open: () => Socket): void => {
  const socket = open();
  done.opened++;
  socket.on('error', () => {});
  socket.resume();
  socket.once('close', () => {
    done.closed++;
    setTimeout(() => keepOpen(open), againMs);
  });
};
const tcp = (port: number, localAddress: string): Socket => connectTcp({ host, port, localAddress });
const tls = (localAddress: string, then: (socket: Socket) => void): Socket => {
  const socket = connectTls({ socket: tcp(attack.webhooks, localAddress), rejectUnauthorized: false });
  socket.once('secureConnect', () => then(socket));
  return socket;
};
const post = (localAddress: string, body: () => Buffer | string): void => {
  const again = (): void => void setTimeout(() => post(localAddress, body), againMs);
  const bytes = body();
  const call = request(
    {
      host,
      port: attack.webhooks,
      path: attack.path,
      method: 'POST',
      localAddress,
      rejectUnauthorized: false,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(bytes) },
    },
    (answer) => {
      done[answer.statusCode === 200 ? 'answered' : 'refused']++;
      answer.resume();
      answer.once('close', again);
    },
  );
  call.once('error', again);
  call.end(bytes);
};

const play: Readonly<Record<AttackRole, (localAddress: string) => void>> = {
  silent: (localAddress) => keepOpen(() => tcp(attack.webhooks, localAddress)),
  idle: (localAddress) => keepOpen(() => tls(localAddress, () => {})),
  body: (localAddress) => keepOpen(() => tls(localAddress, (socket) => socket.write(unfinished))),
  large: (localAddress) => post(localAddress, () => large),
  groups: (localAddress) => post(localAddress, () => groups),
  small: (localAddress) => post(localAddress, small),
};

for (let index = 0; index < attack.connections; index++) {
  const role = attack.roles[Math.floor(index / sources.length) % attack.roles.length];
  if (role) play[role](sources[index % sources.length] ?? host);
}
for (const localAddress of sources) {
  const { health, metrics } = attack;
  if (health !== undefined) {
    for (let n = 0; n < 32; n++) keepOpen(() => tcp(health, localAddress));
  }
  if (metrics !== undefined) {
    const agent = new Agent({ keepAlive: true, localAddress });
    const scrape = (): void => {
      const call = httpGet({ host, port: metrics, path: '/metrics', agent, localAddress }, (answer) => {
        done.scrapes++;
        answer.resume();
        answer.once('close', () => setTimeout(scrape, againMs));
      });
      call.once('error', () => setTimeout(scrape, againMs));
    };
    scrape();
  }
}
setInterval(() => console.log(JSON.stringify(done)), 1000);
