import assert from 'node:assert/strict';
import { alice, allowed, patchOf, paths, reviewOf, World } from './support.ts';

const path = paths.attestPodTemplate;
const spec = { accessConfig: { allowedGroups: ['devs'] }, podSpec: { containers: [{ name: 'a' }] } };
const time = '2026-11-21T09:00:00Z';
const admin = { username: 'admin', uid: '', groups: ['sre'], time };
const byAlice = { ...alice, time };

const template = (fields: object, metadata: object = {}) => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessTemplate',
  metadata: { name: 'shell', namespace: 'payments', ...metadata },
  spec: { ...spec, ...fields },
});
const stored = template({ author: admin }, { uid: 't-1', generation: 4 });

describe('the author of a template', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });

  const changes = async (operation: string, object: unknown, oldObject: unknown = null, more: object = {}) => {
    const review = reviewOf('podaccesstemplates', operation, { name: 'shell', object, oldObject, ...more });
    const answer = await allowed(world.review(path, review));
    return Object.fromEntries(patchOf(answer).map((op) => [op.path, op.value]));
  };

  it('is its creator, whatever the object claims, also in a dry run', async () => {
    const claimed = template({ author: admin });
    assert.deepEqual(await changes('CREATE', claimed), { '/spec/author': byAlice });
    assert.deepEqual(await changes('CREATE', claimed, null, { dryRun: true }), { '/spec/author': byAlice });
  });

  it('is the caller who changes its spec', async () => {
    const changed = template({ author: admin, maxCpu: '1' }, { uid: 't-1', generation: 4 });
    assert.deepEqual(await changes('UPDATE', changed, stored), { '/spec/author': byAlice });
  });

  it('is the caller who changes the field', async () => {
    const claimed = template({ author: { username: 'me' } }, { uid: 't-1', generation: 4 });
    assert.deepEqual(await changes('UPDATE', claimed, stored), { '/spec/author': byAlice });
    const unattested = template({}, { uid: 't-1', generation: 4 });
    assert.deepEqual(await changes('UPDATE', claimed, unattested), { '/spec/author': byAlice });
  });

  it('stays when only metadata changes', async () => {
    const labelled = { ...stored, metadata: { ...stored.metadata, labels: { a: 'b' } } };
    assert.deepEqual(await changes('UPDATE', labelled, stored), {});
    const unattested = template({}, { uid: 't-1', generation: 4 });
    assert.deepEqual(await changes('UPDATE', unattested, unattested), {});
  });

  it('stays if a manifest without the field is applied again', async () => {
    assert.deepEqual(await changes('UPDATE', template({}), stored), { '/spec/author': admin });
  });

  it('is written beside a generated name', async () => {
    const object = template({}, { name: undefined, generateName: 'shell-' });
    const patch = await changes('CREATE', object);
    assert.match(String(patch['/metadata/name']), /^shell-[a-z0-9]{10}$/);
    assert.deepEqual(patch['/spec/author'], byAlice);
  });

  describe('of a template whose spec is large', () => {
    // 1 Mi characters, less the weight of the object and of its value, and the name of its field.
    const largest = 'x'.repeat(1024 * 1024 - 2 * 32 - 'note'.length);
    const sized = (note: string, more: object = {}) => ({
      ...template({}, { uid: 't-1', generation: 4 }),
      spec: { note, ...more },
    });
    const refusal = async (operation: string, object: unknown, oldObject: unknown = null) => {
      const review = reviewOf('podaccesstemplates', operation, { name: 'shell', object, oldObject });
      const { allowed, status } = await world.review(path, review);
      assert.equal(allowed, status?.message === undefined);
      return status?.message;
    };
    const tooLarge = 'InvalidObject: spec is larger than 1048576 characters, with 32 for each value; shorten it';

    it('is written up to 1 Mi characters, not counting what the field claims', async () => {
      assert.equal(await refusal('CREATE', sized(largest, { author: admin })), undefined);
      assert.equal(await refusal('UPDATE', sized(largest, { author: admin }), stored), undefined);
    });

    it('is not written beyond that, for a new template or a changed spec', async () => {
      assert.equal(await refusal('CREATE', sized(`${largest}x`)), tooLarge);
      assert.equal(await refusal('UPDATE', sized(`${largest}x`), stored), tooLarge);
      assert.equal(await refusal('UPDATE', sized(`${largest}xy`), sized(`${largest}x`, { author: admin })), tooLarge);
    });

    it('stays, or becomes the caller, if the template was stored with that spec', async () => {
      const before = sized(`${largest}x`, { author: admin });
      assert.deepEqual(await changes('UPDATE', before, before), {});
      assert.deepEqual(await changes('UPDATE', sized(`${largest}x`), before), { '/spec/author': admin });
      const claimed = sized(`${largest}x`, { author: { username: 'me' } });
      assert.deepEqual(await changes('UPDATE', claimed, before), { '/spec/author': byAlice });
      assert.equal(await refusal('UPDATE', sized(largest), before), undefined);
    });
  });

  const refusals: [string, object, RegExp][] = [
    ['an anonymous caller', { userInfo: { username: '', uid: '', groups: [] } }, /^MissingIdentity/],
    ['a template without a spec', { object: { metadata: {} } }, /^InvalidObject/],
  ];
  for (const [title, fields, message] of refusals) {
    it(`is not written for ${title}`, async () => {
      const review = reviewOf('podaccesstemplates', 'CREATE', { object: template({}), ...fields });
      const { allowed, status } = await world.review(path, review);
      assert.equal(allowed, false);
      assert.match(status?.message ?? '', message);
    });
  }
});
