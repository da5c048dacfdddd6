import assert from 'node:assert/strict';
import { type DryRunAnswer, GrantDryRuns } from '../../../../src/access/template/grant-dry-runs.ts';
import type { KubeObject, Resource } from '../../../../src/api/object.ts';
import type { WriteOptions } from '../../../../src/kube/client.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const objectOf = (kind: string, more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name: 'template-dry-run-access', namespace: 'payments' },
  ...more,
});
const pod = objectOf('Pod');
const roleOf = (verb: string) => objectOf('Role', { rules: [{ apiGroups: [''], resources: ['pods'], verbs: [verb] }] });
const role = roleOf('get');
const invalid = new ApiError(422, 'Invalid', '422: Pod "x" is invalid: spec.containers: Required value');
const strict = new ApiError(
  400,
  'BadRequest',
  '400: Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.a"',
);
const summary = (answer: DryRunAnswer): string =>
  answer.kind === 'accepted'
    ? `accepted ${answer.ignored ?? ''}`
    : answer.kind === 'refused'
      ? `refused ${answer.isInvalid ? 'invalid ' : ''}${answer.object}`
      : `unanswered ${answer.mayAnswerLater}`;

describe('dry runs of the objects of grants', () => {
  let clock: SimulatedClock;
  let sent: { kind: string; options: WriteOptions; object: KubeObject }[];
  /** Answers a call; a thrown error is the answer. */
  let answer: (kind: string, options: WriteOptions) => unknown;
  let dryRuns: GrantDryRuns;
  const { signal } = new AbortController();

  beforeEach(() => {
    clock = new SimulatedClock();
    sent = [];
    answer = () => undefined;
    const create = async (resource: Resource, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> => {
      sent.push({ kind: resource.kind, options, object });
      await answer(resource.kind, options);
      return object;
    };
    dryRuns = new GrantDryRuns({ client: { create }, clock });
  });

  const ask = async (objects = { pod, role }): Promise<string> => summary(await dryRuns.ask(objects, signal));
  const throwing =
    (error: unknown, at = 'Pod') =>
    (kind: string) => {
      if (kind === at) throw error;
    };

  it('store nothing', async () => {
    assert.equal(await ask(), 'accepted ');
    assert.deepEqual(
      sent.map(({ kind, options: { dryRun } }) => [kind, dryRun]),
      ['Pod', 'Role'].map((kind) => [kind, true]),
    );
    assert.equal(clock.pendingTimers, 0);
  });

  const answers: [title: string, error: unknown, expected: string][] = [
    ['an invalid pod', invalid, 'refused invalid pod'],
    ['a pod over quota', new ApiError(403, 'Forbidden', '403: pods "x" is forbidden: exceeded quota'), 'refused pod'],
    ['a name that is taken', new ApiError(409, 'AlreadyExists', 'exists'), 'accepted '],
    ['a conflict of quotas', new ApiError(409, 'Conflict', 'conflict'), 'unanswered true'],
    ['expired credentials', new ApiError(401, 'Unauthorized', 'no'), 'unanswered true'],
    ['a failing webhook', new ApiError(500, 'InternalError', 'failed calling webhook'), 'unanswered true'],
    ['an overloaded API server', new ApiError(429, 'TooManyRequests', 'later'), 'unanswered true'],
    ['no connection', new TransportError('refused', undefined, true), 'unanswered true'],
    [
      'a namespace that ends',
      new ApiError(403, 'Forbidden', 'payments because it is being terminated'),
      'unanswered true',
    ],
    [
      'a webhook without dry runs',
      new ApiError(400, 'BadRequest', '400: admission webhook "w" does not support dry run'),
      'unanswered false',
    ],
  ];
  for (const [title, error, expected] of answers) {
    it(`answer ${expected} for ${title}`, async () => {
      answer = throwing(error);
      assert.equal(await ask(), expected);
      assert.equal(
        sent.some(({ kind }) => kind === 'Role'),
        expected === 'accepted ',
      );
    });
  }

  it('name the fields that the API server drops, and check the rest of the pod', async () => {
    answer = (kind, { fieldValidation }) => {
      if (kind === 'Pod' && fieldValidation === 'Strict') throw strict;
    };
    assert.equal(await ask(), 'accepted unknown field "spec.a"');
    answer = (_, { fieldValidation }) => {
      throw fieldValidation === 'Strict' ? strict : invalid;
    };
    assert.equal(await ask(), 'refused invalid pod');
  });

  it('reject once this replica does not lead', async () => {
    answer = throwing(new Error('not the leader'));
    await assert.rejects(ask(), /not the leader/);
  });

  it('reuse an answer about a Role of the same rules and namespace for half a minute', async () => {
    answer = throwing(new ApiError(403, 'Forbidden', '403: roles "x" is forbidden: no'), 'Role');
    for (const verb of ['get', 'get', 'list']) assert.equal(await ask({ pod, role: roleOf(verb) }), 'refused Role');
    assert.equal(sent.filter(({ kind }) => kind === 'Role').length, 2);
    await clock.advance(30_000);
    answer = () => undefined;
    assert.equal(await ask(), 'accepted ');
  });

  it('end after 2 s without an answer, and pause for 10 s', async () => {
    answer = (_, options) =>
      new Promise((_resolve, reject) => {
        options.signal?.addEventListener('abort', () => reject(options.signal?.reason));
      });
    const asking = ask();
    await clock.advance(1999);
    assert.equal(sent.length, 1);
    await clock.advance(1);
    assert.equal(await asking, 'unanswered true');
    answer = () => undefined;
    await clock.advance(9999);
    assert.equal(await ask(), 'unanswered true');
    assert.equal(sent.length, 1);
    await clock.advance(1);
    assert.equal(await ask(), 'accepted ');
  });

  it('reject with the reason of the signal if it aborts', async () => {
    const stop = new AbortController();
    answer = () => {
      stop.abort(new Error('stopped'));
      throw stop.signal.reason;
    };
    await assert.rejects(dryRuns.ask({ pod, role }, stop.signal), /stopped/);
    assert.equal(clock.pendingTimers, 0);
  });
});
