import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePorts } from '../../../sandbox/ports.ts';
import { formatTime } from '../../../src/kit/clock.ts';
import { ScriptedComponent } from '../../support/inventory/scripted-component.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';
import { runAsReader, scriptOf } from '../../support/page-commands.ts';
import { shown } from '../../support/shown-output.ts';

describe('kubectl and the inventory', function () {
  this.timeout(180_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  afterEach(async () => stage?.clear());
  after(async () => stage?.close());

  const kubectl = (...args: readonly string[]) => stage.plane.kubectl([...args], { reject: false });

  it('explains the defaults of fields', async () => {
    for (const [field, text] of [
      ['componentreconcilers.spec.intervalSeconds', 'Default: 3600.'],
      ['componentreconcilers.spec.retry', 'Default: {"baseSeconds":1,"capSeconds":300}.'],
      ['clusterinventories.spec.mode', 'Default: managed.'],
      ['clusterinventories.spec.suspend', 'Default: false.'],
    ] as const) {
      const { stdout } = await kubectl('explain', field, '--api-version=inventory.drawbridge.dev/v1alpha1');
      assert.ok(stdout.replace(/\s+/g, ' ').includes(text), `${field}: ${stdout}`);
    }
  });

  it('creates an entry, and registers the reference components, by the commands of run-the-inventory.md', async () => {
    const page = 'docs/inventory/run-the-inventory.md';
    const folder = mkdtempSync(join(stage.plane.directory, 'reader-'));
    const examples = 'examples/inventory';
    mkdirSync(join(folder, examples), { recursive: true });
    const authority = stage.plane.authority.certificate.trim().replaceAll('\n', '\n    ');
    for (const name of ['managed.yaml', 'components.yaml', 'reference-rights.yaml']) {
      const content = readFileSync(join(examples, name), 'utf8').replaceAll(/: fleet\b/g, `: ${stage.namespace}`);
      writeFileSync(
        join(folder, examples, name),
        content.replaceAll(/-{5}BEGIN[\s\S]*?END CERTIFICATE-{5}/g, authority),
      );
    }
    const reader = { plane: stage.plane, folder };
    const follow = (words: string): Promise<string> =>
      runAsReader(reader, scriptOf(page, words).replace('-n fleet', `-n ${stage.namespace}`));
    // Without a component, which the sandbox does not run, the entry can be deleted at once.
    assert.match(await follow('managed.yaml'), shown('inventory/run-the-inventory.md', 'orders created'));
    await stage.delete('orders');
    await stage.gone('orders');
    assert.match(await follow('components.yaml'), shown('inventory/run-the-inventory.md', 'network created'));
    await runAsReader(reader, scriptOf(page, 'components.yaml').replace('apply', 'delete'));
  });

  it('prints at most 80 characters of what an entry waits for, and all of it with -o wide', async () => {
    const paths = Array.from({ length: 6 }, (_, i) => `/spec/cluster/networking/field${i}`);
    const missing = paths.map((path) => ({ path, want: 'present' }));
    await stage.component('network', () => ({ outcome: 'NotReady', missing }) as never);
    await stage.entry('one');
    await stage.until('the message', async () => (await stage.get('one')).components[0]?.state === 'NotReady');
    const narrow = await column('WAITING FOR', 'clusterinventories');
    assert.equal(narrow, 'network: waits for /spec/cluster/networking/field0, /spec/cluster/networking/fi…');
    assert.equal(narrow.length, 80);
    assert.equal(await column('MESSAGE', 'clusterinventories', '-o', 'wide'), `network: waits for ${paths.join(', ')}`);
  });

  it('prints in words why a component ran, and the reasons with -o wide', async () => {
    await stage.component('network', () => ({ outcome: 'Done' }), { reads: ['/spec/cluster/region'] });
    await stage.entry('one');
    await stage.ready('one');
    assert.equal(await column('WHY', 'reconcileruns'), 'first run for this entry');
    await stage.patch('one', { spec: { cluster: { region: 'here' } } });
    await stage.until('the second run', async () => (await column('SEQ', 'reconcileruns')) === '2');
    assert.equal(await column('WHY', 'reconcileruns'), '/spec/cluster/region changed');
    assert.equal(await column('REASONS', 'reconcileruns', '-o', 'wide'), '["ConfigChanged:/spec/cluster/region"]');
  });

  it('prints that a report was rejected, until a heartbeat, and as a Warning without its content', async () => {
    const network = await stage.component('network', () => ({ status: 202, body: { leaseSeconds: 3000 } }));
    await stage.entry('one');
    const message = () => column('MESSAGE', 'clusterinventories', '-o', 'wide');
    const becomes = (expected: RegExp) => stage.until(`${expected}`, async () => expected.test(await message()));
    const running = /^network: running since 20\S+Z$/;
    await becomes(running);
    for (let i = 0; i < 3; i += 1) assert.equal(await report(network, { outcome: 'Perfect' }), 400);
    assert.equal(await report(network, { outcome: 'Failed', message: 'x'.repeat(140_000) }), 413);
    await becomes(
      /^network: running since 20\S+Z; report rejected \(InvalidReport\) at 20\S+Z, see the log of the component$/,
    );
    const events = async () => (await kubectl('events', '--for=clusterinventory/one', ...here())).stdout;
    const warning =
      /Warning +ReportRejected +ClusterInventory\/one +network: the server rejected a report of the component \(InvalidReport\); the HTTP answer to the component has the cause: check the log of the component\n/g;
    await stage.until('the Event', async () => warning.test(await events()));
    assert.doesNotMatch(await events(), /Perfect/);
    assert.equal((await events()).match(warning)?.length, 1);
    assert.equal(await report(network, { heartbeat: {} }), 200);
    await becomes(running);
    assert.equal(await report(network, { outcome: 'Done' }), 200);
    await stage.ready('one');
  });

  it('warns about a name in spec.components that no component handles', async () => {
    await stage.component('network', () => ({ outcome: 'Done' }));
    const input = JSON.stringify({
      apiVersion: 'inventory.drawbridge.dev/v1alpha1',
      kind: 'ClusterInventory',
      metadata: { name: 'one' },
      spec: { components: { network: {}, netwrok: { config: { cidr: '10.0.0.0/16' } } } },
    });
    const { code, stderr } = await stage.plane.kubectl(['create', '-f', '-', ...here()], { reject: false, input });
    assert.equal(code, 0);
    assert.deepEqual(stderr.trim().split('\n'), [
      'Warning: spec.components.netwrok has no effect: no component netwrok is registered; registered: network; correct the name, or register the component',
    ]);
  });

  it('names the entries that keep a registration, and deletes it after each abandons the component', async () => {
    const network = await stage.component('network', () => ({ outcome: 'Done', outputs: { network: { a: 1 } } }));
    await stage.entry('one');
    await stage.ready('one');
    const remove = () => kubectl('delete', 'componentreconciler', 'network');
    const denied = (await remove()).stderr;
    assert.match(denied, new RegExp(`HasRuns: component network still has runs for ${stage.namespace}/one; `));
    const [, command = ''] = /(annotate clusterinventory \S+ -n \S+ \S+)=REASON/.exec(denied) ?? [];
    const page = scriptOf('docs/inventory/run-the-inventory.md', 'abandon.inventory')
      .replace('orders -n fleet', `one -n ${stage.namespace}`)
      .replace('NAME', 'network');
    assert.equal(page, `kubectl ${command}='its account is lost'\n`);
    const kubeconfig = await stage.plane.kubeconfigFor('alice', ['system:masters']);
    await runAsReader({ plane: stage.plane, folder: stage.plane.directory, kubeconfig }, page);
    await stage.until('the end of the run', async () => (await stage.records()).length === 0);
    const entry = await stage.get('one');
    assert.deepEqual(entry.content.status.outputs, {});
    await stage.until('who and why in the entry', async () => {
      const { stdout } = await kubectl('describe', 'clusterinventory', 'one', ...here());
      return /Message: +abandoned by alice: its account is lost\n +Name: +network\n[\s\S]*Reason: +Abandoned/.test(
        stdout,
      );
    });
    await stage.until('the Event', async () => {
      const { stdout } = await kubectl('events', '--for=clusterinventory/one', ...here());
      return /Warning +Abandoned +.* component network was abandoned by alice: its account is lost; /.test(stdout);
    });
    await stage.until('the audit line', async () => (await abandonments(entry.ref.uid)).length > 0);
    const lines = await abandonments(entry.ref.uid);
    assert.deepEqual(
      lines.map(({ who, component, reason }) => [(who as { user: string }).user, component, reason]),
      [['alice', 'network', 'its account is lost']],
    );
    assert.equal((await remove()).code, 0);
    assert.equal(network.calls.length, 1);
  });

  it('lets a suspended entry go once nothing is left to tear down', async () => {
    await stage.component('network', () => ({ outcome: 'Done' }));
    await stage.entry('one');
    await stage.ready('one');
    await stage.patch('one', { spec: { suspend: true } });
    await stage.delete('one');
    const reason = 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}';
    await stage.until(
      'the reason',
      async () =>
        (await kubectl('get', 'clusterinventory', 'one', ...here(), '-o', reason)).stdout === 'Suspended' &&
        (await column('NEXT', 'reconcileruns', '-o', 'wide')) === 'none: suspended by spec.suspend of the entry',
    );
    await kubectl('annotate', 'clusterinventory', 'one', ...here(), 'abandon.inventory.drawbridge.dev/network=lost');
    await stage.gone('one');
  });

  it('runs an abandoned component again after the annotation is removed', async () => {
    const network = await stage.component('network', () => ({ outcome: 'Done' }));
    const annotation = 'abandon.inventory.drawbridge.dev/network';
    await stage.entry('one');
    await stage.ready('one');
    await kubectl('annotate', 'clusterinventory', 'one', ...here(), `${annotation}=moved`);
    await stage.until('the end of the run', async () => (await stage.records()).length === 0);
    await kubectl('annotate', 'clusterinventory', 'one', ...here(), `${annotation}-`);
    await stage.until('another run', () => network.calls.length === 2);
    await stage.ready('one');
    assert.equal(await column('READY', 'clusterinventories'), 'True');
    assert.equal(await column('LAST OUTCOME', 'reconcileruns'), 'Done');
    const annotations = 'jsonpath={.metadata.annotations}';
    const { stdout } = await kubectl('get', 'clusterinventory', 'one', ...here(), '-o', annotations);
    assert.equal(stdout, '', 'the name of the user is removed, too');
  });

  it('prints a dead endpoint in the entry and as a Warning, and its failed calls in the run', async () => {
    const [port = 0] = await freePorts(1);
    await stage.register('network', `http://127.0.0.1:${port}`);
    await stage.entry('away');
    await stage.until('three calls', async () => Number(await column('SEQ', 'reconcileruns')) > 3);
    assert.match(
      await column('WAITING FOR', 'clusterinventories'),
      /^network: Retrying \(Unreachable\): connect ECONNREFUSED 127\.0\.0\.1:\d+$/,
    );
    assert.equal(await column('LAST OUTCOME', 'reconcileruns'), 'Retry');
    assert.match(await column('MESSAGE', 'reconcileruns', '-o', 'wide'), /ECONNREFUSED/);
    const events = async () => (await kubectl('events', '--for=clusterinventory/away', ...here())).stdout;
    await stage.until('the Event', async () => /Warning +Retry +.*network: Retry \(Unreachable\)/.test(await events()));
    const history = '{range .spec.history[*]}{.outcome} {.reason},{end}';
    const jsonpath = `jsonpath={.spec.attempt} ${history}`;
    const { stdout } = await kubectl('get', 'reconcilerun', 'away.network', ...here(), '-o', jsonpath);
    const [, attempt] = /^(\d+) (?:Retry Unreachable,){2}/.exec(stdout) ?? [];
    assert.ok(Number(attempt) >= 2, stdout);
    assert.match((await kubectl('get', 'componentreconcilers', 'network')).stdout, /network +True +(True|False) /);
    const component = await ScriptedComponent.start(() => ({ outcome: 'Done' }), { port });
    try {
      await stage.ready('away');
      assert.ok((component.calls[0]?.request.run.attempt ?? 0) >= 2);
      await stage.delete('away');
      await stage.gone('away');
    } finally {
      component.close();
    }
  });

  it('prints as NEXT a time that may pass, or why no run is next', async () => {
    let away: { readonly status: number; readonly retryAfter?: string } | undefined;
    await stage.component('network', () => away ?? { outcome: 'Done' }, {
      reads: ['/spec/cluster/region'],
    });
    await stage.component(
      'other',
      () => ({ outcome: 'NotReady', missing: [{ path: '/spec/x', want: 'present' }] }) as never,
    );
    const next = async (component: string, entry = 'one') => {
      const { stdout } = await kubectl('get', 'reconcilerun', `${entry}.${component}`, ...here(), '-o', 'wide');
      const [head = '', row = ''] = stdout.split('\n');
      const start = head.indexOf('NEXT');
      return row.slice(start, head.indexOf('MESSAGE')).trimEnd();
    };
    const becomes = (component: string, expected: string | RegExp) =>
      stage.until(`${expected} as NEXT of ${component}`, async () => {
        const found = await next(component);
        return typeof expected === 'string' ? found === expected : expected.test(found);
      });
    const time = /^at 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ or earlier$/;
    await stage.entry('one');
    await stage.until(
      'both runs',
      async () => (await stage.records()).filter(({ phase }) => phase === 'Idle').length === 2,
    );
    for (const component of ['network', 'other']) assert.match(await next(component), time);

    await stage.patch('one', { spec: { suspend: true } });
    for (const component of ['network', 'other'])
      await becomes(component, 'none: suspended by spec.suspend of the entry');
    const { nextAtMs } = (await stage.records()).find(({ component }) => component === 'network') ?? {};
    assert.ok(nextAtMs !== undefined && nextAtMs > Date.now(), 'the interval continues');
    await stage.patch('one', { spec: { suspend: false, components: { other: { enabled: false } } } });
    await becomes('network', time);
    await becomes('other', 'none: the entry disables the component');
    await stage.patch('one', { spec: { components: { other: null } } });
    await becomes('other', time);

    away = { status: 503 };
    await stage.patch('one', { spec: { cluster: { region: 'there' } } });
    await becomes('network', 'once the endpoint accepts calls; probed again within 30 s');
    assert.equal((await stage.records()).find(({ component }) => component === 'network')?.heldBy, 'Unreachable');
    away = undefined;
    await becomes('network', time);
    away = { status: 429, retryAfter: '600' };
    await stage.patch('one', { spec: { cluster: { region: 'elsewhere' } } });
    await stage.until('the outcome', async () => (await column('LAST OUTCOME', 'reconcileruns')) === 'Retry');
    assert.equal(await column('LAST REASON', 'reconcileruns', '-o', 'wide'), 'Busy');
    const busy = (await stage.records()).find(({ component }) => component === 'network');
    const endedAtMs = busy?.lastOutcome?.endedAtMs ?? 0;
    assert.equal(await next('network'), `at ${formatTime(endedAtMs + 300_000)} or earlier`);
    away = undefined;
    await stage.patch('one', { metadata: { annotations: { 'force.inventory.drawbridge.dev/network': '1' } } });
    await becomes('network', time);
    const network = async () => (await stage.get('one')).components.find(({ name }) => name === 'network');
    await stage.until('Done', async () => (await network())?.state === 'Done');
    away = { status: 429, retryAfter: '20' };
    await stage.patch('one', { metadata: { annotations: { 'force.inventory.drawbridge.dev/network': '2' } } });
    await stage.until('one answer 429 to show', async () => (await network())?.reason === 'Busy');
    away = undefined;
  });

  const here = () => ['-n', stage.namespace] as const;

  /** The audit lines about abandoned components of the entry. The server writes them in the background. */
  const abandonments = async (uid: string) =>
    (await stage.server.audit()).filter(({ code, what }) => code === 'Abandoned' && JSON.stringify(what).includes(uid));

  /** Reports an outcome for the last call of the component, and returns the status of the answer. */
  async function report(component: ScriptedComponent, outcome: object): Promise<number> {
    const { callback, run, auth } = component.calls.at(-1)?.request ?? assert.fail('no call');
    const { status } = await fetch(callback, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${auth.token}` },
      body: JSON.stringify({ run: run.id, ...outcome }),
    });
    return status;
  }

  /** The cell below the heading in the only row that `kubectl get` prints; empty if it prints none. */
  async function column(heading: string, ...args: readonly string[]): Promise<string> {
    const { stdout } = await kubectl('get', ...args, ...here());
    const [head = '', row = ''] = stdout.split('\n');
    if (head === '') return '';
    const start = head.indexOf(heading);
    assert.notEqual(start, -1, `no column ${heading} in ${head}`);
    const length = /^\S+( \S+)* {2,}(?=\S)/.exec(head.slice(start))?.[0].length;
    return row.slice(start, length && start + length).trimEnd();
  }
});
