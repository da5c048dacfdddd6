import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, type Manifest, podRequest, reviewed, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import type { Person } from '../../support/person.ts';

const attempts = 20;
const perUser = 7;
const perNamespace = 12;
const perTemplate = 4;

describe('limits on open grants', function () {
  this.timeout(120_000);
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open({
      flags: [`--max-grants-per-user=${perUser}`, `--max-grants-per-namespace=${perNamespace}`],
    });
  });
  after(() => stage?.close());

  /** Excludes revoked requests, which stay for a while without access. */
  const requests = async (): Promise<StoredRequest[]> => {
    const lists = ['PodAccessRequest', 'ExecAccessRequest'].map(async (kind) => {
      const { body } = await stage.plane.probe(stage.urlOf(kind));
      return (body as { items: StoredRequest[] }).items.map((item) => ({ ...item, kind }));
    });
    return (await Promise.all(lists)).flat().filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  };
  const bindings = async (): Promise<number> =>
    (await stage.kubectl('get', 'rolebindings', '-l', 'access.drawbridge.dev/request', '-o', 'name'))
      .split('\n')
      .filter((line) => line !== '').length;
  const isDenied = ({ status }: StoredRequest): boolean =>
    status?.conditions?.some(({ reason, status: value }) => reason === 'LimitReached' && value === 'False') === true;

  /** Creates all at once. Resolves to the number of open ones, once each is rejected, denied, or ready. */
  async function burst(person: Person, manifests: readonly Manifest[]): Promise<number> {
    const answers = await Promise.all(manifests.map((manifest) => reviewed(() => stage.create(person, manifest))));
    for (const { status, body } of answers) {
      if (status !== 201) assert.match((body as { message: string }).message, /LimitReached: /);
      assert.ok(status === 201 || status === 403, String(status));
    }
    const settled = async (): Promise<boolean> =>
      (await requests()).every((request) => request.status?.ready === true || isDenied(request));
    await until('every request to be settled', settled, { timeoutMs: 60_000 });
    return bindings();
  }

  /** Revokes all requests. */
  async function clear(): Promise<void> {
    await Promise.all(
      (await requests()).map(({ kind, metadata }) => stage.plane.call('DELETE', stage.urlOf(kind, metadata.name))),
    );
    const closed = async (): Promise<boolean> => (await requests()).length === 0 && (await bindings()) === 0;
    await until('all requests to be closed', closed, { timeoutMs: 60_000 });
  }
  afterEach(clear);

  it(`are exact for a user with ${attempts} concurrent creates of both kinds`, async () => {
    const manifests = Array.from({ length: attempts }, (_, index) =>
      (index % 2 === 0 ? podRequest : execRequest)(`user-${index}`, { duration: '30m' }),
    );
    assert.equal(await burst(stage.alice, manifests), perUser);
    const ready = (await requests()).filter(({ status }) => status?.ready === true);
    assert.equal(ready.length, perUser);
  });

  it(`are exact for a namespace, across requesters`, async () => {
    const of = (name: string): Manifest[] =>
      Array.from({ length: attempts / 2 }, (_, index) => execRequest(`${name}-${index}`, { duration: '30m' }));
    await Promise.all([burst(stage.alice, of('alice')), burst(stage.carol, of('carol'))]);
    assert.equal(await bindings(), perNamespace);
  });

  it('are exact for a template with its own limit', async () => {
    await stage.configure('ExecAccessTemplate', 'payments-exec', { maxGrants: perTemplate });
    const manifests = Array.from({ length: attempts }, (_, index) => execRequest(`template-${index}`));
    assert.equal(await burst(stage.alice, manifests), perTemplate);
  });

  it('are enforced by the webhook, with the count and the time, and allow a new grant after a revocation', async () => {
    await stage.configure('ExecAccessTemplate', 'payments-exec', { maxGrants: 1 });
    const first = await stage.createReady(stage.alice, execRequest('first', { duration: '30m' }));
    const input = JSON.stringify(execRequest('second'));
    const args = ['create', '-n', stage.namespace, '-f', '-'];
    const { code, stderr } = await stage.carol.kubectl(args, { input, reject: false });
    assert.equal(code, 1);
    assert.match(
      stderr,
      /LimitReached: template "payments-exec" has 1 open grant, and the limit is 1; wait until \d{4}-\S+Z, or revoke an open request/,
    );
    const revoked = JSON.stringify({ spec: { revoked: true } });
    await stage.kubectl('patch', 'execaccessrequest', first.metadata.name, '--type=merge', '-p', revoked);
    await until('the place to be free', async () => (await bindings()) === 0, { timeoutMs: 30_000 });
    await until(
      'carol to be allowed',
      async () => (await stage.create(stage.carol, execRequest('third'))).status === 201,
      {
        timeoutMs: 30_000,
      },
    );
  });
});
