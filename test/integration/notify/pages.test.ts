import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseAllDocuments } from 'yaml';
import { freePorts } from '../../../sandbox/ports.ts';
import { providerSecretType } from '../../../src/api/notify/notification-provider.ts';
import { NotifyStage } from '../../support/notify-stage.ts';
import { runAsReader, scriptOf } from '../../support/page-commands.ts';
import { shown } from '../../support/shown-output.ts';

const root = join(import.meta.dirname, '../../..');

describe('the commands of the pages about notifications', () => {
  let stage: NotifyStage;
  let folder: string;
  let receiver: ChildProcess | undefined;

  before(async function () {
    this.timeout(180_000);
    stage = await NotifyStage.open();
    folder = mkdtempSync(join(stage.access.plane.directory, 'pages-'));
    const files = { 'token.txt': 'xoxb-1', 'url.txt': 'https://hooks.example.org/1', 'username.txt': 'drawbridge' };
    const mail = { 'address.txt': 'smtp://mail.example.org:587', 'password.txt': 'hidden' };
    for (const [name, text] of Object.entries({ ...files, ...mail })) writeFileSync(join(folder, name), `${text}\n`);
  });
  after(async () => {
    receiver?.kill();
    await stage?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const run = (lines: string): Promise<string> => {
    const { plane, namespace } = stage.access;
    return runAsReader({ plane, folder }, lines.replaceAll('-n payments', `-n ${namespace}`));
  };
  const secret = async (name: string): Promise<{ type: string; data: Record<string, string> }> =>
    JSON.parse(await run(`kubectl get secret ${name} -n payments -o json`));

  const secrets: readonly (readonly [name: string, keys: readonly string[], script: () => string])[] = [
    ['slack', ['token'], () => scriptOf('docs/tasks/notify-slack.md', 'token.txt')],
    ['slack', ['address'], () => scriptOf('docs/tasks/notify-slack.md', 'url.txt')],
    ['teams', ['address'], () => scriptOf('docs/tasks/notify-teams.md', 'url.txt')],
    ['mail', ['address', 'password', 'username'], () => scriptOf('docs/tasks/notify-mail.md', 'password.txt')],
  ];
  for (const [name, keys, script] of secrets) {
    it(`create the Secret ${name} with ${keys.join(', ')}`, async () => {
      await run(`kubectl delete secret ${name} -n payments --ignore-not-found`);
      await run(script());
      const { type, data } = await secret(name);
      assert.deepEqual([type, Object.keys(data).sort()], [providerSecretType, keys]);
    });
  }

  it('send a test event to the example receiver', async function () {
    this.timeout(90_000);
    const { plane, namespace } = stage.access;
    await run(scriptOf('docs/tasks/notify-webhook.md', 'key.txt'));
    await run(scriptOf('docs/tasks/notify-webhook.md', 'openssl req').replace('receiver.example.org', 'localhost'));
    const [port = 0] = await freePorts(1);
    const secretOf = scriptOf('docs/tasks/notify-webhook.md', 'signingKey=key.txt');
    await run(secretOf.replace('receiver.example.org', `localhost:${port}`));
    const [program = '', file = '', ...args] = scriptOf('docs/tasks/notify-webhook.md', 'notification-receiver')
      .replace(' 443 ', ` ${port} `)
      .trim()
      .split(' ');
    assert.equal(program, 'node');
    receiver = spawn(process.execPath, [join(root, file), ...args], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: receiver.stdout ?? assert.fail() })[Symbol.asyncIterator]();
    assert.match((await lines.next()).value, /^listening/);
    // A unit test compares it with the page.
    const [provider, subscription] = parseAllDocuments(readFileSync(join(root, 'examples/notifications.yaml'), 'utf8'));
    provider?.setIn(['spec', 'caBundle'], readFileSync(join(folder, 'tls.crt'), 'utf8'));
    const input = `${provider}---\n${subscription}`.replaceAll('namespace: payments', `namespace: ${namespace}`);
    await plane.kubectl(['apply', '-f', '-'], { input });
    const sent = await run(scriptOf('docs/tasks/notify-webhook.md', 'notify test'));
    assert.match(sent, shown('tasks/notify-webhook.md', 'delivered'));
    assert.equal(JSON.parse((await lines.next()).value).type, 'dev.drawbridge.access.test.v1');
  });
});
