import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { until } from '../../sandbox/wait.ts';
import { accessSessions } from '../../src/api/access/access-session.ts';
import { childNameOf } from '../../src/api/access/names.ts';
import { grantProxyPath } from '../../src/api/gateway/names.ts';
import { execRequest, type StoredRequest } from '../support/access-requests.ts';
import { NodeStage } from '../support/node-stage.ts';
import type { RawStream } from '../support/raw-stream.ts';

/** Sessions of each kind that each reason ends. 10 makes 50 of each kind. */
const count = Number(process.env['DRAWBRIDGE_SESSIONS'] ?? 2);

interface Kind {
  readonly what: string;
  readonly command: readonly string[];
  /** Default: a terminal. `pipe`: only an input; `none`: neither. */
  readonly input?: 'pipe' | 'none';
  /** What the session shows before it is used. */
  readonly shows?: RegExp;
  readonly types?: string;
  /** What it shows then. */
  readonly thenShows?: RegExp;
  /** Whether the process stays in the Pod, as docs/concepts/session-processes.md says. */
  readonly stays?: true;
}

const kinds: readonly Kind[] = [
  { what: 'an idle sh', command: ['busybox', 'sh'], shows: /# / },
  { what: 'an idle bash', command: ['bash'], shows: /# / },
  {
    what: 'a loop in the foreground',
    command: ['bash'],
    shows: /# /,
    types: 'echo $((40+2)); while :; do sleep 1; done\n',
    thenShows: /42/,
  },
  { what: 'python', command: ['python3'], shows: />>> / },
  { what: 'an input without a terminal', command: ['cat'], input: 'pipe', types: 'hello\n', thenShows: /hello/ },
  { what: 'sleep without a terminal', command: ['sleep', '86400'], input: 'none', stays: true },
];

interface Opened {
  readonly request: StoredRequest;
  readonly streams: readonly RawStream[];
}

describe('the processes of sessions through the gateway, on a real node', function () {
  this.timeout(240_000);
  let stage: NodeStage;
  let pod: string;
  /** The processes of the Pod before the first session. */
  let first: readonly string[];
  let expiring: Opened;
  let idle: Opened;

  before(async () => {
    stage = await NodeStage.open();
    const labels = { app: 'shells' };
    const { namespace } = stage;
    await stage.apply(
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'shells', namespace },
        spec: {
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: {
              terminationGracePeriodSeconds: 1,
              containers: [{ name: 'main', image: 'localhost/tools:1', command: ['sleep', 'infinity'] }],
            },
          },
        },
      },
      ...[{}, { idleAfter: '1m' }].map((idle) => ({
        apiVersion: 'crds.wizardofoz.co/v1alpha1',
        kind: 'ExecAccessTemplate',
        metadata: { name: 'idleAfter' in idle ? 'shells-idle' : 'shells', namespace },
        spec: {
          accessConfig: { allowedGroups: ['devs'], session: { via: 'Gateway', ...idle } },
          controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'shells' },
        },
      })),
    );
    await stage.sh('kubectl rollout status deployment/shells -n payments --timeout=60s');
    await stage.templatesReady();
    const [found] = await stage.pods(namespace, 'app=shells');
    pod = found?.metadata.name ?? '';
    first = await processes();
    assert.deepEqual(first, ['sleep infinity']);
    // Both wait for a minute, at the same time.
    [expiring, idle] = [
      await open('expiring', { duration: '1m' }),
      await open('idle', { templateName: 'shells-idle' }),
    ];
  });
  after(async () => {
    await stage.deleteRequests();
    await stage.sh(
      'kubectl delete deployment/shells execaccesstemplate/shells execaccesstemplate/shells-idle -n payments',
    );
  });

  /** The command lines of the processes of the Pod, in order. */
  async function processes(): Promise<string[]> {
    const pids = await stage.node.processesOf(stage.namespace, pod, 'main');
    const lines = pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => ''));
    return (await Promise.all(lines))
      .map((line) => line.replaceAll('\0', ' ').trim())
      .filter((line) => line !== '')
      .sort();
  }

  /** Opens `count` sessions of each kind with a grant of its own, and uses them. */
  async function open(name: string, spec: object = {}): Promise<Opened> {
    const { alice, namespace } = stage;
    const request = await stage.createReady(alice, execRequest(name, { templateName: 'shells', ...spec }));
    const { uid } = request.metadata;
    const target = `${grantProxyPath(namespace, childNameOf({ name, uid }))}/api/v1/namespaces/${namespace}/pods/${pod}/exec`;
    const begin = async ({ command, input, shows, types, thenShows }: Kind): Promise<RawStream> => {
      const query = new URLSearchParams({ stdout: 'true' });
      if (input !== 'none') query.set('stdin', 'true');
      if (input === undefined) query.set('tty', 'true');
      for (const word of command) query.append('command', word);
      const stream = (await alice.stream(`${target}?${query}`)).read();
      if (shows) await stream.shows(shows);
      if (types !== undefined) stream.send(`\0${types}`);
      if (thenShows) await stream.shows(thenShows);
      return stream;
    };
    const all = kinds.flatMap((kind) => Array.from({ length: count }, () => kind));
    return { request, streams: await Promise.all(all.map(begin)) };
  }

  /** Waits until the gateway has ended all sessions with the code, and then until only the processes are left that must be. */
  async function ends({ streams }: Opened, code: string, others: readonly string[]): Promise<void> {
    await Promise.all(streams.map(({ closed }) => closed));
    for (const { received } of streams) assert.match(received, new RegExp(`ended at \\d\\d:\\d\\d UTC: ${code}`));
    const staying = kinds.flatMap(({ stays, command }) => (stays ? Array<string>(count).fill(command.join(' ')) : []));
    const expected = [...others, ...staying].sort();
    let found: readonly string[] = [];
    await until(
      'the processes to end',
      async () => {
        found = await processes();
        return found.length <= expected.length || undefined;
      },
      { timeoutMs: 5_000, everyMs: 50 },
    ).catch(() => {});
    assert.deepEqual(found, expected);
    await removeStaying();
  }

  /** Kills the processes that stay, so that the next test begins like the first. */
  async function removeStaying(): Promise<void> {
    for (const pid of await stage.node.processesOf(stage.namespace, pod, 'main')) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
      if (kinds.some(({ stays, command }) => stays && line === `${command.join('\0')}\0`)) process.kill(pid, 'SIGKILL');
    }
  }

  it('end when the grant expires and when the sessions are idle, but for a command without an input', async () => {
    await Promise.all([expiring, idle].flatMap(({ streams }) => streams.map(({ closed }) => closed)));
    const staying = kinds.flatMap(({ stays, command }) => (stays ? Array<string>(count).fill(command.join(' ')) : []));
    await ends(expiring, 'Expired', [...first, ...staying]);
    await until('them to be gone', async () => (await processes()).length === first.length || undefined, {
      timeoutMs: 5_000,
    });
    for (const { received } of idle.streams) assert.match(received, /Idle; run the command again/);
  });

  it('end when the request is revoked', async () => {
    const opened = await open('revoked');
    await stage.sh(
      `kubectl patch execaccessrequest revoked -n payments --type=merge -p '{"spec":{"revoked":true}}' --as=alice --as-group=devs --as-group=system:authenticated`,
    );
    await ends(opened, 'Revoked', first);
  });

  it('end when the AccessSessions are deleted', async () => {
    const opened = await open('killed');
    await stage.sh(`kubectl delete ${accessSessions.plural}.${accessSessions.group} --all -n payments`);
    await ends(opened, 'Killed', first);
  });

  it('end when the gateway restarts', async () => {
    const opened = await open('restarting');
    await stage.sh('kubectl rollout restart deployment/drawbridge-gateway -n drawbridge-system');
    await ends(opened, 'Restarting', first);
    await stage.rolledOut();
  });

  it('end when the client breaks the connection', async () => {
    const { streams } = await open('gone');
    for (const { socket } of streams) socket.destroy();
    const expected = [...first, ...Array<string>(count).fill('sleep 86400')].sort();
    await until('the processes to end', async () => (await processes()).length <= expected.length || undefined, {
      timeoutMs: 10_000,
      everyMs: 50,
    });
    assert.deepEqual(await processes(), expected);
    await removeStaying();
  });
});
