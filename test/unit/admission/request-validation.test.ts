import assert from 'node:assert/strict';
import { pluck } from '../../support/pluck.ts';
import { accessRequest, alice, allowed, paths, readyTemplate, requester, reviewOf, World } from './support.ts';

describe('validation of requests', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });
  const attested = (spec: Record<string, unknown> = {}) => accessRequest({ requester, ...spec });
  const create = (object: unknown, fields: Record<string, unknown> = {}) =>
    world.review(paths.validatePod, reviewOf('podaccessrequests', 'CREATE', { object, ...fields }));
  const update = (object: unknown, oldObject: unknown, fields: Record<string, unknown> = {}) =>
    world.review(paths.validatePod, reviewOf('podaccessrequests', 'UPDATE', { object, oldObject, ...fields }));
  const createExec = (spec: Record<string, unknown> = {}) => {
    const object = accessRequest({ requester, ...spec }, {}, 'ExecAccessRequest');
    return world.review(paths.validateExec, reviewOf('execaccessrequests', 'CREATE', { object }));
  };

  it('allows a member of an allowed group, after one audit line and without a call to the API server', async () => {
    const response = await allowed(create(attested()));
    assert.equal(response.uid, '7f0c1a52-3b77-4d5e-8b52-0d3a2f0e9c11');
    assert.deepEqual(response.auditAnnotations, { template: 'payments-shell' });
    assert.deepEqual(world.asked, ['PodAccessTemplate payments/payments-shell']);
    assert.deepEqual(world.lines, [
      {
        event: 'admission',
        verdict: 'allowed',
        who: { user: 'alice', uid: 'u-1', groups: alice.groups },
        what: {
          operation: 'CREATE',
          apiVersion: 'crds.wizardofoz.co/v1alpha1',
          kind: 'PodAccessRequest',
          namespace: 'payments',
          name: 'req',
        },
        template: 'payments-shell',
        templateUid: 't-1',
        templateGeneration: 1,
        message: 'eligible by group',
        latencyMs: 0,
        dryRun: false,
        reviewUid: response.uid,
      },
    ]);
  });

  it('denies a caller outside the groups with a reason that names the template and its groups', async () => {
    const eve = { username: 'eve', uid: '', groups: ['guests'] };
    const response = await create(attested({ requester: { ...requester, ...eve } }), { userInfo: eve });
    assert.equal(response.allowed, false);
    const message =
      'NotEligible: user eve is in [guests]; template payments-shell allows [devs]; ask for membership in one of these groups, or name another template';
    assert.deepEqual(response.status, {
      code: 403,
      reason: 'Forbidden',
      message,
      details: { causes: [{ reason: 'NotEligible', message, field: 'spec.templateName' }] },
    });
    assert.equal(response.auditAnnotations?.['code'], 'NotEligible');
    assert.deepEqual(pluck(world.lines, 'verdict', 'code'), [['denied', 'NotEligible']]);
  });

  it('records the deciding group first, because the journal keeps only some', async () => {
    const others = Array.from({ length: 40 }, (_, index) => `team-${index}`);
    const eve = { username: 'eve', uid: '', groups: [...others, 'devs'] };
    await allowed(create(attested({ requester: { ...requester, ...eve } }), { userInfo: eve }));
    assert.deepEqual(world.lines[0]?.who.groups, ['devs', ...others]);
  });

  it('allows a caller outside the groups who already has the permissions', async () => {
    world.holds = true;
    const root = { username: 'root', uid: '', groups: ['system:masters'] };
    await allowed(create(attested({ requester: { ...requester, ...root } }), { userInfo: root }));
    assert.deepEqual(world.asked, ['PodAccessTemplate payments/payments-shell', 'holds root payments']);
    assert.equal(world.lines[0]?.message, 'eligible by permissions already held');
  });

  const refusals: [string, () => Promise<unknown>, number, string][] = [
    ['a template that does not exist', () => create(attested()), 404, 'TemplateNotFound'],
    ['a request without a requester', () => create(accessRequest()), 403, 'MissingIdentity'],
    [
      'another user as the requester',
      () => create(attested({ requester: { ...requester, username: 'bob' } })),
      403,
      'MissingIdentity',
    ],
    ['an invalid duration', () => create(attested({ duration: '1 day' })), 422, 'InvalidDuration'],
    [
      'one grant too many',
      () => {
        world.limits = [{ scope: 'user', name: 'alice', limit: 1, open: 1, freeAt: '2026-11-21T10:00:00Z' }];
        return create(attested());
      },
      403,
      'LimitReached',
    ],
    ['an invalid spec', () => create(attested({ templateName: 7 })), 422, 'InvalidObject'],
    ['no object at all', () => create(null), 422, 'InvalidObject'],
  ];
  for (const [title, ask, status, code] of refusals) {
    it(`denies ${title} with ${code}`, async () => {
      if (code === 'TemplateNotFound') world.dropTemplate();
      const response = (await ask()) as { allowed: boolean; status: { code: number; message: string } };
      assert.equal(response.allowed, false);
      assert.equal(response.status.code, status);
      assert.ok(response.status.message.startsWith(`${code}: `), response.status.message);
    });
  }

  it('warns if the server could not plan the access when it last judged the template, and does not deny', async () => {
    const unplannable = { code: 'PodIsSelected', message: 'Service web selects the access pod by its labels' };
    world.template = () => Promise.resolve(readyTemplate({ unplannable }));
    const response = await allowed(create(attested()));
    assert.deepEqual(response.warnings, ['PodIsSelected: Service web selects the access pod by its labels']);
  });

  it('warns that access to a workload opens without the command of its template, which denies only access pods', async () => {
    const unplannable = { code: 'InvalidAccessCommand', message: 'accessCommand names label "app2"' };
    world.template = () => Promise.resolve(readyTemplate({ unplannable }));
    assert.deepEqual((await createExec()).warnings, [
      'access opens, but the server cannot write its command: accessCommand names label "app2". Ask the author of the template to correct it',
    ]);
    assert.deepEqual((await create(attested())).warnings, ['InvalidAccessCommand: accessCommand names label "app2"']);
  });

  it('warns if the template limits the duration', async () => {
    const response = await create(attested({ duration: '9h' }));
    assert.deepEqual(response.warnings, ["spec.duration: requested 9 h, limited to the template's maximum of 2 h"]);
  });

  it('warns if the template ends the pod before the granted time', async () => {
    const patchSpecOperations = [{ op: 'add' as const, path: '/spec/activeDeadlineSeconds', value: 5 }];
    const spec = { ...readyTemplate().spec, controllerTargetMutationConfig: { patchSpecOperations } };
    world.template = () => Promise.resolve(readyTemplate({ spec }));
    const warning = 'access lasts at most 5 s, because the template sets activeDeadlineSeconds of its pod to 5';
    assert.deepEqual((await create(attested())).warnings, [warning]);
    assert.equal((await create(attested({ duration: '5s' }))).warnings, undefined);
    assert.deepEqual((await create(attested({ duration: '9h' }))).warnings, [warning]);
  });

  it('denies new requests, and only these, while the journal cannot be written', async () => {
    world.journalWorks = false;
    const response = await create(attested());
    assert.equal(response.allowed, false);
    assert.equal(response.status?.code, 503);
    assert.match(response.status?.message ?? '', /^AuditUnavailable: /);
    const stored = attested();
    await allowed(world.review(paths.validatePod, reviewOf('podaccessrequests', 'DELETE', { oldObject: stored })));
    assert.equal((await update(stored, stored)).allowed, true);
    const bad = await create(accessRequest());
    assert.match(bad.status?.message ?? '', /^MissingIdentity: /);
  });

  it('marks the audit line of a dry run', async () => {
    await create(attested(), { dryRun: true });
    assert.equal(world.lines[0]?.dryRun, true);
  });

  it('records every field that the requester set', async () => {
    const asked = { duration: '9h', reason: 'INC-42 disk full' };
    await create(attested(asked));
    const { duration, reason } = world.lines[0] ?? {};
    assert.deepEqual({ duration, reason }, asked);
    await createExec({ targetPod: 'web-0' });
    assert.equal(world.lines[1]?.target, 'web-0');
  });

  it('records what a denied request asked for', async () => {
    await create(attested({ startAt: '2026-11-21T12:00:00Z', reason: 'maintenance' }));
    assert.deepEqual(pluck(world.lines, 'code', 'startAt', 'reason'), [
      ['InvalidRequest', '2026-11-21T12:00:00Z', 'maintenance'],
    ]);
  });

  describe('of emergencies', () => {
    const oncall = { username: 'alice', uid: 'u-1', groups: ['oncall'] };
    const ask = (spec: Record<string, unknown> = {}, user = oncall) => {
      const asked = { emergency: true, reason: 'the database does not answer', ...spec };
      return create(attested({ requester: { ...requester, ...user }, ...asked }), { userInfo: user });
    };
    beforeEach(() => world.configure({ emergency: { groups: ['oncall'], maxDuration: '30m', reviewWithin: '72h' } }));

    it('allows members of their groups, without a call to the API server, and records that', async () => {
      await allowed(ask());
      assert.deepEqual(world.asked, ['PodAccessTemplate payments/payments-shell']);
      assert.equal(world.lines[0]?.emergency, true);
      assert.deepEqual(world.lines[0]?.who.groups, ['oncall']);
    });

    it('warns that they are shorter', async () => {
      const response = await ask({ duration: '2h' });
      assert.deepEqual(response.warnings, [
        "spec.duration: requested 2 h, limited to the template's emergency maximum of 30 min",
      ]);
    });

    it('denies other callers, even if they already have all permissions of the template', async () => {
      world.holds = true;
      const response = await ask({}, { username: 'alice', uid: 'u-1', groups: ['devs'] });
      assert.match(response.status?.message ?? '', /^EmergencyNotAllowed: .*none of the groups \[oncall\]/);
    });

    it('denies them while the review of an earlier one is overdue', async () => {
      world.overdueReview = { request: 'debug', requestUid: 'r-1', reviewBy: '2026-11-21T08:00:00Z' };
      assert.match((await ask()).status?.message ?? '', /^ReviewOverdue: /);
      assert.equal((await create(attested())).allowed, true, 'other access');
    });

    it('does not open other access to members of their groups', async () => {
      const response = await ask({ emergency: false });
      assert.match(response.status?.message ?? '', /^NotEligible: /);
    });
  });

  it('records who revokes a request, and why', async () => {
    const userInfo = { username: 'carol', uid: '', groups: ['sre'] };
    await allowed(update(attested({ revoked: true, revokedReason: 'wrong pod' }), attested(), { userInfo }));
    const { who, message, reason } = world.lines[0] ?? {};
    assert.deepEqual([who?.user, message, reason], ['carol', 'revokes the access', 'wrong pod']);
  });

  it('records who deletes which request', async () => {
    const oldObject = accessRequest({ requester }, { uid: 'o-1' });
    await world.review(paths.validatePod, reviewOf('podaccessrequests', 'DELETE', { oldObject }));
    assert.equal(world.lines[0]?.what.operation, 'DELETE');
    assert.equal(world.lines[0]?.what.uid, 'o-1');
    assert.equal(world.lines[0]?.template, 'payments-shell');
  });

  it('allows metadata changes if the spec stays, even an unreadable one', async () => {
    for (const spec of [{ requester }, { templateName: 7 }]) {
      await allowed(update(accessRequest(spec, { finalizers: [] }), accessRequest(spec)));
    }
    assert.deepEqual(world.asked, []);
  });

  it('denies changes of the spec and of the requester', async () => {
    const longer = await update(attested({ duration: '2h' }), attested({ duration: '1h' }));
    assert.match(longer.status?.message ?? '', /^SpecImmutable: /);
    const taken = await update(attested({ requester: { ...requester, username: 'eve' } }), attested());
    assert.match(taken.status?.message ?? '', /^SpecImmutable: /);
    const repaired = await update(attested(), accessRequest({ templateName: 7 }));
    assert.match(repaired.status?.message ?? '', /^SpecImmutable: the stored spec is invalid: spec\.\w+ .*;/);
  });

  it('denies without the cause if the template cannot be read', async () => {
    world.template = () => Promise.reject(new Error('dial tcp 10.0.0.1: secret'));
    const response = await create(attested());
    assert.equal(response.status?.code, 500);
    assert.match(response.status?.message ?? '', /^InternalError: /);
    assert.doesNotMatch(response.status?.message ?? '', /secret/);
    assert.equal(world.lines[0]?.code, 'InternalError');
  });

  it('denies before the timeout of the API server', async () => {
    world.template = () => new Promise(() => {});
    const answer = create(attested());
    const deadline = performance.now() + 5_000;
    while (world.asked.length === 0 && performance.now() < deadline) await world.clock.settle();
    await world.clock.advance(3_000);
    const response = await answer;
    assert.equal(response.status?.code, 504);
    assert.match(response.status?.message ?? '', /^DeadlineExceeded: no decision within 2800 ms/);
    assert.equal(world.lines.length, 1);
  });

  it('records each outcome in the metrics without identities', async () => {
    await create(attested());
    await create(accessRequest());
    assert.deepEqual(pluck(world.outcomes, 'webhook', 'operation', 'allowed', 'code'), [
      ['vpodaccessrequest.kb.io', 'CREATE', true, ''],
      ['vpodaccessrequest.kb.io', 'CREATE', false, 'MissingIdentity'],
    ]);
  });

  it('reads exec access templates for exec access requests', async () => {
    assert.equal((await createExec()).allowed, true);
    assert.deepEqual(world.asked, ['ExecAccessTemplate payments/payments-shell']);
  });
});
