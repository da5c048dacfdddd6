import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
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

  it('who has access, and until when; with -o wide, why', async () => {
    const manifest = podRequest('columns', { duration: '10m', reason: 'INC-42 payments fail' });
    const { status } = await stage.createReady(stage.alice, manifest);
    const [header, row] = await get(stage.alice, 'par', 'columns');
    assert.deepEqual(header, ['NAME', 'TEMPLATE', 'POD', 'READY', 'WHO', 'UNTIL', 'AGE']);
    const { podName, grant } = status ?? {};
    assert.deepEqual(row?.slice(0, 6), ['columns', 'payments-shell', podName, 'true', 'alice', grant?.expiresAt]);
    const [wideHeader, wideRow] = await get(stage.alice, 'par', 'columns', '-o', 'wide');
    assert.deepEqual([wideHeader?.at(-1), wideRow?.at(-1)], ['WHY', 'INC-42 payments fail']);
  });

  it('the end after an extension', async () => {
    const accessConfig = { extension: { times: 1, total: '8h' } };
    await stage.kubectl(
      'patch',
      'pat',
      'payments-shell',
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { accessConfig } }),
    );
    await stage.templateReady('PodAccessTemplate', 'payments-shell');
    const request = await stage.createReady(stage.alice, podRequest('longer', { duration: '10m' }));
    const patch = JSON.stringify({ spec: { extensions: [{ by: '5m' }] } });
    await stage.alice.kubectl(['patch', 'par', 'longer', '-n', stage.namespace, '--type=merge', '-p', patch]);
    const end = new Date(deadlineOf(request) + 5 * 60_000).toISOString().replace('.000', '');
    const isShown = async (): Promise<boolean> => (await get(stage.alice, 'par', 'longer'))[1]?.[5] === end;
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

  it('that its template is of the other kind', async () => {
    const manifest = JSON.stringify(podRequest('other', { templateName: 'payments-exec' }));
    const create = ['create', '-n', stage.namespace, '-f', '-'];
    const { stderr } = await stage.alice.kubectl(create, { input: manifest, reject: false });
    assert.match(
      stderr,
      /TemplateNotFound: .*PodAccessTemplate "payments-exec" does not exist in namespace "[^"]+"; template payments-exec is of kind ExecAccessTemplate; create a request of kind ExecAccessRequest/,
    );
  });

  it('how to ask for access of one’s own, to a user who may not enter its pod', async () => {
    const { status } = await stage.createReady(stage.alice, podRequest('hers', { duration: '10m' }));
    await stage.allowPodEntry('carol');
    const exec = ['exec', '-n', stage.namespace, status?.podName ?? '', '--', 'true'];
    const { stderr } = await stage.carol.kubectl(exec, { reject: false });
    assert.match(
      stderr,
      /NotYourPod: .* create a request of your own: a PodAccessRequest with spec\.templateName payments-shell/,
    );
  });

  /** `REASON: MESSAGE` of the condition Ready. */
  const whyNotReady = async (person: Person, resource: string, name: string): Promise<string> => {
    const path = '{range .status.conditions[?(@.type=="Ready")]}{.reason}: {.message}{end}';
    const { stdout } = await person.kubectl(['get', '-n', stage.namespace, resource, name, '-o', `jsonpath=${path}`]);
    return stdout;
  };

  it('that access was given back, from then on, as long as its name is held', async () => {
    await stage.createReady(stage.alice, podRequest('given-back', { duration: '10m' }));
    const patch = '{"spec":{"revoked":true,"revokedReason":"wrong pod"}}';
    await stage.alice.kubectl(['patch', 'par', 'given-back', '-n', stage.namespace, '--type=merge', '-p', patch]);
    const isOver = async (): Promise<boolean> => (await get(stage.alice, 'par', 'given-back'))[1]?.[3] === 'false';
    await until('READY false', isOver, { timeoutMs: 10_000, everyMs: 25 });
    const why = await whyNotReady(stage.alice, 'par', 'given-back');
    const end = why.match(/^Revoked: access ended at (\S+Z): the request was revoked: wrong pod$/)?.[1];
    assert.ok(end, why);
    const [, row] = await get(stage.alice, 'par', 'given-back');
    assert.equal(row?.[5], end, 'UNTIL is the end');
    const events = ['get', 'events', '-n', stage.namespace, '--field-selector=involvedObject.name=given-back'];
    const printsWhy = async (): Promise<boolean> =>
      (await stage.alice.kubectl(events)).stdout.includes('access ended: the request was revoked: wrong pod');
    await until('the Event with the reason', printsWhy, { timeoutMs: 10_000 });
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

  it('why a request was denied', async () => {
    await stage.createOk(stage.alice, execRequest('refused', { targetPod: 'nobody' }));
    const isDenied = async (): Promise<boolean> =>
      (await whyNotReady(stage.alice, 'ear', 'refused')).startsWith('Denied: InvalidTargetPod: ');
    await until('Denied', isDenied, { timeoutMs: 10_000 });
  });
});
