import assert from 'node:assert/strict';
import { pluck } from '../../support/pluck.ts';
import { alice, connectReview, paths, reviewOf, World } from './support.ts';

const longest = 'x'.repeat(1_024);
const many = (count: number): string[] => Array.from({ length: count }, (_, index) => `g${index}`);
const create = (fields: Record<string, unknown>) =>
  reviewOf('podaccessrequests', 'CREATE', { object: { metadata: {}, spec: { templateName: 'shell' } }, ...fields });
const named = (name: string, more: object = {}) => ({ metadata: { name, ...more }, spec: { templateName: 'shell' } });
const uid = (length: number) => ({ uid: 'u'.repeat(length) });

describe('a review above the limits', () => {
  const refused: [string, Record<string, unknown>, RegExp][] = [
    ['1,001 groups', { userInfo: { ...alice, groups: many(1_001) } }, /^CallerTooLarge: the caller is in 1001 groups/],
    ['a million groups less one', { userInfo: { ...alice, groups: many(99_000) } }, /^CallerTooLarge/],
    ['a username of 1,025 characters', { userInfo: { ...alice, username: `${longest}x` } }, /^CallerTooLarge: .* 1025/],
    ['a uid of 1,025 characters', { userInfo: { ...alice, uid: `${longest}x` } }, /^CallerTooLarge/],
    ['a group of 1,025 characters', { userInfo: { ...alice, groups: [`${longest}x`] } }, /^CallerTooLarge/],
    ['an extra of 1,025 characters', { userInfo: { ...alice, extra: { a: [`${longest}x`] } } }, /^CallerTooLarge/],
    ['1,001 extras', { userInfo: { ...alice, extra: { a: many(1_000) } } }, /^CallerTooLarge/],
    ['a namespace of 64 characters', { namespace: 'n'.repeat(64) }, /^InvalidObject: namespace "n+…?" is invalid/],
    ['a namespace that is no label', { namespace: 'a.b' }, /^InvalidObject: namespace "a.b"/],
    ['a name of 254 characters', { name: 'n'.repeat(254) }, /^InvalidObject: name "n+…"/],
    ['an object whose name has 254 characters', { object: named('n'.repeat(254)) }, /^InvalidObject: metadata.name/],
    ['an object whose name is no subdomain', { object: named('Shell') }, /^InvalidObject: metadata.name "Shell"/],
    ['an object with a uid of 65 characters', { object: named('shell', uid(65)) }, /^InvalidObject: metadata.uid has/],
    [
      'an old object with a uid of 65 characters',
      { operation: 'UPDATE', object: named('shell'), oldObject: named('shell', uid(65)) },
      /^InvalidObject: metadata.uid has/,
    ],
    ['a name with characters that labels may not have', { name: 'a\nb' }, /^InvalidObject: name "a\\nb"/],
  ];
  for (const [title, fields, message] of refused) {
    it(`is denied before any work, with an answer and nothing else: ${title}`, async () => {
      const world = new World();
      for (const path of [paths.attestPod, paths.validatePod]) {
        const response = await world.review(path, create(fields));
        assert.equal(response.allowed, false);
        assert.match(response.status?.message ?? '', message);
        assert.ok((response.status?.message.length ?? 0) < 300);
      }
      assert.deepEqual([world.lines, world.outcomes, world.asked], [[], [], []]);
    });
  }

  it('passes at the limits', async () => {
    const world = new World();
    const userInfo = { ...alice, username: longest, uid: longest, groups: [...many(999), longest] };
    const name = `${'n'.repeat(251)}.n`;
    const fields = { userInfo, namespace: 'n'.repeat(63), name, object: named(name, uid(64)) };
    const { allowed } = await world.review(paths.attestPod, create(fields));
    assert.equal(allowed, true);
  });

  it('passes with the names of proxy calls', async () => {
    for (const name of ['web-0', 'web-0:8080', 'https:web-0:8443', 'http:web-0:', ':web-0:', 'web-0:http']) {
      const world = new World();
      const { status } = await world.review(paths.guardPod, connectReview('proxy', { name }));
      assert.match(status?.message ?? '', /^PodNotFound/, name);
    }
    const world = new World();
    const { status } = await world.review(paths.guardPod, connectReview('exec', { name: 'web-0:8080' }));
    assert.match(status?.message ?? '', /^InvalidObject/);
  });

  it('is allowed by an observe-only webhook, which records it within the limits', async () => {
    const world = new World();
    const userInfo = { username: 'u'.repeat(3_000_000), uid: '', groups: many(2_000) };
    const review = connectReview('exec', { userInfo, name: 'n'.repeat(1_000), namespace: 'n'.repeat(1_000) });
    const { allowed } = await world.review(paths.watchPod, review);
    assert.equal(allowed, true);
    assert.equal(world.lines.length, 1);
    assert.ok(JSON.stringify(world.lines).length < 20_000);
    assert.ok(JSON.stringify([world.outcomes, world.connectEvents]).length < 5_000);
  });

  it('puts no namespace of a missing pod into a metric', async () => {
    const world = new World();
    await world.review(paths.watchPod, connectReview('exec'));
    world.pod = { uid: 'p-1', isAccessPod: false, grants: [] };
    await world.review(paths.watchPod, connectReview('exec'));
    assert.deepEqual(pluck(world.outcomes, 'namespace'), ['', 'payments']);
  });
});
