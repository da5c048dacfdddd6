import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { accessTemplate } from '../../support/access-manifests.ts';
import { deadlineOf, execRequest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import type { Person } from '../../support/person.ts';

describe('kubectl prints for a request', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  const get = async (person: Person, ...args: string[]): Promise<string[][]> => {
    const { stdout } = await person.kubectl(['get', '-n', stage.namespace, ...args]);
    // Two spaces or more separate the columns.
    return stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/));
  };

  it('who has access, in which state, and until when; with -o wide, for which reason', async () => {
    const manifest = podRequest('columns', { duration: '10m', reason: 'INC-42 payments fail' });
    const { status } = await stage.createReady(stage.alice, manifest);
    const [header, row] = await get(stage.alice, 'par', 'columns');
    assert.deepEqual(header, ['NAME', 'TEMPLATE', 'POD', 'READY', 'STATE', 'WHO', 'UNTIL', 'AGE']);
    const { podName, grant } = status ?? {};
    const cells = ['columns', 'payments-shell', podName, 'true', 'Open', 'alice', grant?.expiresAt];
    assert.deepEqual(row?.slice(0, 7), cells);
    const [wideHeader, wideRow] = await get(stage.alice, 'par', 'columns', '-o', 'wide');
    assert.deepEqual(wideHeader?.slice(-2), ['REASON', 'WHY']);
    assert.deepEqual(wideRow?.slice(-2), ['INC-42 payments fail', 'access is open']);
    await stage.createReady(stage.alice, execRequest('exec-columns', { duration: '10m' }));
    assert.deepEqual((await get(stage.alice, 'ear', 'exec-columns'))[0], header);
  });

  it('the end after an extension', async () => {
    await stage.configure('PodAccessTemplate', 'payments-shell', { extension: { times: 1, total: '8h' } });
    const request = await stage.createReady(stage.alice, podRequest('longer', { duration: '10m' }));
    const patch = JSON.stringify({ spec: { extensions: [{ by: '5m' }] } });
    await stage.alice.kubectl(['patch', 'par', 'longer', '-n', stage.namespace, '--type=merge', '-p', patch]);
    const end = new Date(deadlineOf(request) + 5 * 60_000).toISOString().replace('.000', '');
    const isShown = async (): Promise<boolean> => (await get(stage.alice, 'par', 'longer'))[1]?.[6] === end;
    await until(`UNTIL ${end}`, isShown, { timeoutMs: 30_000 });
  });

  it('its Events, to the requester', async () => {
    await stage.createReady(stage.alice, execRequest('events', { duration: '10m' }));
    const described = async (): Promise<boolean> => {
      const { stdout } = await stage.alice.kubectl(['describe', '-n', stage.namespace, 'ear', 'events']);
      return /Normal +AccessGranted/.test(stdout);
    };
    await until('the Event AccessGranted', described, { timeoutMs: 30_000 });
  });

  it('which limits of the Pod the template lowered', async () => {
    const containers = [{ name: 'app', image: 'busybox:1.37', resources: { limits: { cpu: '8' } } }];
    await stage.apply(accessTemplate('PodAccessTemplate', 'capped', { podSpec: { containers }, maxCpu: '500m' }));
    await stage.templateReady('PodAccessTemplate', 'capped');
    await stage.createReady(stage.alice, podRequest('capped', { templateName: 'capped', duration: '10m' }));
    const { stdout } = await stage.alice.kubectl(['describe', '-n', stage.namespace, 'par', 'capped']);
    assert.match(
      stdout,
      /Message: +container app: limits\.cpu lowered from 8 to 500m\n.*\n *Reason: +LimitedByTemplate\n.*\n *Type: +PodLimited\n/,
    );
  });

  it('that its template is of the other kind', async () => {
    const manifest = JSON.stringify(podRequest('other', { templateName: 'payments-exec' }));
    const create = ['create', '-n', stage.namespace, '-f', '-'];
    const { stderr } = await stage.alice.kubectl(create, { input: manifest, reject: false });
    assert.match(
      stderr,
      /TemplateNotFound: .*PodAccessTemplate "payments-exec" does not exist in namespace "[^"]+"; template payments-exec is of kind ExecAccessTemplate; create a request of kind ExecAccessRequest/,
    );
  });

  /** `TIME REASON: MESSAGE` of the condition Ready. */
  const whyNotReady = async (person: Person, resource: string, name: string): Promise<string> => {
    const path = '{range .status.conditions[?(@.type=="Ready")]}{.lastTransitionTime} {.reason}: {.message}{end}';
    const { stdout } = await person.kubectl(['get', '-n', stage.namespace, resource, name, '-o', `jsonpath=${path}`]);
    return stdout;
  };

  it('that access was revoked, from then on', async () => {
    // The server keeps requests with a generated name.
    const asked = { ...podRequest('', { duration: '10m' }), metadata: { generateName: 'revoked-' } };
    const { name } = (await stage.createReady(stage.alice, asked)).metadata;
    const patch = '{"spec":{"revoked":true,"revokedReason":"wrong pod"}}';
    await stage.alice.kubectl(['patch', 'par', name, '-n', stage.namespace, '--type=merge', '-p', patch]);
    const whenOver = async (): Promise<string[] | false> => {
      const [, row] = await get(stage.alice, 'par', name);
      return row?.[3] === 'false' && row;
    };
    const row = await until('READY false', whenOver, { timeoutMs: 20_000, everyMs: 25 });
    const why = await whyNotReady(stage.alice, 'par', name);
    const [, since = '', end = ''] =
      why.match(/^(\S+Z) Revoked: access ended at (\S+Z): the request was revoked: wrong pod$/) ?? [];
    assert.ok(Date.parse(since) - Date.parse(end) <= 2000, why);
    assert.equal(row[4], 'Revoked', 'STATE');
    assert.equal(row[6], end, 'UNTIL is the end');
    const events = ['get', 'events', '-n', stage.namespace, `--field-selector=involvedObject.name=${name}`];
    const printsWhy = async (): Promise<boolean> =>
      (await stage.alice.kubectl(events)).stdout.includes('access ended: the request was revoked: wrong pod');
    await until('the Event with the reason', printsWhy, { timeoutMs: 20_000 });
  });

  it('that access expired, to who watches it', async () => {
    const args = [
      'get',
      'par',
      'expires',
      '-n',
      stage.namespace,
      '-w',
      '--output-watch-events',
      '--request-timeout=8s',
    ];
    await stage.createOk(stage.alice, podRequest('expires', { duration: '3s' }));
    const path = '{.object.status.conditions[?(@.type=="Ready")].reason}{"\\n"}';
    const { stdout } = await stage.alice.kubectl([...args, '-o', `jsonpath=${path}`], { reject: false });
    assert.equal(stdout.trim().split('\n').at(-1), 'Expired', stdout);
  });

  it('what a request waits for', async () => {
    const approvals = { all: [{ name: 'peer', groups: ['devs'] }] };
    await stage.configure('ExecAccessTemplate', 'payments-exec', { approvals });
    await stage.createOk(stage.alice, execRequest('waits'));
    const waits = async (): Promise<string[] | false> => {
      const [, row] = await get(stage.alice, 'ear', 'waits', '-o', 'wide');
      return row?.[2] === 'false' && row[3] === 'Waiting' && row;
    };
    const row = await until('STATE Waiting', waits, { timeoutMs: 20_000 });
    assert.match(row.at(-1) ?? '', /^waiting for approvals until \S+Z: peer 0 of 1 from \[devs\]$/);
  });
});

describe('kubectl prints for a template', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  it('who can request access, and for how long; with -o wide, what a request needs', async () => {
    await stage.applyFiles('examples/approvals.yaml');
    await stage.templateReady('PodAccessTemplate', 'payments-debug');
    const get = async (...flags: string[]): Promise<string> =>
      (await stage.alice.kubectl(['get', 'pat', 'payments-debug', '-n', stage.namespace, ...flags])).stdout;
    assert.match(
      await get(),
      /^NAME +READY +STATE +GROUPS +DURATION +MAX\npayments-debug +true +Ready +\["devs"\] +1h +2h$/m,
    );
    const wide = await get('-o', 'wide');
    assert.match(wide, / MAX +APPROVALS +REASON +WHY$/m);
    assert.match(wide, / +\[\{.*"groups":\["devs","sre"\],"name":"peer"\}\] +\{.*"pattern":"\^\(INC\|CHG\)-\[0-9\]\+"/);
    assert.match(wide, / the server can open access for the users that accessConfig allows$/m);
  });
});
