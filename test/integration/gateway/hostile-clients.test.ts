import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { until } from '../../../sandbox/wait.ts';
import { grantProxyPath } from '../../../src/api/gateway/names.ts';
import { GatewayStage, type StagedGrant } from '../../support/gateway-stage.ts';
import type { RawStream } from '../../support/raw-stream.ts';

const MiB = 1024 * 1024;

describe('a client that breaks the rules of its stream, through the API server', () => {
  let stage: GatewayStage;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open();
  });
  after(() => stage?.close());

  /** A stream that runs the command; it reads nothing yet. */
  const exec = ({ name }: StagedGrant, ...command: string[]): Promise<RawStream> => {
    const { namespace } = stage;
    const query = new URLSearchParams({ stdin: 'true', stdout: 'true', stderr: 'true' });
    for (const word of command) query.append('command', word);
    const pod = `${grantProxyPath(namespace, name)}/api/v1/namespaces/${namespace}/pods/payments`;
    return stage.alice.stream(`${pod}/exec?${query}`);
  };
  /** A stream that echoes what it gets. */
  const echo = async (grant: StagedGrant): Promise<RawStream> => {
    const stream = (await exec(grant, 'cat')).read();
    stream.send('\0hello\n');
    await stream.shows(/hello/);
    return stream;
  };

  const breaches: readonly [string, (stream: RawStream) => void][] = [
    ['an unmasked frame', (stream) => stream.send('\0late\n', { masked: false })],
    ['a message on an unknown channel', (stream) => stream.send('\x07late\n')],
    ['a message on the channel of the output', (stream) => stream.send('\x01late\n')],
    ['a frame with an unknown opcode', (stream) => stream.send('\0late\n', { opcode: 3 })],
    ['a frame that is too long', (stream) => stream.send('\0late\n', { length: BigInt(16 * MiB + 1) })],
    [
      'a frame of which other readers take the length for 6',
      (stream) => stream.send('\0late\n', { length: 2n ** 63n + 6n }),
    ],
    [
      'a fragment with input, as the rest of a size, which no recording would show',
      (stream) => {
        stream.send('\x04{', { final: false });
        stream.send('\0late\n', { opcode: 0 });
      },
    ],
  ];
  for (const [what, breach] of breaches) {
    it(`ends with BadFrame after ${what}, which does not reach the pod`, async () => {
      const grant = await stage.grant();
      const stream = await echo(grant);
      breach(stream);
      await stream.shows(/the session ended at \d\d:\d\d UTC: BadFrame/);
      await stream.closed;
      assert.doesNotMatch(stream.received, /late/);
      assert.equal((await stage.ended(grant))['code'], 'BadFrame');
    });
  }

  it('that reads nothing delays only itself, costs no memory, and ends at the deadline', async () => {
    const grant = await stage.grant({ lastsMs: 12_000 });
    const before = await residentBytes(stage.gateway.pid);
    const stream = await exec(grant, 'sh', '-c', 'yes | head -c 500000000');
    const other = await echo(await stage.grant());
    let seen = -1;
    await until(
      'the output to stop',
      async () => {
        const grown = (await residentBytes(stage.gateway.pid)) - before;
        const isStill = Math.abs(grown - seen) < MiB;
        seen = grown;
        return isStill;
      },
      { timeoutMs: 20_000, everyMs: 500 },
    );
    assert.ok(seen < 32 * MiB, `the gateway grew by ${seen} bytes`);
    other.send('\0still here\n');
    await other.shows(/still here/);
    const { code, bytesOut } = (await stage.ended(grant)) as { code?: unknown; bytesOut?: number };
    assert.equal(code, 'Expired');
    assert.ok((bytesOut ?? Infinity) < 64 * MiB, `${bytesOut} bytes`);
    stream.socket.destroy();
    other.socket.destroy();
  });

  it('of SPDY, which kubectl may repeat after a refusal, is told how to see why, and has no line if the grant allows it', async () => {
    const rules = [{ apiGroups: [''], resources: ['pods'], resourceNames: ['payments'] as [string], verbs: ['get'] }];
    const [all, few] = [await stage.grant(), await stage.grant({ over: { rules } })];
    const pod = `${grantProxyPath(stage.namespace, all.name)}/api/v1/namespaces/${stage.namespace}/pods/payments`;
    for (const [way, ...args] of [
      ['exec', 'exec', 'payments', '--', 'true'],
      ['portforward', 'port-forward', 'pod/payments', ':80'],
    ]) {
      const upgrade = { connection: 'Upgrade', upgrade: 'SPDY/3.1' };
      const spdy = await stage.alice.call('POST', `${pod}/${way}`, undefined, upgrade);
      assert.match(JSON.stringify(spdy.body), /if its WebSocket was refused: run the command again with -v=4/);
      const repeated = await stage.alice.kubectl([...few.via, ...args], { reject: false });
      assert.match(repeated.stderr, /does not give create on pods\/(exec|portforward)/);
    }
    const url = `${grantProxyPath(stage.namespace, few.name)}/api/v1/namespaces/${stage.namespace}/pods/another/exec`;
    const upgrade = { connection: 'Upgrade', upgrade: 'SPDY/3.1' };
    assert.equal((await stage.alice.call('POST', url, undefined, upgrade)).status, 403);
    const denied = await stage.gateway.audit((line) => line.verdict === 'denied');
    const of = ({ request }: StagedGrant): unknown[] =>
      denied.filter((line) => line['request'] === request).map((line) => line['code']);
    assert.deepEqual(of(all), []);
    assert.deepEqual(
      of(few),
      ['NotGranted', 'NotGranted', 'NotGranted', 'NotGranted'],
      'one for the exec, two for the port-forward, which kubectl repeats, and one for the other Pod',
    );
  });

  it('that opens too many gets no 65th of a grant, and one again after another has ended', async function () {
    this.timeout(60_000);
    const grant = await stage.grant();
    const streams = await Promise.all(Array.from({ length: 64 }, () => echo(grant)));
    const refused = (await exec(grant, 'cat')).read();
    await refused.shows(/"message":"drawbridge: the grant has 64 open sessions.*"code":429/);
    await refused.closed;
    const { stderr } = await stage.alice.kubectl([...grant.via, 'exec', 'payments', '--', 'cat'], { reject: false });
    assert.match(stderr, /the grant has 64 open sessions/);
    const denied = await stage.gateway.audit((line) => line['request'] === grant.request && line.verdict === 'denied');
    assert.deepEqual(
      denied.map((line) => line['code']),
      ['TooManySessions'],
      'kubectl already gets no answer to its read of the Pod, which has no line',
    );
    const other = await echo(await stage.grant());
    streams[0]?.socket.destroy();
    await until('a free place', () => echo(grant).catch(() => undefined), { timeoutMs: 30_000, everyMs: 500 });
    for (const { socket } of [...streams, other]) socket.destroy();
  });
});

/** Resident memory of a process, bytes. */
async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
