import assert from 'node:assert/strict';
import { alice, paths, reviewOf, World } from './support.ts';

const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' };
const template = (spec: unknown) => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessTemplate',
  metadata: { name: 'payments-shell', namespace: 'payments' },
  spec,
});
const author = { ...alice, time: '2026-11-21T09:00:00Z', signature: 'signed' };
const good = { accessConfig: { allowedGroups: ['devs'] }, controllerTargetRef: target, author };

describe('validation of templates', () => {
  const world = new World();
  const ask = (path: string, plural: string, operation: string, object: unknown, oldObject: unknown = null) =>
    world.review(path, reviewOf(plural, operation, { name: 'payments-shell', object, oldObject, userInfo: alice }));
  const create = (spec: unknown) => ask(paths.podTemplate, 'podaccesstemplates', 'CREATE', template(spec));

  it('allows a valid one, with an audit line', async () => {
    const response = await create(good);
    assert.equal(response.allowed, true, response.status?.message);
    assert.equal(world.lines.at(-1)?.what.kind, 'PodAccessTemplate');
    assert.equal(world.lines.at(-1)?.template, 'payments-shell');
  });

  it('warns about probable mistakes', async () => {
    const response = await create({ ...good, accessConfig: { allowedGroups: [] } });
    assert.equal(response.allowed, true);
    assert.match(response.warnings?.[0] ?? '', /allowedGroups is empty/);
  });

  it('denies durations, commands, and targets that can never work', async () => {
    const { accessConfig } = good;
    const bad: [unknown, RegExp][] = [
      [{ ...good, accessConfig: { ...accessConfig, defaultDuration: '48h' } }, /^InvalidDuration: /],
      [{ ...good, accessConfig: { ...accessConfig, accessCommand: 'kubectl {{ .Spec.Secret }}' } }, /\.Spec\.Secret/],
      [{ accessConfig }, /^MissingTarget: /],
      [{ ...good, accessConfig: {} }, /^InvalidSpec: spec.accessConfig.allowedGroups is required/],
      [null, /^InvalidSpec: /],
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

  it('denies groups that Kubernetes assigns', async () => {
    const response = await create({ ...good, accessConfig: { allowedGroups: ['devs', 'system:authenticated'] } });
    assert.match(response.status?.message ?? '', /^SystemGroup: .*"system:authenticated"/);
  });

  for (const [title, forged] of [
    ['no user', undefined],
    ['another user', { ...author, username: 'admin' }],
    ['foreign groups', { ...author, groups: ['devs', 'sre'] }],
  ] as const) {
    it(`denies one that names ${title} as its author`, async () => {
      const response = await create({ ...good, author: forged });
      assert.equal(response.status?.code, 403);
      assert.match(response.status?.message ?? '', /^MissingIdentity: spec\.author names .*; it must name "alice"/);
    });
  }

  it('denies one that grants permissions its author does not have', async () => {
    world.lacks = ({ subresource }) => subresource === 'exec';
    const response = await create(good);
    world.lacks = () => false;
    assert.equal(response.status?.code, 403);
    assert.match(
      response.status?.message ?? '',
      /^AuthorLacksRights: .*"alice" may not get pods\/exec, create pods\/exec/,
    );
  });

  it('validates exec access templates by their own schema', async () => {
    const object = { ...template({ accessConfig: good.accessConfig, podSpec: {} }), kind: 'ExecAccessTemplate' };
    const response = await ask(paths.execTemplate, 'execaccesstemplates', 'CREATE', object);
    assert.match(response.status?.message ?? '', /controllerTargetRef is required/);
  });
});
