import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Webhook } from 'standardwebhooks';
import { parseAllDocuments } from 'yaml';
import { notifyKinds } from '../../../src/api/notify/notification-subscription.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { readBySchema } from '../../../src/api/schema/read.ts';

const examples = join(import.meta.dirname, '../../../examples');
const pages = [
  'concepts/notifications',
  ...['slack', 'teams', 'mail', 'webhook'].map((medium) => `tasks/notify-${medium}`),
];
const blocksOf = (page: string): string[] =>
  [
    ...readFileSync(join(import.meta.dirname, `../../../docs/${page}.md`), 'utf8').matchAll(
      /^( *)```yaml\n(.*?)^\1```/gms,
    ),
  ].map(([, indent, text = '']) => text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''));
const manifestsIn = (text: string): KubeObject[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as KubeObject)
    .filter(({ kind }) => notifyKinds.some(({ resource }) => resource.kind === kind));

describe('the manifests of notifications', () => {
  const example = readFileSync(join(examples, 'notifications.yaml'), 'utf8');
  const files = new Map<string, readonly string[]>([
    ['examples/notifications.yaml', [example]],
    ...pages.map((page) => [page, blocksOf(page)] as const),
  ]);
  for (const [file, texts] of files) {
    const manifests = texts.flatMap(manifestsIn);

    it(`of ${file} fit the schemas`, () => {
      assert.ok(manifests.length > 0);
      for (const { kind, spec } of manifests) {
        const { structural } = notifyKinds.find(({ resource }) => resource.kind === kind) ?? assert.fail(kind);
        const read = readBySchema(structural.spec, spec, 'spec');
        assert.ok(read.ok, JSON.stringify(read));
      }
    });
  }

  it('are the same in the example and on the page of the webhook', () => {
    assert.deepEqual(manifestsIn(example), blocksOf('tasks/notify-webhook').flatMap(manifestsIn));
  });
});

describe('the example receiver', () => {
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const event = JSON.stringify({
    type: 'dev.drawbridge.access.requested.v1',
    subject: 'payments/PodAccessRequest/debug',
    data: { requester: 'alice', reason: 'disk full' },
  });
  let folder: string;
  let receiver: ChildProcess;
  let url: string;
  const lines: string[] = [];
  const changed: (() => void)[] = [];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'drawbridge-receiver-'));
    writeFileSync(join(folder, 'key.txt'), `${secret}\n`);
    const program = join(examples, 'notification-receiver.mjs');
    receiver = spawn(process.execPath, [program, join(folder, 'key.txt'), '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    createInterface({ input: receiver.stdout ?? assert.fail() }).on('line', (line) => {
      lines.push(line);
      for (const notify of changed.splice(0)) notify();
    });
    await printed(1);
    url = `http://127.0.0.1:${/port (\d+)$/.exec(lines[0] ?? '')?.[1]}/`;
  });
  after(() => {
    receiver?.kill();
    rmSync(folder, { recursive: true });
  });

  /** Resolves once it has printed so many lines. */
  const printed = async (count: number): Promise<void> => {
    while (lines.length < count) await new Promise<void>((resolve) => changed.push(resolve));
  };
  const send = async (id: string, by = secret, at = new Date(), body = event): Promise<number> => {
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(by).sign(id, at, event),
    };
    return (await fetch(url, { method: 'POST', headers, body })).status;
  };

  it('shows its usage if arguments are missing', () => {
    for (const args of [[], ['key.txt'], ['key.txt', '0', 'tls.crt']]) {
      const program = join(examples, 'notification-receiver.mjs');
      const { status, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
      assert.equal(status, 2);
      assert.match(stderr, /^usage: node notification-receiver\.mjs SIGNING_KEY_FILE PORT /);
    }
  });

  it('has at most 60 lines', () => {
    const text = readFileSync(join(examples, 'notification-receiver.mjs'), 'utf8');
    assert.ok(text.trimEnd().split('\n').length <= 60);
  });

  it('prints a signed event once, although it comes twice', async () => {
    assert.equal(await send('first'), 204);
    assert.equal(await send('first'), 204);
    assert.equal(await send('second'), 204);
    await printed(3);
    const line = {
      type: 'dev.drawbridge.access.requested.v1',
      subject: 'payments/PodAccessRequest/debug',
      requester: 'alice',
      reason: 'disk full',
    };
    assert.deepEqual(lines.slice(1), [JSON.stringify(line), JSON.stringify(line)]);
  });

  const refused: readonly (readonly [title: string, call: () => Promise<number>])[] = [
    ['with another key', () => send('third', `whsec_${randomBytes(32).toString('base64')}`)],
    ['with another body', () => send('third', secret, new Date(), event.replace('alice', 'mallory'))],
    ['that is older than five minutes', () => send('third', secret, new Date(Date.now() - 301_000))],
    ['without headers', async () => (await fetch(url, { method: 'POST', body: event })).status],
  ];
  for (const [title, call] of refused) {
    it(`refuses an event ${title}`, async () => assert.equal(await call(), 401));
  }

  it('refuses a body of more than a MiB', async () => {
    const call = fetch(url, { method: 'POST', body: 'x'.repeat(1024 * 1024 + 1) });
    assert.equal((await call).status, 413);
  });
});
