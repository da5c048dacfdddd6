import assert from 'node:assert/strict';
import { freePorts } from '../../../sandbox/ports.ts';
import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import { componentReconcilers } from '../../../src/api/inventory/names.ts';
import { formatTime } from '../../../src/kit/clock.ts';
import { deferred } from '../../../src/kit/promises.ts';
import { ScriptedComponent } from '../../support/inventory/scripted-component.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';

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

  it('shows one run of a component that answers Progressing without a time, not one each second', async () => {
    const component = await stage.component('network', () => ({ outcome: 'Progressing' }) as never);
    await stage.entry('one');
    await stage.until('the outcome', async () => (await stage.records())[0]?.lastOutcome?.outcome === 'Progressing');
    const [record] = await stage.records();
    const { endedAtMs = 0 } = record?.lastOutcome ?? {};
    assert.equal(Math.round(((record?.nextAtMs ?? 0) - endedAtMs) / 1000), 15);
    assert.equal(
      await column('NEXT', 'reconcileruns', '-o', 'wide'),
      `at ${formatTime(endedAtMs + 15_000)} or earlier`,
    );
    assert.equal(await column('SEQ', 'reconcileruns'), '1');
    assert.equal(component.calls.length, 1);
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

  it('prints what the first run of a component waits for before it has an answer', async () => {
    const answered = deferred<Outcome>();
    await stage.component('network', () => answered.promise, { timeoutSeconds: 30 });
    await stage.entry('one');
    const expected = 'network: Progressing (Pending): the first run is due or in progress';
    await stage.until(
      'the message',
      async () => (await column('MESSAGE', 'clusterinventories', '-o', 'wide')) === expected,
    );
    answered.resolve({ outcome: 'Done' });
    await stage.ready('one');
  });

  it('prints that the first run of a component that answered 202 is in progress', async () => {
    const network = await stage.component('network', () => ({ status: 202 }));
    await stage.entry('one');
    const expected = /^network: running since 20\S+Z$/;
    await stage.until('the message', async () => expected.test(await column('WAITING FOR', 'clusterinventories')));
    assert.equal(await report(network, { outcome: 'Done' }), 200);
    await stage.ready('one');
    assert.equal(await column('WAITING FOR', 'clusterinventories'), '');
  });

  it('prints that a component runs, not what it waited for before, once it answered 202 again', async () => {
    const missing = [{ path: '/spec/cluster/domain', want: 'present' }];
    let isSet = false;
    const network = await stage.component('network', () =>
      isSet ? { status: 202 } : ({ outcome: 'NotReady', missing } as never),
    );
    await stage.entry('one');
    const message = () => column('MESSAGE', 'clusterinventories', '-o', 'wide');
    await stage.until('the first outcome', async () => (await message()) === 'network: waits for /spec/cluster/domain');
    isSet = true;
    await stage.patch('one', { spec: { cluster: { domain: 'example.org' } } });
    const expected = /^network: running since 20\S+Z; last outcome: waits for \/spec\/cluster\/domain$/;
    await stage.until('the message', async () => expected.test(await message()));
    const { stdout } = await kubectl('describe', 'clusterinventory', 'one', ...here());
    assert.match(stdout, /Reason: +Running\n +Since: +\S+\n +State: +Progressing\n/);
    assert.equal(await column('LAST OUTCOME', 'reconcileruns'), 'NotReady');
    assert.equal(await report(network, { outcome: 'Done' }), 200);
    await stage.ready('one');
  });

  it('prints that an entry is suspended, whatever its components were', async () => {
    let outcome: object = { outcome: 'Failed', message: 'no such region' };
    await stage.component('network', () => outcome as never);
    await stage.entry('one');
    const message = () => column('MESSAGE', 'clusterinventories', '-o', 'wide');
    const becomes = (expected: string) => stage.until(expected, async () => (await message()) === expected);
    await becomes(
      'network: Failed: no such region; annotate the entry with force.inventory.drawbridge.dev/network=NEW-VALUE to repeat the run',
    );
    await stage.patch('one', { spec: { suspend: true } });
    await becomes(
      'suspended by spec.suspend: set it to false to resume; network: last outcome: Failed: no such region',
    );
    const reason = 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}';
    assert.equal((await kubectl('get', 'clusterinventory', 'one', ...here(), '-o', reason)).stdout, 'Suspended');
    const { stdout } = await kubectl('describe', 'clusterinventory', 'one', ...here());
    assert.match(
      stdout,
      /Message: +last outcome: Failed: no such region\n +Name: +network\n[\s\S]*Reason: +Suspended\n +Since: +\S+\n +State: +Suspended\n/,
    );
    outcome = { outcome: 'Done' };
    const metadata = { annotations: { 'force.inventory.drawbridge.dev/network': '1' } };
    await stage.patch('one', { metadata, spec: { suspend: false } });
    await stage.ready('one');
    await becomes('');
    await stage.patch('one', { spec: { suspend: true } });
    await becomes('suspended by spec.suspend: set it to false to resume');
    assert.equal(await column('READY', 'clusterinventories'), 'True');
    await stage.patch('one', { spec: { suspend: false } });
  });

  it('prints until when a teardown waits for the run of a component that answered 202, and what ends that', async () => {
    await stage.component('network', () => ({ status: 202, body: { leaseSeconds: 3000 } }));
    await stage.entry('one');
    const message = () => column('MESSAGE', 'clusterinventories', '-o', 'wide');
    await stage.until('the run', async () => (await message()).startsWith('network: running since '));
    await stage.delete('one');
    const expected =
      /^network: the teardown waits for the run that began at 20\S+Z; it ends at 20\S+Z at the latest; to finish without the teardown, annotate the entry with abandon\.inventory\.drawbridge\.dev\/network=REASON$/;
    await stage.until('the message', async () => expected.test(await message()));
    assert.match(
      await column('NEXT', 'reconcileruns', '-o', 'wide'),
      /^once the current run ends; without a report, at about 20\S+Z$/,
    );
    await kubectl('annotate', 'clusterinventory', 'one', ...here(), 'abandon.inventory.drawbridge.dev/network=silent');
    await stage.gone('one');
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

  it('prints which field limits a run that does not end, and its value', async () => {
    let body: object = { leaseSeconds: 3000 };
    const network = await stage.component('network', () => ({ status: 202, body }), {
      maxRunSeconds: 10,
      retry: { baseSeconds: 3600, capSeconds: 3600 },
    });
    await stage.entry('one');
    const message = () => column('MESSAGE', 'clusterinventories', '-o', 'wide');
    const found = 'network: Retrying (LeaseOver): the component reported no valid outcome';
    const limit = 'spec.maxRunSeconds of ComponentReconciler network, 10 s';
    const becomes = (expected: string) => stage.until(expected, async () => (await message()) === expected);
    await becomes(
      `${found} within ${limit}; the component must POST the outcome to callback of the call; a report that was answered 401 or 403 does not count: check the answers in the log of the component; if its work takes longer, increase the field`,
    );
    body = { leaseSeconds: 1 };
    await kubectl('annotate', 'clusterinventory', 'one', ...here(), 'force.inventory.drawbridge.dev/network=1');
    await stage.until('the second call', () => network.calls.length >= 2);
    await becomes(
      `${found} or heartbeat within its heartbeat timeout (leaseSeconds, 1 s); the component must POST the outcome to callback of the call, and until then heartbeats in time, or with more leaseSeconds, which extend a run up to ${limit}; a report that was answered 401 or 403 does not count: check the answers in the log of the component`,
    );
  });

  it('prints that only the registration changed, or that the force annotation was removed', async () => {
    const annotation = 'force.inventory.drawbridge.dev/network';
    const held = deferred<Outcome>();
    let answer: () => Outcome | Promise<Outcome> = () => ({ outcome: 'Done' });
    await stage.component('network', () => answer());
    await stage.entry('one');
    await stage.ready('one');
    await kubectl('annotate', 'clusterinventory', 'one', ...here(), `${annotation}=1`);
    const why = (expected: string) =>
      stage.until(expected, async () => (await column('WHY', 'reconcileruns')) === expected);
    const becomes = (expected: string) =>
      stage.until(expected, async () => (await column('MESSAGE', 'clusterinventories', '-o', 'wide')) === expected);
    await why('force annotation changed');
    await stage.ready('one');
    answer = () => held.promise;
    const patch = { spec: { intervalSeconds: 1800 } };
    await stage.cluster.client.mergePatch(componentReconcilers, { name: 'network' }, patch);
    await becomes('network: Progressing (InputsChanged): inputs or registration changed; a run is due or in progress');
    await why('registration changed');
    await kubectl('annotate', 'clusterinventory', 'one', ...here(), `${annotation}-`);
    held.resolve({ outcome: 'Done' });
    await why('force annotation changed');
    await stage.ready('one');
  });

  it('prints that a teardown failed, and what ends it', async () => {
    const network = await stage.component('network', () => ({ outcome: 'Done' }));
    network.teardown = () => ({ outcome: 'Failed', message: 'AccountLocked: cannot delete zone' });
    await stage.entry('one');
    await stage.ready('one');
    await stage.delete('one');
    const expected =
      'network: Deleting (Failed): AccountLocked: cannot delete zone; annotate the entry with force.inventory.drawbridge.dev/network=NEW-VALUE to repeat the teardown, or with abandon.inventory.drawbridge.dev/network=REASON to finish without it';
    const message = () => column('MESSAGE', 'clusterinventories', '-o', 'wide');
    await stage.until('the message', async () => (await message()) === expected);
    const annotate = (text: string) => kubectl('annotate', 'clusterinventory', 'one', ...here(), text);
    await annotate('force.inventory.drawbridge.dev/network=1');
    await stage.until('another teardown', async () => (await column('SEQ', 'reconcileruns')) === '3');
    assert.equal(await column('WHY', 'reconcileruns'), 'force annotation changed');
    await stage.until('the message again', async () => (await message()) === expected);
    await annotate('abandon.inventory.drawbridge.dev/network=locked');
    await stage.gone('one');
  });

  it('prints a component that the entry names and no one registered, also if the entry is ready', async () => {
    const selector = { matchLabels: { try: 'dns' } };
    await stage.component('network', () => ({ outcome: 'Done' }));
    await stage.component('dns', () => ({ outcome: 'Done' }), { selector });
    await stage.entry('one', { components: { firewall: {}, network: { enabled: false } } });
    const message = () => column('MESSAGE', 'clusterinventories', '-o', 'wide');
    const becomes = (expected: string) => stage.until(expected, async () => (await message()) === expected);
    await becomes(
      'no component runs: firewall (not registered), dns (its selector does not match the labels of the entry), network (spec.components.network.enabled is false)',
    );
    await stage.patch('one', { spec: { components: { network: null } } });
    await stage.ready('one');
    await becomes('firewall: not registered');
    const { stdout } = await kubectl('describe', 'clusterinventory', 'one', ...here());
    assert.match(
      stdout,
      /Message: +no such component is registered; .*\n +Name: +firewall\n +Reason: +NotRegistered\n/,
    );
    await stage.component('firewall', () => ({ outcome: 'Done' }));
    await becomes('');
  });

  it('prints that an entry waits for an endpoint that fails for another entry', async () => {
    await stage.component('network', () => ({ status: 503, body: { message: 'maintenance' } }));
    await stage.entry('first');
    const reachable = async () => (await kubectl('get', 'componentreconciler', 'network', '-o', 'wide')).stdout;
    await stage.until('the breaker to open', async () =>
      /the endpoint accepts no calls; the circuit breaker opened at \S+Z: the component answered 503: \{"message":"maintenance"\}; the server calls it again for /.test(
        await reachable(),
      ),
    );
    await stage.entry('second');
    const text = 'jsonpath={.status.conditions[?(@.type=="Ready")].message}';
    const message = async () => (await kubectl('get', 'clusterinventory', 'second', ...here(), '-o', text)).stdout;
    const expected =
      'network: Retrying (Busy): the endpoint accepts no calls: the component answered 503: {"message":"maintenance"}; see: kubectl get componentreconciler network -o wide';
    await stage.until('the message', async () => (await message()) === expected);
    for (const name of ['first', 'second'])
      await stage.patch(name, { metadata: { annotations: { 'abandon.inventory.drawbridge.dev/network': 'test' } } });
  });

  it('records each reason of an abandonment, also of a component that never ran', async () => {
    const [port = 0] = await freePorts(1);
    await stage.register('network', `http://127.0.0.1:${port}`);
    await stage.entry('first');
    await stage.until('the breaker to open', async () =>
      /UNREACHABLE\nnetwork .* the endpoint accepts no calls; /.test(
        (await kubectl('get', 'componentreconcilers', '-o', 'wide')).stdout,
      ),
    );
    await stage.entry('one');
    await stage.until('the status', async () => (await stage.get('one')).components[0]?.state === 'Retrying');
    const { uid } = (await stage.get('one')).ref;
    for (const reason of ['lost', 'moved']) {
      const annotation = `abandon.inventory.drawbridge.dev/network=${reason}`;
      await kubectl('annotate', '--overwrite', 'clusterinventory', 'one', ...here(), annotation);
      const note = new RegExp(`Warning +Abandoned +.* component network was abandoned by \\S+: ${reason}; `);
      await stage.until(`the Event about ${reason}`, async () =>
        note.test((await kubectl('events', '--for=clusterinventory/one', ...here())).stdout),
      );
    }
    await stage.until('the audit lines', async () => (await abandonments(uid)).length >= 2);
    const lines = await abandonments(uid);
    assert.deepEqual(
      lines.map(({ reason }) => reason),
      ['lost', 'moved'],
    );
    await stage.patch('first', { metadata: { annotations: { 'abandon.inventory.drawbridge.dev/network': 'test' } } });
  });

  it('prints Events that name what is missing', async () => {
    const missing = [{ path: '/spec/cluster/region', want: 'present' }];
    await stage.component('network', () => ({ outcome: 'NotReady', missing, message: 'need a region' }) as never);
    await stage.entry('regionless');
    const events = async () => (await kubectl('events', '--for=clusterinventory/regionless', ...here())).stdout;
    await stage.until('the Event', async () => (await events()).includes('NotReady'));
    assert.match(
      await events(),
      /Normal +NotReady +ClusterInventory\/regionless +network: waits for \/spec\/cluster\/region: need a region; started because: first run for this entry/,
    );
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

  it('warns about an annotation for a component that no one registered', async () => {
    await stage.component('network', () => ({ outcome: 'Done' }));
    await stage.entry('one');
    await stage.ready('one');
    const annotation = 'force.inventory.drawbridge.dev/netwrok';
    const { code, stderr } = await kubectl('annotate', 'clusterinventory', 'one', ...here(), `${annotation}=1`);
    assert.equal(code, 0);
    assert.equal(
      stderr.trim(),
      `Warning: annotation ${annotation} has no effect: no component netwrok is registered; registered: network; correct the name, or register the component`,
    );
  });

  it('names the entries that keep a registration, and deletes it after each abandons the component', async () => {
    const network = await stage.component('network', () => ({ outcome: 'Done', outputs: { network: { a: 1 } } }));
    await stage.entry('one');
    await stage.ready('one');
    const remove = () => kubectl('delete', 'componentreconciler', 'network');
    const denied = (await remove()).stderr;
    assert.match(denied, new RegExp(`HasRuns: component network still has runs for ${stage.namespace}/one; `));
    const [, command = ''] = /(annotate clusterinventory \S+ -n \S+ \S+)=REASON/.exec(denied) ?? [];
    const asAlice = { kubeconfig: await stage.plane.kubeconfigFor('alice', ['system:masters']) };
    await stage.plane.kubectl(
      [...command.split(' ').slice(0, -1), `${command.split(' ').at(-1)}=its account is lost`],
      asAlice,
    );
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

  it('names the components that a suspended entry still has to tear down', async () => {
    await stage.component('network', () => ({ outcome: 'Done' }));
    await stage.entry('one');
    await stage.ready('one');
    await stage.patch('one', { spec: { suspend: true } });
    await stage.delete('one');
    const message = () => column('MESSAGE', 'clusterinventories', '-o', 'wide');
    await stage.until('the message', async () => (await message()).startsWith('the entry is being deleted'));
    assert.equal(
      await message(),
      'the entry is being deleted, but spec.suspend is true: the server starts no teardown of network; set spec.suspend to false',
    );
    await stage.patch('one', { spec: { suspend: false } });
    await stage.gone('one');
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

  it('names a disabled component when none runs', async () => {
    await stage.component('network', () => ({ outcome: 'Done' }));
    await stage.entry('one', { components: { network: { enabled: false } } });
    const expected = 'no component runs: network (spec.components.network.enabled is false)';
    await stage.until(
      'the message',
      async () => (await column('MESSAGE', 'clusterinventories', '-o', 'wide')) === expected,
    );
    const { stdout } = await kubectl('describe', 'clusterinventory', 'one', ...here());
    assert.match(
      stdout,
      /Message: +spec\.components\.network\.enabled is false; set it to true to run the component\n/,
    );
  });

  it('prints an Event for each new reason of a Retry, a Warning unless the component asks for the retry', async () => {
    let body: unknown = { outcome: 'Retry', message: 'quota of DNS exceeded' };
    await stage.component('network', () => ({ status: 200, body }));
    await stage.entry('reasons');
    const events = async () => (await kubectl('events', '--for=clusterinventory/reasons', ...here())).stdout;
    await stage.until('the first Event', async () => /Normal +Retry +.*quota of DNS exceeded/.test(await events()));
    body = { outcome: 'Perfect' };
    await stage.until('the second Event', async () =>
      /Warning +Retry +.*network: Retry \(InvalidOutcome\)/.test(await events()),
    );
  });

  it('prints that a component reports an input as missing that was not missing', async () => {
    const missing = [{ path: '/spec/mode', want: 'present' }];
    await stage.component('network', () => ({ outcome: 'NotReady', missing }) as never);
    await stage.entry('one');
    const expected = 'network: reports /spec/mode as missing, but the entry contained it when the component was called';
    await stage.until(
      'the message',
      async () => (await column('MESSAGE', 'clusterinventories', '-o', 'wide')) === expected,
    );
  });

  it('prints that an input was to be absent, and was', async () => {
    const missing = [{ path: '/status/outputs/cluster', want: 'absent' }];
    await stage.component('network', () => ({ outcome: 'NotReady', missing }) as never);
    await stage.entry('one');
    const expected =
      'network: waits for /status/outputs/cluster to be absent, but this was already so when the component was called';
    const message = () => column('MESSAGE', 'clusterinventories', '-o', 'wide');
    await stage.until('the message', async () => (await message()) === expected);
  });

  it('prints what ends the suspension of an entry', async () => {
    await stage.component('network', () => ({ outcome: 'Done' }) as never);
    await stage.entry('one');
    await stage.until('READY', async () => (await column('READY', 'clusterinventories')) === 'True');
    const suspend = (is: boolean) => {
      const metadata = { annotations: { 'force.inventory.drawbridge.dev/network': String(is) } };
      const patch = JSON.stringify({ metadata, spec: { suspend: is } });
      return kubectl('patch', 'clusterinventory', 'one', ...here(), '--type=merge', '-p', patch);
    };
    await suspend(true);
    const expected = 'suspended by spec.suspend: set it to false to resume; network: a run is due';
    await stage.until('WAITING FOR', async () => (await column('WAITING FOR', 'clusterinventories')) === expected);
    await suspend(false);
    await stage.until('READY again', async () => (await column('READY', 'clusterinventories')) === 'True');
  });

  it('prints the cause in the condition Reachable of a registration', async () => {
    const [port = 0] = await freePorts(1);
    await stage.register('network', `http://127.0.0.1:${port}`);
    await stage.entry('one');
    const message = 'jsonpath={.status.conditions[?(@.type=="Reachable")].message}';
    const wide = async () => (await kubectl('get', 'componentreconcilers', 'network', '-o', 'wide')).stdout;
    await stage.until('the condition', async () =>
      /^the endpoint accepts no calls; the circuit breaker opened at \S+Z: connect ECONNREFUSED 127\.0\.0\.1:\d+; the server calls it again for /.test(
        (await kubectl('get', 'componentreconciler', 'network', '-o', message)).stdout,
      ),
    );
    assert.match(await wide(), /UNREACHABLE\nnetwork +True +False +\S+ +False +the endpoint accepts no calls; /);
    const { stdout } = await kubectl('get', 'componentreconciler', 'network', '-o', message);
    const [, advised = ''] = /; for the latest cause, see MESSAGE of: kubectl (.*)$/.exec(stdout) ?? [];
    const runs = (await kubectl(...advised.split(' '))).stdout;
    assert.match(runs, /MESSAGE.*\n.* one\.network .* connect ECONNREFUSED 127\.0\.0\.1:\d+/);
    await stage.patch('one', { metadata: { annotations: { 'abandon.inventory.drawbridge.dev/network': 'test' } } });
  });

  it('prints which registrations form a circle', async () => {
    for (const [name, read] of [
      ['network', 'other'],
      ['other', 'network'],
    ] as const)
      await stage.component(name, () => ({ outcome: 'Done' }), { reads: [`/status/outputs/${read}`] });
    const cyclic = async () => (await kubectl('get', 'componentreconcilers', '-o', 'wide')).stdout;
    await stage.until('both', async () =>
      /\nnetwork +True +True +\S+ +True *\nother +True +True +\S+ +True */.test(await cyclic()),
    );
  });

  it('prints that no component is registered, or which do not apply, and whether the entry is suspended', async () => {
    await stage.entry('one');
    const message = () => column('MESSAGE', 'clusterinventories', '-o', 'wide');
    const becomes = (expected: string) => stage.until(expected, async () => (await message()) === expected);
    await becomes('no component is registered; create a ComponentReconciler for each component');
    assert.equal(await column('SUSPENDED', 'clusterinventories', '-o', 'wide'), 'false');
    await stage.component('network', () => ({ outcome: 'Done' }), { selector: { matchLabels: { no: 'where' } } });
    await becomes('no component runs: network (its selector does not match the labels of the entry)');
    await stage.patch('one', { spec: { suspend: true } });
    assert.equal(await column('SUSPENDED', 'clusterinventories', '-o', 'wide'), 'true');
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

  it('prints Failed (EntryTooLarge) if the outputs do not fit, and InvalidOutcome if an owner has no object', async () => {
    let outputs: Record<string, unknown> = { network: { v: 'x'.repeat(70_000) } };
    await stage.component('network', () => ({ outcome: 'Done', outputs }) as never);
    await stage.entry('one');
    const message = () => column('MESSAGE', 'clusterinventories', '-o', 'wide');
    await stage.until('the size', async () => (await message()).startsWith('network: Failed (EntryTooLarge)'));
    assert.match(
      await message(),
      /^network: Failed \(EntryTooLarge\): the entry would have 70\d{3} bytes; at most 65536 are allowed; /,
    );
    outputs = { network: 'zone' };
    await kubectl('annotate', 'clusterinventory', 'one', ...here(), 'force.inventory.drawbridge.dev/network=1');
    const invalid =
      'network: Retrying (InvalidOutcome): outputs.network must be an object, or null to remove it; the first level of outputs names components,';
    await stage.until('the invalid answer', async () => (await message()).startsWith(invalid));
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
    const component = await ScriptedComponent.start(() => ({ outcome: 'Done' }), port);
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

  it('prints runs by the names of their entry and component', async () => {
    await stage.component('network', () => ({ outcome: 'Done' }));
    await stage.entry('one');
    await stage.ready('one');
    assert.equal(await column('NAME', 'reconcileruns'), 'one.network');
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
