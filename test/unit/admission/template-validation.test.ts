import assert from 'node:assert/strict';
import { inAnyPosition } from '../../../src/access/policy/policy.ts';
import { notPlanned, templatePolicy } from '../../../src/access/policy/template-policy.ts';
import { alice, allowed, paths, reviewOf, World } from './support.ts';

const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' };
const template = (spec: unknown) => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessTemplate',
  metadata: { name: 'payments-shell', namespace: 'payments' },
  spec,
});
const author = { ...alice, time: '2026-11-21T09:00:00Z' };
const good = { accessConfig: { allowedGroups: ['devs'] }, controllerTargetRef: target, author };

describe('validation of templates', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });
  const ask = (
    path: string,
    plural: string,
    operation: string,
    object: unknown,
    oldObject: unknown = null,
    fields: object = {},
  ) => world.review(path, reviewOf(plural, operation, { name: 'payments-shell', object, oldObject, ...fields }));
  const create = (spec: unknown) => ask(paths.podTemplate, 'podaccesstemplates', 'CREATE', template(spec));

  it('allows a valid one, with an audit line', async () => {
    await allowed(create(good));
    assert.equal(world.lines.at(-1)?.what.kind, 'PodAccessTemplate');
    assert.equal(world.lines.at(-1)?.template, 'payments-shell');
  });

  it('warns about probable mistakes', async () => {
    const response = await allowed(create({ ...good, accessConfig: { allowedGroups: [] } }));
    assert.match(response.warnings?.[0] ?? '', /allowedGroups is empty/);
  });

  it('denies durations, commands, and targets that can never work', async () => {
    const { accessConfig } = good;
    const bad: [unknown, RegExp][] = [
      [{ ...good, accessConfig: { ...accessConfig, defaultDuration: '48h' } }, /^InvalidDuration: /],
      [{ ...good, accessConfig: { ...accessConfig, accessCommand: 'kubectl {{ .Spec.Secret }}' } }, /\.Spec\.Secret/],
      [{ accessConfig }, /^InvalidTemplate: /],
      [{ ...good, accessConfig: {} }, /^InvalidObject: spec.accessConfig.allowedGroups is required/],
      [null, /^InvalidObject: /],
    ];
    for (const [spec, message] of bad) {
      const response = await create(spec);
      assert.equal(response.allowed, false, JSON.stringify(spec));
      assert.equal(response.status?.code, 422);
      assert.match(response.status?.message ?? '', message);
    }
  });

  it('allows metadata changes of an invalid stored template, and spec changes only if they correct it', async () => {
    const old = template({ accessConfig: {} });
    const labelled = { ...old, metadata: { ...old.metadata, labels: { a: 'b' } } };
    assert.equal((await ask(paths.podTemplate, 'podaccesstemplates', 'UPDATE', labelled, old)).allowed, true);
    const worse = template({ accessConfig: { allowedGroups: 7 } });
    assert.equal((await ask(paths.podTemplate, 'podaccesstemplates', 'UPDATE', worse, old)).allowed, false);
  });

  for (const [title, forged, found] of [
    ['no user', undefined, 'no user'],
    ['another user', { ...author, username: 'admin' }, '"admin"'],
    ['foreign groups', { ...author, groups: ['devs', 'sre'] }, 'group "sre"'],
  ] as const) {
    it(`denies one that names ${title} as its author`, async () => {
      const response = await create({ ...good, author: forged });
      assert.equal(response.status?.code, 403);
      const start = `MissingIdentity: spec.author names ${found}; it must name "alice", the caller, `;
      assert.equal(response.status?.message?.slice(0, start.length), start);
    });
  }

  it('denies one that grants permissions its author does not have', async () => {
    world.lacks = ({ subresource }) => subresource === 'exec';
    const response = await create(good);
    assert.equal(response.status?.code, 403);
    assert.match(
      response.status?.message ?? '',
      /^AuthorLacksRights: .*"alice" may not get pods\/exec, create pods\/exec/,
    );
  });

  const update = (spec: unknown, oldSpec: unknown) =>
    ask(paths.podTemplate, 'podaccesstemplates', 'UPDATE', template(spec), template(oldSpec));
  const config = (part: object) => ({ ...good, accessConfig: { ...good.accessConfig, ...part } });

  it('denies an update only for violations that it introduces, and warns about the stored one', async () => {
    const stored = config({ allowedGroups: ['devs '] });
    const edited = await allowed(update(config({ allowedGroups: ['devs '], maxDuration: '2h' }), stored));
    assert.match(edited.warnings?.[0] ?? '', /^InvalidGroup: spec\.accessConfig\.allowedGroups\[0\] is "devs "/);
    const another = await update(config({ allowedGroups: ['devs '], defaultDuration: '48h' }), stored);
    assert.match(another.status?.message ?? '', /^InvalidDuration: /);
  });

  it('warns about the violations of a stored template if an update does not change its spec, and denies none', async () => {
    const violation = { code: 'PodReachesTooFar', message: 'hostNetwork is set', status: 403 } as const;
    const invalid = config({ allowedGroups: ['devs '] });
    const byRule = await update(invalid, invalid);
    world.ownViolations = () => [violation];
    const byItself = await update(good, good);
    world.ownViolations = () => [];
    world.presentPlan = { denial: { code: 'TargetNotFound', message: 'no Deployment; create it', status: 404 } };
    const byAnotherObject = await update(good, good);
    world.presentPlan = {};
    const bySchema = await update({ accessConfig: {} }, { accessConfig: {} });
    for (const [response, warning] of [
      [byRule, /^InvalidGroup: spec\.accessConfig\.allowedGroups\[0\] is "devs "/],
      [byItself, /^PodReachesTooFar: hostNetwork is set$/],
      [byAnotherObject, /^TargetNotFound: no Deployment; create it$/],
      [bySchema, /^InvalidObject: spec\.accessConfig\.allowedGroups is required/],
    ] as const) {
      assert.equal(response.allowed, true, response.status?.message);
      assert.match(response.warnings?.[0] ?? '', warning);
    }
    assert.equal((await update(good, good)).warnings, undefined);
  });

  it('warns about the stored author, not about the caller, if an update does not change the spec', async () => {
    world.lacks = () => true;
    const condition = (status: string, observedGeneration: number) => ({
      type: 'AuthorHoldsRights',
      status,
      reason: 'AuthorLacksRights',
      message: 'author "erin" may not create pods/exec',
      observedGeneration,
    });
    const stored = (...conditions: object[]) => {
      const object = template({ ...good, author: { ...author, username: 'erin' } });
      return { ...object, metadata: { ...object.metadata, generation: 3 }, status: { conditions } };
    };
    const again = (object: unknown, dryRun = false) =>
      ask(paths.podTemplate, 'podaccesstemplates', 'UPDATE', object, object, { dryRun });
    const lacking = await again(stored(condition('False', 3)));
    const outdated = await again(stored(condition('False', 2)));
    const tried = await again(stored(condition('False', 3)), true);
    const holding = await again(stored(condition('True', 3)), true);
    const unknown = await again(stored(), true);
    assert.deepEqual(lacking.warnings, ['AuthorLacksRights: author "erin" may not create pods/exec']);
    assert.equal(outdated.warnings, undefined);
    assert.equal(tried.warnings?.[0], 'FAIL author: AuthorLacksRights: author "erin" may not create pods/exec');
    assert.deepEqual(
      holding.warnings?.filter((line) => line.includes('author')),
      [],
    );
    assert.match(unknown.warnings?.[0] ?? '', /checked author: .*; to check: read the condition AuthorHoldsRights/);
  });

  it('warns about fields that the API server ignores, if an update does not change the spec', async () => {
    const message = 'the API server ignores spec.restartpolicy; correct or remove it';
    const found = { status: 'True', reason: 'FieldsIgnored', message, observedGeneration: 1 };
    const condition = { type: 'AccessPlanValid', ...found };
    const object = template(good);
    const stored = { ...object, metadata: { ...object.metadata, generation: 1 }, status: { conditions: [condition] } };
    const { allowed, warnings } = await ask(paths.podTemplate, 'podaccesstemplates', 'UPDATE', stored, stored);
    assert.equal(allowed, true);
    assert.deepEqual(warnings, [message]);
  });

  it('does not check a template that is being deleted', async () => {
    const stored = template(config({ allowedGroups: ['devs '] }));
    const deleted = { ...stored, metadata: { ...stored.metadata, deletionTimestamp: '2026-11-21T09:00:00Z' } };
    const response = await allowed(ask(paths.podTemplate, 'podaccesstemplates', 'UPDATE', deleted, deleted));
    assert.equal(response.warnings, undefined);
  });

  it('denies an update that adds a violation to a spec that violated its schema', async () => {
    const response = await update(config({ allowedGroups: ['devs '] }), { accessConfig: {} });
    assert.match(response.status?.message ?? '', /^InvalidGroup: /);
  });

  it('denies what the template alone decides about its pod, in an update only if the stored one has no such violation', async () => {
    const violation = { code: 'PodReachesTooFar', message: 'hostNetwork is set', status: 403 } as const;
    world.ownViolations = ({ accessConfig }) => (accessConfig.maxDuration === '3h' ? [] : [violation]);
    const created = await create(good);
    const introduced = await update(config({ maxDuration: '2h' }), config({ maxDuration: '3h' }));
    const kept = await update(config({ maxDuration: '2h' }), good);
    for (const { status } of [created, introduced]) {
      assert.equal(status?.message, 'PodReachesTooFar: hostNetwork is set');
      assert.equal(status?.code, 403);
    }
    assert.equal(kept.allowed, true);
    assert.deepEqual(kept.warnings, ['PodReachesTooFar: hostNetwork is set']);
  });

  it('admits a repair that leaves other stored violations of the pod, and denies one that they would hide', async () => {
    const reaches = (field: string) =>
      ({
        code: 'PodReachesTooFar',
        message: `${field} is set`,
        field,
        status: 403,
        key: inAnyPosition(field),
      }) as const;
    world.ownViolations = ({ accessConfig: { maxDuration } }) => {
      const stored = [reaches('spec.containers[0].ports'), reaches('spec.volumes[1].hostPath')];
      if (maxDuration === '3h') return stored;
      return maxDuration === '2h'
        ? [reaches('spec.volumes[0].hostPath')]
        : [...stored, reaches('spec.volumes[2].hostPath')];
    };
    const repaired = await update(config({ maxDuration: '2h' }), config({ maxDuration: '3h' }));
    const worse = await update(config({ maxDuration: '4h' }), config({ maxDuration: '3h' }));
    assert.equal(repaired.allowed, true, repaired.status?.message);
    assert.deepEqual(repaired.warnings, ['PodReachesTooFar: spec.volumes[0].hostPath is set']);
    assert.equal(worse.status?.message, 'PodReachesTooFar: spec.volumes[2].hostPath is set');
  });

  it('warns if it did not plan the template, and still denies what its rules deny', async () => {
    const warned = /^the server did not check whether requests can use this template.*; the condition AccessPlanValid /;
    world.ownViolations = () => notPlanned;
    const created = await create(good);
    const denied = await create({ accessConfig: good.accessConfig });
    world.ownViolations = ({ accessConfig }) =>
      accessConfig.maxDuration === '3h'
        ? notPlanned
        : [{ code: 'PodReachesTooFar', message: 'hostNetwork', status: 403 }];
    const updated = await update(config({ maxDuration: '2h' }), config({ maxDuration: '3h' }));
    assert.equal(created.allowed, true);
    assert.equal(created.warnings?.length, 1);
    assert.match(created.warnings[0] ?? '', warned);
    assert.match(denied.status?.message ?? '', /^InvalidTemplate: /);
    assert.equal(updated.allowed, true);
    assert.deepEqual(updated.warnings, ['PodReachesTooFar: hostNetwork']);
  });

  it('warns about what depends on other objects, at most 1024 characters, and keeps what to do', async () => {
    const message = `Deployment ${'x'.repeat(2000)}; create it`;
    world.presentPlan = { denial: { code: 'TargetNotFound', message, status: 404 } };
    const response = await allowed(create(good));
    assert.match(response.warnings?.[0] ?? '', /^TargetNotFound: Deployment x+ \.\.\. x+; create it$/);
    assert.equal(response.warnings?.[0]?.length, 1024);
  });

  it('warns about objects in allowedSelectors that do not exist, also if the plan fails', async () => {
    const denial = { code: 'PodIsSelected', message: 'Service web selects it; list it', status: 403 } as const;
    world.presentPlan = { denial, selectorNotes: ['spec.allowedSelectors[0] names Service "wbe"'] };
    const { allowed, warnings } = await create(good);
    assert.equal(allowed, true);
    assert.deepEqual(warnings, [
      'PodIsSelected: Service web selects it; list it',
      'spec.allowedSelectors[0] names Service "wbe"',
    ]);
  });

  it('warns about sessions through a gateway that is not available, and only about those', async () => {
    world.gatewayViolation = { code: 'GatewayUnavailable', message: 'APIService does not exist', status: 404 };
    const withGateway = await create({ ...good, accessConfig: { ...good.accessConfig, session: { via: 'Gateway' } } });
    const direct = await create(good);
    assert.equal(withGateway.allowed, true);
    assert.deepEqual(withGateway.warnings, ['GatewayUnavailable: APIService does not exist']);
    assert.deepEqual(direct.warnings ?? [], []);
  });

  describe('in a dry run', () => {
    const dryRun = async (spec: unknown, kind = 'PodAccessTemplate') => {
      const [path, plural] =
        kind === 'PodAccessTemplate'
          ? [paths.podTemplate, 'podaccesstemplates']
          : [paths.execTemplate, 'execaccesstemplates'];
      const object = { ...template(spec), kind };
      const response = await ask(path, plural, 'CREATE', object, null, { dryRun: true });
      return { allowed: response.allowed, lines: response.warnings ?? [] };
    };
    const notAsked =
      'not checked api-server: whether the API server accepts the Pod and the Role of a grant; ' +
      'to check: store the template, because a dry run does not ask the API server; if the API server rejects the Pod or the Role of a grant, the condition AccessPlanValid of the template is False';
    const rules = Object.keys(templatePolicy).length;

    it('passes the checks of the author and of the plan like rules, and says what the API server was not asked', async () => {
      assert.deepEqual(await dryRun(good), { allowed: true, lines: [notAsked, `${rules + 2} rules passed`] });
      const exec = await dryRun(good, 'ExecAccessTemplate');
      assert.equal(exec.lines[0], notAsked.replace('the Pod and the Role', 'the Role'));
    });

    it('fails what the plan finds, whether or not it denies the template', async () => {
      const missing = { code: 'TargetNotFound', message: 'no Deployment; create it', status: 404 } as const;
      const privileged = { code: 'PodReachesTooFar', message: 'privileged; remove it', status: 403 } as const;
      world.presentPlan = { denial: missing };
      const warned = await dryRun(good);
      world.presentPlan = {};
      world.ownViolations = () => [privileged];
      const denied = await dryRun(good);
      const count = `${rules + 1} rules passed`;
      const lines = (found: string) => [`FAIL plan: ${found}`, notAsked, count];
      assert.deepEqual(warned, { allowed: true, lines: lines('TargetNotFound: no Deployment; create it') });
      assert.deepEqual(denied, { allowed: false, lines: lines('PodReachesTooFar: privileged; remove it') });
    });

    it('fails what the author lacks, and has not checked the plan then', async () => {
      world.lacks = ({ subresource }) => subresource === 'exec';
      const { allowed, lines } = await dryRun(good);
      assert.equal(allowed, false);
      assert.match(lines[0] ?? '', /^FAIL author: AuthorLacksRights: author "alice" may not get pods\/exec/);
      assert.match(lines[1] ?? '', /^not checked plan: .*; to check: correct what fails, and check again$/);
      assert.deepEqual(lines.slice(2), [notAsked, `${rules} rules passed`]);
    });

    it('has checked neither author nor plan of a template that breaks a rule', async () => {
      const { lines } = await dryRun({ accessConfig: good.accessConfig });
      assert.deepEqual(
        lines.map((line) => line.replace(/:.*/, '')),
        [
          'FAIL target',
          'not checked author',
          'not checked plan',
          'not checked api-server',
          `${rules - 1} rules passed`,
        ],
      );
    });

    it('has not checked a plan that it did not make', async () => {
      world.ownViolations = () => notPlanned;
      const { lines } = await dryRun(good);
      assert.match(lines[0] ?? '', /; to check: store the template; then its condition AccessPlanValid shows/);
      assert.deepEqual(lines.slice(1), [notAsked, `${rules + 1} rules passed`]);
    });

    it('fails a gateway that is not available', async () => {
      world.gatewayViolation = { code: 'GatewayUnavailable', message: 'APIService does not exist', status: 404 };
      const { lines } = await dryRun(config({ session: { via: 'Gateway' } }));
      assert.equal(lines[0], 'FAIL gateway: GatewayUnavailable: APIService does not exist');
    });
  });

  it('validates exec access templates by their own schema', async () => {
    const object = { ...template({ accessConfig: good.accessConfig, podSpec: {} }), kind: 'ExecAccessTemplate' };
    const response = await ask(paths.execTemplate, 'execaccesstemplates', 'CREATE', object);
    assert.match(response.status?.message ?? '', /controllerTargetRef is required/);
  });
});
