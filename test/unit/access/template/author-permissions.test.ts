import assert from 'node:assert/strict';
import type { Permission } from '../../../../src/access/policy/template-permissions.ts';
import { AuthorPermissions } from '../../../../src/access/template/template-authors.ts';
import type { AccessQuestion, Client } from '../../../../src/kube/client.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const erin = { username: 'erin', uid: '', groups: ['owners'] };
const see: Permission = { verb: 'get', group: '', resource: 'pods' };
const exec: Permission = { verb: 'create', group: '', resource: 'pods', subresource: 'exec' };

describe('the permissions of authors', () => {
  const clock = new SimulatedClock();
  const { signal } = new AbortController();
  let asked: AccessQuestion[];
  let may: (question: AccessQuestion) => boolean;
  let rights: AuthorPermissions;

  beforeEach(() => {
    asked = [];
    may = () => true;
    const client = {
      isAllowed: (question: AccessQuestion) => {
        asked.push(question);
        return Promise.resolve(may(question));
      },
    } as Partial<Client> as Client;
    rights = new AuthorPermissions({ client, clock });
  });

  const lacking = (maxAgeMs = 60_000, author = erin, namespace = 'payments'): Promise<Permission[]> =>
    rights.missing(author, namespace, [see, exec], maxAgeMs, signal);

  it('are checked at the API server, with one review for each', async () => {
    may = ({ subresource }) => subresource !== 'exec';
    assert.deepEqual(await lacking(), [exec]);
    assert.deepEqual(asked, [
      { user: 'erin', uid: '', groups: ['owners'], namespace: 'payments', ...see },
      { user: 'erin', uid: '', groups: ['owners'], namespace: 'payments', ...exec },
    ]);
  });

  it('are cached, both granted and denied, up to the maximum age', async () => {
    may = ({ subresource }) => subresource !== 'exec';
    await lacking();
    may = () => true;
    await clock.advance(30_000);
    assert.deepEqual(await lacking(), [exec]);
    assert.equal(asked.length, 2);
    assert.deepEqual(await lacking(20_000), []);
    assert.equal(asked.length, 4);
    await clock.advance(59_999);
    assert.deepEqual(await lacking(), []);
    assert.equal(asked.length, 4);
    await clock.advance(1);
    await lacking(3_600_000);
    assert.equal(asked.length, 6);
  });

  it('are all checked again if one is denied, so that older answers hide none', async () => {
    await rights.missing(erin, 'payments', [see], 60_000, signal);
    may = () => false;
    await clock.advance(10_000);
    assert.deepEqual(await lacking(), [see, exec]);
    assert.deepEqual(await lacking(), [see, exec]);
    assert.equal(asked.length, 3);
  });

  it('are all checked again if a cached denial is later than the other answers, which another template needed', async () => {
    await rights.missing(erin, 'payments', [exec], 60_000, signal);
    may = () => false;
    await clock.advance(10_000);
    await rights.missing(erin, 'payments', [see], 60_000, signal);
    assert.deepEqual(await lacking(), [see, exec]);
    assert.deepEqual(await lacking(), [see, exec]);
    assert.equal(asked.length, 3);
  });

  it('are all checked again after a check failed', async () => {
    await rights.missing(erin, 'payments', [see], 60_000, signal);
    may = ({ subresource }) => {
      if (subresource !== 'exec') throw new Error('not now');
      return false;
    };
    await clock.advance(10_000);
    await assert.rejects(lacking(), /not now/);
    may = () => false;
    assert.deepEqual(await lacking(), [see, exec]);
  });

  it('are checked for each author and namespace separately', async () => {
    await lacking();
    await lacking(60_000, { ...erin, groups: [] });
    await lacking(60_000, { ...erin, username: 'frank' });
    await lacking(60_000, erin, 'other');
    assert.equal(asked.length, 8);
  });
});
