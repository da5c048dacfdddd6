import assert from 'node:assert/strict';
import { readCommandLine } from '../../../../src/client/args.ts';
import { type ClusterConnection, openConnection } from '../../../../src/client/cluster-connection.ts';
import { commands } from '../../../../src/client/commands.ts';
import { type Call, Refusal } from '../../../../src/client/console/call.ts';
import { live } from '../../../../src/client/console/live.ts';
import type { LiveLine, RequestRow } from '../../../../src/client/console/wire.ts';
import { advanceIo, settleIo, until } from '../../../support/io.ts';
import type { Answer } from '../../../support/scripted-apiserver.ts';
import { type Fault, ScriptedCluster } from '../../../support/scripted-cluster.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { request, template } from '../objects.ts';

type Fields = Parameters<typeof request>;
const at = (version: string, ...[name, status = {}, spec = {}]: Fields) =>
  request(name, status, spec, { resourceVersion: version });
const byBob = { requester: { username: 'bob' } };
const waiting = (version: string, name = 'w') => at(version, name, { approval: { state: 'Pending' } }, byBob);

describe('the live stream of the console', () => {
  let clock: SimulatedClock;
  let cluster: ScriptedCluster;
  let connection: ClusterConnection;
  let lines: LiveLine[];
  let page: AbortController;
  /** Resolves to why the stream ended. */
  let ended: Promise<unknown>;
  /** The open watch of requests of pods. */
  let watch: Answer | undefined;
  /** Resolves when the page takes more. */
  let taken: Promise<void>;

  const open = async (requests: readonly object[], fault: Fault = () => false, query = ''): Promise<void> => {
    const objects = { podaccessrequests: requests, podaccesstemplates: [template({})] };
    cluster = await ScriptedCluster.open(objects, (asked, answer) => {
      if (fault(asked, answer)) return true;
      if (asked.watch && asked.path.endsWith('podaccessrequests')) watch = answer;
      return false;
    });
    const { args } = readCommandLine(['list', '-A', `--kubeconfig=${cluster.kubeconfig}`], commands);
    const options = { args, clock, kubeconfigPaths: undefined, program: 'drawbridge', note: () => undefined };
    connection = await openConnection(options);
    const call: Partial<Call> = {
      query: new URLSearchParams(query),
      connection,
      signal: page.signal,
      line: async (value) => {
        lines.push(value as LiveLine);
        await taken;
      },
    };
    ended = live(call as Call, clock).catch((error: unknown) => error);
  };
  beforeEach(() => {
    [clock, lines, page, taken, watch] = [
      new SimulatedClock(),
      [],
      new AbortController(),
      Promise.resolve(),
      undefined,
    ];
  });
  afterEach(async () => {
    page.abort();
    await ended;
    await connection.cluster.close();
    await cluster.close();
  });

  const rows = (): RequestRow[] => lines.flatMap((line) => ('requests' in line ? line.requests : []));
  const names = (): string[] => rows().map(({ name }) => name);
  const removed = (): string[] => lines.flatMap((line) => ('requests' in line ? (line.removed ?? []) : []));
  const beats = () => lines.flatMap((line) => ('beat' in line ? [line.beat] : []));
  const isSynced = (): boolean => lines.some((line) => 'synced' in line);
  const synced = async (): Promise<void> => {
    for (let i = 0; i < 40 && !(isSynced() && watch); i++) await advanceIo(clock, 100, 50);
    assert.ok(isSynced() && watch, 'synced');
    lines = [];
  };
  const change = (type: string, object: object): void => watch?.event(type, object);

  it('sends the first rows before the list is complete', async () => {
    let rest: (() => void) | undefined;
    await open([], ({ path, query, watch: watches }, answer) => {
      if (watches || !path.endsWith('podaccessrequests')) return false;
      if (query.get('continue')) rest = () => answer.list('7', [at('2', 'b')]);
      else answer.list('7', [at('1', 'a')], 'more');
      return true;
    });
    await advanceIo(clock, 500, 50);
    assert.deepEqual([names(), isSynced()], [['a'], false]);
    rest?.();
    await synced();
  });

  it('has every request once, then says that this is all', async () => {
    await open(Array.from({ length: 1200 }, (_, index) => at('1', `r${index}`)));
    await until(() => cluster.server.lists.length > 2);
    await advanceIo(clock, 1000, 50);
    assert.deepEqual([names().length, new Set(names()).size], [1200, 1200]);
    assert.deepEqual(
      lines.map((line) => ('requests' in line ? line.requests.length : Object.keys(line)[0])),
      ['beat', 500, 500, 200, 'synced'],
    );
  });

  it('removes what was gone when a list began anew', async () => {
    let calls = 0;
    await open([], ({ path, watch: watches }, answer) => {
      if (watches || !path.endsWith('podaccessrequests')) return false;
      calls += 1;
      if (calls === 1) answer.list('7', [at('1', 'a'), at('1', 'b')], 'more');
      else if (calls === 2) answer.status(410, 'Expired');
      else answer.list('8', [at('1', 'b')]);
      return true;
    });
    for (let i = 0; i < 20 && !isSynced(); i++) await advanceIo(clock, 100, 50);
    assert.deepEqual(removed(), ['payments/PodAccessRequest/a']);
  });

  it('sends changes of a tenth of a second as one line, of each request the last', async () => {
    await open([at('1', 'a'), at('1', 'b')]);
    await synced();
    change('MODIFIED', at('2', 'a', { podName: 'one' }));
    change('MODIFIED', at('3', 'a', { podName: 'two' }));
    change('DELETED', at('4', 'b'));
    change('ADDED', at('5', 'c'));
    await settleIo();
    assert.deepEqual(lines, []);
    await advanceIo(clock, 200, 50);
    assert.deepEqual(
      rows().map(({ name, pod }) => [name, pod]),
      [
        ['a', 'two'],
        ['c', ''],
      ],
    );
    assert.deepEqual([removed(), lines.length], [['payments/PodAccessRequest/b'], 1]);
  });

  it('says what the user can decide, and asks again after half a minute', async () => {
    let allowed = true;
    await open([waiting('1')], ({ path, body }, answer) => {
      if (!path.endsWith('selfsubjectaccessreviews')) return false;
      assert.match(JSON.stringify(body), /"verb":"approve"/);
      answer.json(201, { status: { allowed } });
      return true;
    });
    await advanceIo(clock, 1000, 50);
    assert.deepEqual(
      rows().map(({ name, choice, about, duration }) => [name, choice, about, duration]),
      [['w', 'approve, deny', 'Access', '1h']],
    );
    await advanceIo(clock, 31_000, 500);
    assert.equal(rows().length, 1);
    allowed = false;
    await advanceIo(clock, 31_000, 500);
    assert.deepEqual(
      rows().map(({ choice }) => choice),
      ['approve, deny', ''],
    );
    change('MODIFIED', at('2', 'w', { approval: { state: 'Denied' } }, byBob));
    await advanceIo(clock, 200, 50);
    assert.equal(rows().at(-1)?.about, '');
  });

  it('keeps only the last change of each request for a slow page, and drops a page that stays slow', async () => {
    await open([at('1', 'a')]);
    await synced();
    const slow = Promise.withResolvers<void>();
    taken = slow.promise;
    for (let version = 2; version < 200; version++) {
      change('MODIFIED', at(String(version), 'a', { podName: `p${version}` }));
      if (version % 50 === 0) await advanceIo(clock, 200, 100);
    }
    await advanceIo(clock, 1000, 100);
    assert.equal(lines.length, 1);
    slow.resolve();
    await advanceIo(clock, 1000, 100);
    assert.deepEqual([rows().length, rows().at(-1)?.pod], [2, 'p199']);

    taken = new Promise(() => undefined);
    await advanceIo(clock, 40_000, 1000);
    assert.match(String(await ended), /takes no more lines/);
  });

  it('says within ten seconds that an API server with open watches is silent', async () => {
    let isSilent = false;
    await open([at('1', 'a')], ({ path }) => isSilent && path.endsWith('selfsubjectreviews'));
    await synced();
    isSilent = true;
    await advanceIo(clock, 10_000, 50);
    assert.equal(beats().at(-1)?.failing, 'the API server does not answer');
    isSilent = false;
    await advanceIo(clock, 10_000, 50);
    assert.equal(beats().at(-1)?.failing, undefined);
  });

  it('beats every five seconds, with the clock of the API server', async () => {
    await open([]);
    await synced();
    await advanceIo(clock, 20_000, 500);
    assert.equal(beats().length, 4);
    const [beat] = beats();
    assert.deepEqual(Object.keys(beat ?? {}), ['failing', 'nowMs']);
    assert.ok(Math.abs((beat?.nowMs ?? 0) - clock.now()) <= Math.abs(connection.serverAheadMs() ?? 0) + 20_000);
  });

  const [notServed, forbidden] = [404, 403].map(
    (code): Fault =>
      ({ path }, answer) => {
        if (!path.endsWith('accesssessions')) return false;
        answer.status(code, code === 404 ? 'NotFound' : 'Forbidden');
        return true;
      },
  );
  for (const [what, fault] of [
    ['without a gateway', notServed],
    ['without permission to list sessions', forbidden],
  ] as const) {
    it(`goes on ${what}, and soon asks no more`, async () => {
      await open([at('1', 'a')], fault);
      await synced();
      await advanceIo(clock, 15_000, 500);
      const asked = (): number => cluster.server.requests.filter(({ path }) => path.endsWith('sessions')).length;
      const before = asked();
      await advanceIo(clock, 30_000, 500);
      assert.deepEqual([beats().find(({ failing }) => failing), asked() - before], [undefined, 0]);
      change('MODIFIED', at('2', 'a'));
      await advanceIo(clock, 200, 50);
      assert.equal(rows().length, 1);
    });
  }

  it('says what is wrong if requests cannot be listed, and what to do', async () => {
    await open([], ({ path }, answer) => {
      if (!path.startsWith('/apis/crds.')) return false;
      const message = 'the server could not find the requested resource';
      answer.json(404, { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404, message });
      return true;
    });
    await advanceIo(clock, 3000, 100);
    assert.match(beats().at(-1)?.failing ?? '', /does not serve the kinds of drawbridge/);
    assert.ok(isSynced());
  });

  it('says nothing of what exists while the cluster cannot be reached', async () => {
    let isAway = true;
    await open([at('1', 'a')], (_, answer) => {
      if (isAway) answer.reset();
      return isAway;
    });
    await advanceIo(clock, 3000, 100);
    assert.match(beats().at(-1)?.failing ?? '', /^cannot reach the cluster: .*check the network/);
    assert.ok(!isSynced());
    isAway = false;
    await synced();
    assert.equal(beats().at(-1)?.failing, undefined);
  });

  it('says so while the watches fail, and when they are back', async () => {
    let isAway = false;
    await open([at('1', 'a')], (_, answer) => {
      if (isAway) answer.status(503, 'ServiceUnavailable');
      return isAway;
    });
    await synced();
    isAway = true;
    watch?.reset();
    await advanceIo(clock, 2000, 100);
    assert.match(beats().at(-1)?.failing ?? '', /scripted 503/);
    isAway = false;
    await advanceIo(clock, 10_000, 250);
    assert.equal(beats().at(-1)?.failing, undefined);
  });

  it('watches one namespace, and until the page leaves', async () => {
    await open([at('1', 'a')], undefined, 'namespace=web');
    await synced();
    for (const { path } of cluster.server.watches) assert.match(path, /\/namespaces\/web\//);
    const isOpen = cluster.server.openConnections;
    page.abort();
    await ended;
    await until(() => cluster.server.openConnections < isOpen && watch?.closed === true);
  });

  it('takes only the name of a namespace', async () => {
    await open([], undefined, 'namespace=../x');
    const error = await ended;
    assert.ok(error instanceof Refusal && error.status === 400);
  });
});
