import assert from 'node:assert/strict';
import { formatTime } from '../../../src/kit/clock.ts';
import { accessTemplate, targetOf } from '../../support/access-manifests.ts';
import {
  conditionOf,
  deadlineOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage, administrator } from '../../support/access-stage.ts';
import { Person } from '../../support/person.ts';

describe('a later edit of a template', () => {
  let stage: AccessStage;
  let admin: Person;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    admin = await Person.of(stage.plane, 'root', ['system:masters']);
  });

  after(() => stage?.close());

  const template = (name: string, config: object = {}, kind = 'PodAccessTemplate'): Manifest =>
    accessTemplate(kind, name, undefined, { maxDuration: '1h', ...config });
  const edit = async (name: string, spec: object, kind = 'PodAccessTemplate'): Promise<void> => {
    const { status, body } = await stage.plane.call('PATCH', stage.urlOf(kind, name), { spec });
    assert.equal(status, 200, JSON.stringify(body));
  };
  const grantThrough = async (
    manifest: Manifest,
    person: Pick<Person, 'call'> = stage.alice,
    duration = '30m',
  ): Promise<StoredRequest> => {
    const templateName = manifest.metadata.name ?? '';
    await stage.apply(manifest);
    await stage.templateReady(manifest.kind, templateName);
    const request = manifest.kind === 'PodAccessTemplate' ? podRequest : execRequest;
    return stage.createReady(person, request(`via-${templateName}`, { templateName, duration }));
  };
  const rulesOf = async (request: StoredRequest): Promise<unknown> =>
    JSON.parse(await stage.kubectl('get', 'role', await childName(request), '-o', 'json')).rules;
  const childName = async ({ metadata }: StoredRequest): Promise<string> =>
    (await stage.children(metadata.uid)).find(({ kind }) => kind === 'Role')?.name ?? '';
  const again = async ({ kind, metadata }: StoredRequest): Promise<StoredRequest> =>
    (await stage.read(kind, metadata.name)) ?? assert.fail('the request is gone');
  /** Resolves to the milliseconds until all access was closed. Checks the code in the audit journal. */
  const ended = async (request: StoredRequest, code: string, sinceMs: number): Promise<number> => {
    const goneMs = (await stage.closed(request)) - sinceMs;
    const line = await stage.endOf(request.metadata.name);
    assert.equal(line['code'], code);
    return goneMs;
  };

  describe('adds nothing to a grant:', () => {
    for (const kind of ['PodAccessTemplate', 'ExecAccessTemplate']) {
      it(`of a ${kind}`, async () => {
        const name = `wider-${kind.toLowerCase().slice(0, 4)}`;
        const before = await grantThrough(template(name, {}, kind));
        const rules = await rulesOf(before);
        const pod = before.status?.podName ?? '';
        await edit(
          name,
          {
            accessConfig: {
              allowedGroups: ['devs', 'qa'],
              defaultDuration: '2h',
              maxDuration: '10h',
              grantTo: 'AllowedGroups',
            },
            ...targetOf('other'),
          },
          kind,
        );
        await stage.templateReady(kind, name, false);
        await stage.restart();
        // After the marker grant, the server has handled all effects of the edit.
        await stage.createReady(stage.alice, podRequest(`after-${name}`, { duration: '10m' }));
        const now = await again(before);
        assert.deepEqual(now.status?.grant, before.status?.grant);
        assert.deepEqual(await rulesOf(before), rules);
        await stage.alice.entering(stage.namespace, pod);
        assert.equal(await stage.carol.mayExec(stage.namespace, pod), false);
        assert.equal(await stage.bob.mayExec(stage.namespace, pod), false);
      });
    }
  });

  describe('that shortens maxDuration', () => {
    it('ends the grant at the shorter time, counted from its creation', async () => {
      const request = await grantThrough(template('shorter'));
      const createdMs = deadlineOf(request) - 30 * 60_000;
      const leftS = Math.ceil((Date.now() - createdMs) / 1000) + 6;
      await edit('shorter', { accessConfig: { maxDuration: `${leftS}s`, defaultDuration: '1s' } });
      const reported = await stage.requestUntil('to report its end', request, (now) =>
        /an edit of the template shortened the access$/.test(conditionOf(now, 'AccessStillValid')?.message ?? ''),
      );
      assert.equal(reported.status?.ready, true);
      assert.equal(reported.status?.expiresAt, formatTime(createdMs + leftS * 1000));
      assert.match(conditionOf(reported, 'AccessShortened')?.message ?? '', /^until \S+Z instead of \S+Z, because/);
      assert.deepEqual(reported.status?.grant, request.status?.grant);
      await stage.shutTo(stage.alice, request.status?.podName ?? '', 30_000);
      const lateMs = Date.now() - (createdMs + leftS * 1000);
      assert.ok(lateMs >= -50 && lateMs <= 1000, `${lateMs} ms late`);
      await ended(request, 'Shortened', Date.now());
    });

    it('ends the grant at once if that time has passed', async () => {
      const request = await grantThrough(template('over'));
      await edit('over', { accessConfig: { maxDuration: '1s', defaultDuration: '1s' } });
      console.log(`      ${await ended(request, 'Shortened', Date.now())} ms until all was gone`);
    });

    it('does not change the grant if it is reverted in time', async () => {
      const request = await grantThrough(template('back'));
      await edit('back', { accessConfig: { maxDuration: '29m', defaultDuration: '1s' } });
      await stage.requestUntil('to report its end', request, (now) =>
        /an edit of the template shortened the access$/.test(conditionOf(now, 'AccessStillValid')?.message ?? ''),
      );
      await edit('back', { accessConfig: { maxDuration: '10h' } });
      const now = await stage.requestUntil('to report its end', request, (later) =>
        (conditionOf(later, 'AccessStillValid')?.message ?? '').endsWith('Z'),
      );
      assert.equal(conditionOf(now, 'AccessStillValid')?.message, `until ${now.status?.grant?.expiresAt}`);
      assert.equal(now.status?.expiresAt, now.status?.grant?.expiresAt);
      assert.equal(conditionOf(now, 'AccessShortened')?.status, 'False');
      assert.equal(now.status?.ready, true);
    });

    it('takes effect even if no server runs at that time', async () => {
      const request = await grantThrough(template('unseen'));
      await stage.stop();
      await stage.removeWebhooksOnly();
      const accessConfig = { maxDuration: '1s', defaultDuration: '1s' };
      await edit('unseen', { accessConfig, author: administrator() });
      await stage.start();
      await ended(request, 'Shortened', Date.now());
    });
  });

  describe('that removes a group', () => {
    it('ends grants that depend on it', async () => {
      const request = await grantThrough(template('removed'));
      await edit('removed', { accessConfig: { allowedGroups: ['qa'] } });
      console.log(`      ${await ended(request, 'NoLongerAllowed', Date.now())} ms until all was gone`);
    });

    it('keeps grants of users in another allowed group, and of users who have the permissions anyway', async () => {
      const kept = await grantThrough(template('kept', { allowedGroups: ['devs', 'qa'] }));
      const own = await grantThrough(template('own'), admin);
      await edit('kept', { accessConfig: { allowedGroups: ['devs'] } });
      await edit('own', { accessConfig: { allowedGroups: ['qa'] } });
      await stage.createReady(stage.alice, podRequest('after-removal', { duration: '10m' }));
      for (const request of [kept, own]) assert.equal((await again(request)).status?.ready, true);
    });

    it('ends a grant whose subjects are groups', async () => {
      const request = await grantThrough(
        template('groups', { allowedGroups: ['devs', 'qa'], grantTo: 'AllowedGroups' }),
      );
      await stage.bob.entering(stage.namespace, request.status?.podName ?? '');
      await edit('groups', { accessConfig: { allowedGroups: ['devs'] } });
      await ended(request, 'NoLongerAllowed', Date.now());
    });
  });
});
