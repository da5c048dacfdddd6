import assert from 'node:assert/strict';
import { alerts } from '../../../docs/generate/alerts.ts';
import { type Plane, startPlane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { runAsReader, scriptOf } from '../../support/page-commands.ts';
import { Prometheus, quickRules } from '../../support/prometheus.ts';
import { shown } from '../../support/shown-output.ts';

const job = 'drawbridge-metrics';
/** How long an expression must hold is tested by alert-rules.test.ts. */
const rules = ['access', 'server'].map(quickRules);

describe('a Prometheus with the alerts, which scrapes a server of access', function () {
  this.timeout(120_000);
  /** Its own: what other tests leave causes alerts. */
  let plane: Plane;
  let stage: AccessStage;
  let prometheus: Prometheus;
  /** Whether the API server refuses writes of RoleBindings. */
  let keepsRoleBindings = false;
  let url = '';

  const serverOptions = (identity: string) => ({
    apiserver: url,
    flags: ['--leader-elect=true', `--identity=${identity}`],
  });

  before(async function () {
    this.timeout(180_000);
    plane = await startPlane({ onProgress: (line) => console.error(line) });
    const proxy = await plane.proxy({
      onRequest: ({ method, path }) =>
        keepsRoleBindings && method !== 'GET' && path.includes('/rolebindings') ? { status: 503, body: {} } : 'pass',
    });
    url = proxy.server;
    stage = await AccessStage.open({ on: plane, ...serverOptions('left') });
    const emergency = { groups: ['devs'], maxDuration: '1m', reviewWithin: '1h' };
    await stage.configure('ExecAccessTemplate', 'payments-exec', { emergency });
    prometheus = await Prometheus.start({ [job]: stage.server.metricsPort }, rules);
    await stage.create(stage.bob, podRequest('outsider'));
  });
  after(async () => {
    await prometheus?.stop();
    await stage?.close();
    await plane?.stop();
  });

  it('evaluates every rule', async () => {
    const evaluated = async (): Promise<boolean> =>
      (await prometheus.rules()).every(({ health }) => health !== 'unknown');
    await until('all rules to be evaluated', evaluated, { timeoutMs: 30_000 });
    const found = await prometheus.rules();
    assert.deepEqual(
      found.filter(({ health }) => health !== 'ok'),
      [],
    );
    assert.deepEqual(
      found.map(({ name }) => name),
      ['access', 'server'].flatMap((feature) => Object.keys(alerts[feature] ?? {})),
    );
  });

  it('has no alert of a healthy server', async () => {
    await prometheus.alertIs('inactive', 'DrawbridgeDown');
    await prometheus.alertIs('inactive', 'DrawbridgeNoLeader');
    await prometheus.alertIs('inactive', 'DrawbridgePoliciesNotInForce');
    const active = (await prometheus.rules()).filter(({ state }) => state !== 'inactive');
    assert.deepEqual(active, []);
  });

  it('answers the questions of docs/tasks/monitor.md', async () => {
    const reader = { plane, folder: plane.directory };
    const query = scriptOf('docs/tasks/monitor.md', 'promtool').replace('http://localhost:9090', prometheus.url);
    const expected = shown('tasks/monitor.md', 'drawbridge-metrics');
    const isShown = async (): Promise<boolean> => expected.test(await runAsReader(reader, query));
    await until('promtool to print what the page shows', isShown, { timeoutMs: 30_000 });
  });

  it('fires DrawbridgeEmergencyUsed', async () => {
    const reason = 'the database does not answer';
    await stage.createReady(stage.alice, execRequest('down', { emergency: true, reason, duration: '20s' }));
    await prometheus.alertIs('firing', 'DrawbridgeEmergencyUsed');
  });

  it('fires DrawbridgeGrantPastExpiry while the server cannot close access, and DrawbridgeExpiryLate afterwards', async () => {
    const request = await stage.createReady(stage.alice, podRequest('late', { duration: '10s' }));
    keepsRoleBindings = true;
    await prometheus.alertIs('firing', 'DrawbridgeGrantPastExpiry');
    keepsRoleBindings = false;
    await stage.gone(request);
    await prometheus.alertIs('inactive', 'DrawbridgeGrantPastExpiry');
    await prometheus.alertIs('firing', 'DrawbridgeExpiryLate');
  });

  it('has data for every panel of the board', async () => {
    // Of the gateway, and of failures.
    await prometheus.showBoard('access', [
      'drawbridge_gateway_recordings_lost_total',
      'drawbridge_watch_refusals_total',
      'oz_pod_exec_total',
    ]);
  });

  it('fires DrawbridgeDown while no server runs, DrawbridgeNoLeader until the Lease of a killed leader expires, and then neither', async () => {
    await stage.server.kill();
    await prometheus.alertIs('firing', 'DrawbridgeDown');
    await stage.start({ ...serverOptions('right'), installation: stage.server.installation });
    await prometheus.scrape({ [job]: stage.server.metricsPort });
    await prometheus.alertIs('firing', 'DrawbridgeNoLeader');
    await prometheus.alertIs('inactive', 'DrawbridgeDown');
    await prometheus.alertIs('inactive', 'DrawbridgeNoLeader');
  });
});
